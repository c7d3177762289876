"""Parts of a result: the summary of a run, and what repeated evaluations showed."""

import math
from dataclasses import dataclass

from fmnes.records.status import Status


@dataclass(frozen=True)
class Run:
    """Summary of one run of a restart schedule.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [1.0, 2.0], 0.5, maxiter=3, rng=1)
    >>> run = result.restarts[-1]
    >>> run.popsize, run.nit, run.nfev
    (6, 3, 20)
    """

    popsize: int  # of the first generation
    sigma0: float  # the initial step size
    nfev: int  # evaluations and generations
    nit: int
    fun: float  # the best value
    status: Status


@dataclass(frozen=True)
class Noise:
    """What repeated evaluations of a search's two points showed; see `fmnes.reevaluate`.

    Examples
    --------
    >>> import fmnes
    >>> noise = fmnes.Noise(n=25, std=1.0, mean_fun=0.1, mean_error=0.2, x_fun=0.9, x_error=0.2)
    >>> noise.is_noisy, noise.better, round(noise.certainty, 3)
    (True, 'mean', 0.998)
    """

    n: int  # evaluations of each point
    std: float  # standard deviation of the values at the same point
    mean_fun: float  # average value at the mean of the distribution, and its standard error
    mean_error: float
    x_fun: float  # the same for the best point of the search
    x_error: float

    @property
    def is_noisy(self) -> bool:
        """Whether the values at one point differed."""
        return self.std > 0

    @property
    def better(self) -> str:
        """The point with the better average: "mean" or "x"."""
        return "mean" if self.mean_fun < self.x_fun else "x"

    @property
    def certainty(self) -> float:
        """Probability that `better` is right, for normal errors: 0.5 is a guess, NaN unknown."""
        error = math.hypot(self.mean_error, self.x_error)
        difference = abs(self.mean_fun - self.x_fun)
        if error == 0:
            return 1.0 if difference else 0.5
        return 0.5 * (1 + math.erf(difference / error / math.sqrt(2)))
