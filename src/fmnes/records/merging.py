"""One result and one history of several runs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmnes.records.history import History
from fmnes.records.result import Result
from fmnes.records.status import OF_ONE_RUN, Status, message, succeeded


def merged(
    runs: Sequence[Result],
    history: History,
    status: Status,
    ftarget: float | None,
    advice: str = "",
    first_error: str | None = None,
) -> Result:
    """Return the best of several runs with the totals of all and their common history.

    ``status`` is that of the last run. If this run ended by itself, the status of the best run
    takes its place, because x, mean and sigma are those of the best run.
    """
    best = min(runs, key=lambda run: (run.constr_violation, run.fun))
    if status in OF_ONE_RUN and best.restarts[0].status in OF_ONE_RUN:
        status = best.restarts[0].status
    nfev, nfailed = sum(run.nfev for run in runs), sum(run.nfailed for run in runs)
    text = message(best.fun, status, ftarget, best.constr_violation, advice)
    if status == Status.INFEASIBLE and first_error is not None and nfailed == nfev:
        text = f"Every evaluation failed. The first error is: {error_summary(first_error)}"
    return replace(
        best,
        success=succeeded(best.fun, best.restarts[0].status, ftarget, best.constr_violation),
        nfev=nfev,
        nit=sum(run.nit for run in runs),
        status=status,
        message=text,
        history=history,
        restarts=tuple(run.restarts[0] for run in runs),
        nfailed=nfailed,
        first_error=first_error,
    )


def error_summary(traceback: str) -> str:
    """Return type and message of an exception on one line, with its notes, from its traceback."""
    lines = traceback.strip().splitlines()
    indented = [k for k, line in enumerate(lines) if line.startswith(" ")]
    return " ".join(lines[indented[-1] + 1 if indented else 0 :])[:500]


def joined(histories: Sequence[History]) -> History:
    """Return the histories of several runs as one, run after run; each is thinned out by itself."""
    size = histories[0].size
    result = History(size=size)
    for history in histories:
        rows = history.to_array()
        generation, nfev, best = result.totals
        rows["generation"] += generation
        rows["nfev"] += nfev
        rows["best"] = np.minimum(rows["best"], best)
        result = History(np.concatenate([result.to_array(), rows]), size)
    return result
