"""The result of a search, and the ways in which a search can end."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from fmnes._arrays import Array
from fmnes._history import History
from fmnes.algorithms._records import Shape


class Status(StrEnum):
    """The ways in which a search can end, each with a `sentence` that explains it.

    A status compares equal to its name as a string.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.Status.TIMEOUT == "timeout", fmnes.Status.TIMEOUT.sentence
    (True, 'The time limit timeout was reached.')
    """

    sentence: str

    def __new__(cls, name: str, sentence: str = "") -> "Status":
        member = str.__new__(cls, name)
        member._value_ = name
        member.sentence = sentence
        return member

    RUNNING = "running", "The search has not ended yet."
    FTARGET = "ftarget", "The best value reached the target ftarget."
    TOLX = (
        "tolx",
        "Converged: every standard deviation fell below tolx times its initial value, "
        "or below what floating-point numbers resolve at the mean.",
    )
    TOLFUN = (
        "tolfun",
        "Converged: the values of the last generations differ by less than tolfun, "
        "relative to their size.",
    )
    MAXFEVALS = "maxfevals", "The next generation would exceed the evaluation budget maxfevals."
    MAXITER = "maxiter", "The number of generations reached maxiter."
    TIMEOUT = "timeout", "The time limit timeout was reached."
    FLAT = (
        "flat",
        "All values were equal from the first generation on: the objective is flat at this scale.",
    )
    STAGNATION = (
        "stagnation",
        "Neither the best nor the median value of a generation improved over a long window: "
        "the objective is noisy, or its precision is exhausted.",
    )
    CONDITION = (
        "condition",
        "The condition number of the covariance matrix exceeds the floating-point precision.",
    )
    SCALE = (
        "scale",
        "The sampling distribution left the range of finite floating-point numbers.",
    )
    SIGMA_UP = (
        "sigma-up",
        "The largest deviation grew by more than the factor tolsigmaup: the objective has no "
        "minimum within reach, is noise, or sigma0 was far too small.",
    )
    SIGMA_UNDERFLOW = (
        "sigma-underflow",
        "A standard deviation fell below the smallest normal floating-point number.",
    )
    INFEASIBLE = (
        "infeasible",
        "No candidate had a usable value (all NaN in the first generation, or nothing feasible "
        "for many generations).",
    )
    UNBOUNDED = "unbounded", "The objective returned -inf: it is unbounded below."
    CALLBACK = "callback", "The callback ended the search."
    INTERRUPTED = "interrupted", "Interrupted from the keyboard; this is the best so far."
    TERMINATED = (
        "terminated",
        "The process was asked to end (SIGTERM); this is the best so far.",
    )


@dataclass(frozen=True)
class Run:
    """Summary of one run of a restart schedule.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [1.0, 2.0], 0.5, maxiter=3, rng=1)
    >>> run = result.restarts[-1]
    >>> run.popsize, run.nit, run.nfev
    (6, 3, 18)
    """

    popsize: int
    sigma0: float  # the initial step size
    nfev: int  # evaluations and generations
    nit: int
    fun: float  # the best value
    status: Status


@dataclass(frozen=True)
class Result:
    """The result of a search, with SciPy's field names.

    Attributes
    ----------
    x : array of shape (d,)
        The best candidate that was evaluated; the mean if no candidate had a usable value.
    fun : float
        The value of ``x``; inf if no candidate had a usable value.
    nfev, nit : int
        Number of evaluations and of generations, over all runs.
    success : bool
        Whether the target was reached; without a target, whether the search converged.
    status : Status
        How the search ended, e.g. "ftarget".
    message : str
        The same as a sentence.
    mean : array of shape (d,)
        The mean of the sampling distribution: the better choice if the objective is noisy.
    sigma : float
        The step size at the end.
    history : History
        One row per generation, over all runs.
    restarts : tuple of Run
        The runs of the restart schedule, in order; a single run if there were no restarts.
    nfailed : int
        Number of evaluations that returned NaN, or failed under an `Evaluator`'s policy.
    first_error : str or None
        The traceback of the first evaluation that failed under an `Evaluator`'s policy.
    shape : Shape
        The shape of the sampling distribution at the end. Pass the Result as ``x0`` of `minimize`
        to continue from there.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 2.0, maxfevals=80, rng=1)
    >>> result.success, result.status, result.nfev
    (False, <Status.MAXFEVALS: 'maxfevals'>, 80)
    >>> more = fmnes.minimize(lambda x: (x**2).sum(), result, ftarget=1e-8, rng=2)
    >>> more.success
    True
    """

    x: Array
    fun: float
    nfev: int
    nit: int
    success: bool
    status: Status
    message: str
    mean: Array
    sigma: float
    history: History = field(repr=False)
    restarts: tuple[Run, ...]
    nfailed: int
    first_error: str | None
    shape: Shape = field(repr=False)

    def __str__(self) -> str:
        rows: Mapping[str, Any] = {
            "message": self.message,
            "success": self.success,
            "status": self.status,
            "fun": f"{self.fun:.10g}",
            "x": _short(self.x),
            "mean": _short(self.mean),
            "sigma": f"{self.sigma:.4g}",
            "nfev": self.nfev,
            "nit": self.nit,
            "nfailed": self.nfailed,
            "restarts": len(self.restarts) - 1,
        }
        return "\n".join(f"{name:>9}: {value}" for name, value in rows.items())


def succeeded(fun: float, status: Status, ftarget: float | None) -> bool:
    """Return whether a run reached the target; without a target, whether it converged."""
    if fun == math.inf:
        return False
    return status in (Status.TOLX, Status.TOLFUN) if ftarget is None else fun <= ftarget


def merged(runs: Sequence[Result], status: Status, ftarget: float | None) -> Result:
    """Return the best of several runs with the totals of all; their histories are not joined."""
    best = min(runs, key=lambda run: run.fun)
    return replace(
        best,
        success=succeeded(best.fun, best.restarts[0].status, ftarget),
        nfev=sum(run.nfev for run in runs),
        nit=sum(run.nit for run in runs),
        status=status,
        message=status.sentence,
        restarts=tuple(run.restarts[0] for run in runs),
        nfailed=sum(run.nfailed for run in runs),
    )


def _short(x: Array) -> str:
    """Return the first values of a vector, and their number, as text."""
    head = ", ".join(f"{float(x[i]):.6g}" for i in range(min(4, x.shape[0])))
    return f"[{head}]" if x.shape[0] <= 4 else f"[{head}, ...] ({x.shape[0]} variables)"
