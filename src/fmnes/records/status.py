"""The ways in which a search can end, and the sentence for each."""

import math
from enum import StrEnum


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
        """Return the member of a name, with its sentence."""
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
        "the objective is noisy, or its precision is exhausted. In the second case, a larger "
        "Stopping(tolfun=...) ends the search earlier, as converged.",
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
        "No candidate had a usable value: all were NaN (failed) or +inf (infeasible). Start from "
        "an x0 whose value is finite.",
    )
    VIOLATED = (
        "violated",
        "The search converged at a point that violates a constraint; x is the best feasible "
        "candidate before. Use restarts, or start from x with another sigma0.",
    )
    UNBOUNDED = "unbounded", "The objective returned -inf: it is unbounded below."
    CALLBACK = "callback", "The callback ended the search."
    INTERRUPTED = "interrupted", "Interrupted from the keyboard."
    TERMINATED = "terminated", "The process was asked to end (SIGTERM)."
    ERROR = "error", "An exception ended the search."


def succeeded(fun: float, status: Status, ftarget: float | None, violation: float = 0.0) -> bool:
    """Return whether a run reached the target; without a target, whether it converged."""
    if fun == math.inf or violation > 0:
        return False
    return status in (Status.TOLX, Status.TOLFUN) if ftarget is None else fun <= ftarget


def message(
    fun: float, status: Status, ftarget: float | None, violation: float = 0.0, advice: str = ""
) -> str:
    """Return how a run ended as a sentence, with others if it missed its target or constraints.

    ``advice`` is what else to say if the run had no success.
    """
    sentences = [status.sentence]
    success = succeeded(fun, status, ftarget, violation)
    if fun == math.inf and status not in (Status.RUNNING, *OF_ONE_RUN):
        sentences.append(_NOTHING_YET)
    elif status in _CUT_SHORT:
        sentences.append(_SO_FAR)
    if status != Status.RUNNING:
        if 0 < violation < math.inf:
            sentences = _without_feasible(status, violation)
        if ftarget is not None and not success:
            sentences.append(f"The target ftarget = {ftarget:g} was not reached.")
    if advice and not success:
        sentences.append(advice)
    return " ".join(sentences)


_CUT_SHORT = (Status.INTERRUPTED, Status.TERMINATED, Status.ERROR)


_SO_FAR = "x is the best candidate so far."


_NOTHING_YET = "No candidate has a value yet, so x is the mean of the distribution."


def _without_feasible(status: Status, violation: float) -> list[str]:
    """Return how a run ended in which every candidate violated a constraint."""
    found = f"No feasible candidate was found: x violates a constraint by {violation:.3g}"
    # The cause is not noise: the values that are ranked change with the multipliers.
    ended = "The search made no more progress." if status == Status.STAGNATION else status.sentence
    if status not in OF_ONE_RUN:
        return [ended, f"{found}, the least so far."]
    return [
        f"{found}, the least of all candidates.",
        ended,
        "If the constraints do not contradict each other, use restarts, or start from a feasible "
        "x0.",
    ]


# These end one run. The others end the search, and are true of all runs.
OF_ONE_RUN = (
    Status.TOLX,
    Status.TOLFUN,
    Status.FLAT,
    Status.STAGNATION,
    Status.CONDITION,
    Status.SCALE,
    Status.SIGMA_UP,
    Status.SIGMA_UNDERFLOW,
    Status.INFEASIBLE,
    Status.VIOLATED,
)
