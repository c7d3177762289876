"""Whether a checkpoint belongs to a call of `minimize`: the same arguments, the same objective."""

import dataclasses
import logging
import os
from typing import Any

import numpy as np

from fmnes._arrays import to_host
from fmnes.arguments.setup import Setup
from fmnes.runs.restarts import BIPOP, IPOP
from fmnes.storage.fingerprint import Fingerprint
from fmnes.variables.space import Space

logger = logging.getLogger("fmnes")

# The arguments that the fields of a Setup come from.
_ARGUMENTS = {
    "settings": "settings of the method",
    "mean": "x0",
    "deviations": "sigma0",
    "shape": "initial shape (D, v or C)",
    "box": "bounds",
    "constraints": "number, kinds or tolerances of the constraints",
    "seed": "rng",
    "discrete": "integrality or choices",
    "space": "variables of the Space",
    "multipliers": "multipliers of the Result",
}


def check_same(
    mine: Setup,
    popsize: int | None,
    schedule: IPOP | BIPOP,
    saved: dict[str, Any],
    *,
    seeded: bool,
    asynchronous: bool,
) -> None:
    """Raise an error if the saved search was started with other arguments.

    A ``popsize`` of None is the one of the saved search.
    """
    theirs = saved["current"]["setup"]
    differing = [
        _ARGUMENTS.get(name, name)
        + (f" ({getattr(theirs, name)} there)" if name == "method" else "")
        for name in Setup._fields
        if name != "stopping" and (seeded or name != "seed")
        if not _equal(getattr(mine, name), getattr(theirs, name))
        if name != "settings" or not _has_become(mine.settings, theirs.settings)
    ]
    if mine.mean.shape != theirs.mean.shape:
        differing.insert(0, f"the number of variables ({theirs.mean.shape[0]} there)")
    saved_popsize = _first_popsize(saved)
    if popsize is not None and popsize != saved_popsize:
        differing.append(f"popsize ({saved_popsize} there)")
    if repr(schedule) != saved["schedule"]:
        differing.append(f"restarts ({saved['schedule']} there)")
    if asynchronous != (saved["flight"] is not None or saved["parallel"] is not None):
        differing.append(f"asynchronous ({not asynchronous} there)")
    if differing:
        raise ValueError(
            "checkpoint: expected a saved search of this problem, got one that differs in "
            f"{', '.join(differing)}; give another path, or resume='never' to start again"
        )


def _has_become(mine: Any, theirs: Any) -> bool:
    """Whether a search that was started with settings ``mine`` may have ``theirs`` by now."""
    noisy = mine.for_noise()  # since x0 was found to have two values
    return any(_equal(each, theirs) for each in (noisy, mine.for_restart(), noisy.for_restart()))


def _first_popsize(saved: dict[str, Any]) -> int:
    """Return the population size of the first run of a saved search."""
    if saved["parallel"] is not None:
        return int(saved["parallel"]["popsize"])
    finished = saved["finished"]
    current = saved["current"]["tally"].limits
    return int(finished[0].restarts[0].popsize if finished else current.popsize)


def compare_code(
    mine: Fingerprint | None, saved: Fingerprint | None, path: str | os.PathLike[str]
) -> None:
    """Log a warning if the code of the objective has changed since the checkpoint was made."""
    if mine is not None and saved is not None and mine.differs_from(saved):
        other = "" if saved.name == mine.name else f" with {saved.name}"
        logger.warning(
            "the code of the objective %s has changed since checkpoint %s was made%s: values of "
            "both are mixed; to avoid this, start again with another path",
            mine.name,
            path,
            other,
        )


def _equal(a: Any, b: Any) -> bool:
    """Return whether two fields of a Setup are equal, with all arrays in them."""
    if isinstance(a, Space) or isinstance(b, Space):
        return bool(a == b)
    if dataclasses.is_dataclass(a) and type(a) is type(b):
        return _equal(tuple(vars(a).values()), tuple(vars(b).values()))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if any(value is None or isinstance(value, str) for value in (a, b)):
        return type(a) is type(b) and bool(a == b)
    here, there = (np.asarray(to_host(value)) for value in (a, b))
    return here.dtype == there.dtype and np.array_equal(here, there)
