"""What a search returns, and every way in which one can end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fmnes._arrays import Array
from fmnes._history import History
from fmnes.algorithms._shared import Shape


class Status(StrEnum):
    """The ways to end, each with its `sentence`. A status equals its name as a string.

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
        "noise, or a bound of the precision of the objective.",
    )
    CONDITION = (
        "condition",
        "The axes of the sampling distribution became more unequal than its arithmetic can hold.",
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
    CALLBACK = "callback", "The callback raised StopIteration."
    INTERRUPTED = "interrupted", "Interrupted from the keyboard; this is the best so far."
    TERMINATED = (
        "terminated",
        "The process was asked to end (SIGTERM); this is the best so far.",
    )


@dataclass(frozen=True)
class Run:
    """One run of a restart schedule, in figures.

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
    nfev: int
    nit: int
    fun: float
    status: Status


@dataclass(frozen=True)
class Result:
    """The outcome of a search, under SciPy's field names.

    Attributes
    ----------
    x : array of shape (d,)
        The best candidate that was evaluated; the mean where nothing had a usable value.
    fun : float
        Its value; inf where nothing had a usable value.
    nfev, nit : int
        Evaluations and generations, over all runs.
    success : bool
        The target was reached; or, where none was given, the search converged.
    status : Status
        How the search ended, e.g. "ftarget".
    message : str
        The same in a sentence.
    mean : array of shape (d,)
        The centre of the distribution: what to use when the objective is noisy.
    sigma : float
        The step size at the end.
    history : History
        One row per generation, over all runs; see `History`.
    restarts : tuple of Run
        The runs of the restart schedule, in order; one run where there were no restarts.
    nfailed : int
        Evaluations that gave NaN, or failed under an `Evaluator`'s policy.
    first_error : str or None
        The traceback of the first evaluation that failed under an `Evaluator`'s policy.
    shape : Shape
        The shape of the distribution at the end, for a warm start.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 2.0, maxfevals=80, rng=1)
    >>> result.success, result.status, result.nfev
    (False, <Status.MAXFEVALS: 'maxfevals'>, 80)
    >>> more = fmnes.minimize(lambda x: (x**2).sum(), result, ftarget=1e-8, rng=2)  # go on
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


def _short(x: Array) -> str:
    """The first values of a vector, and how many there are."""
    head = ", ".join(f"{float(x[i]):.6g}" for i in range(min(4, x.shape[0])))
    return f"[{head}]" if x.shape[0] <= 4 else f"[{head}, ...] ({x.shape[0]} variables)"
