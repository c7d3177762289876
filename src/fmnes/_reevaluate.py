"""reevaluate(): how noisy the objective is, and how good the mean of a search is."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes.evaluate import Evaluator, evaluate_vectorized
from fmnes.records.parts import Noise
from fmnes.records.result import Result
from fmnes.variables.space import OfSpace


def reevaluate(
    fun: Callable[..., Any],
    result: Result,
    n: int = 20,
    *,
    args: tuple[Any, ...] = (),
    vectorized: bool = False,
    workers: Any = None,
) -> Result:
    """Evaluate the mean and the best point of a search again, and return the Result with `noise`.

    The best value of a search of a noisy function is too good: it was selected among many values.
    Repeated evaluations of ``result.mean`` and ``result.x`` say which of them is better, how noisy
    the function is, and how sure that is.

    Parameters
    ----------
    fun : callable
        The objective function of the search.
    result : Result
        What `minimize` or `Optimizer.result` returned.
    n : int
        How often to evaluate each of the two points; at least 2. The standard errors fall as
        1/sqrt(n).
    args, vectorized, workers
        As in `minimize`. With ``vectorized``, one call has 2 n rows, and its values have to be
        independent of each other.

    Returns
    -------
    Result
        A copy of ``result`` with the field ``noise``, and the evaluations added to ``nfev`` and
        ``nfailed``. ``x``, ``fun`` and ``mean`` are those of the search.

    Examples
    --------
    >>> import numpy as np
    >>> import fmnes
    >>> noise = np.random.default_rng(1)
    >>> def noisy(x):
    ...     return (x**2).sum() + noise.normal()
    >>> result = fmnes.minimize(noisy, [3.0] * 10, 2.0, popsize=40, maxfevals=4001, rng=1)
    >>> result = fmnes.reevaluate(noisy, result, 50)
    >>> result.noise.is_noisy, result.noise.better
    (True, 'mean')
    >>> 0.7 < result.noise.std < 1.4
    True
    """
    checks.function("fun", fun)
    if not isinstance(result, Result):
        raise TypeError(f"result: expected a fmnes.Result, got {type(result).__name__}")
    n = checks.integer("n", n, least=2)
    checks.arguments("args", args)
    checks.boolean("vectorized", vectorized)
    if vectorized and workers is not None:
        raise ValueError(f"workers: expected None with vectorized=True, got {workers!r}")
    objective = fun if result.space is None else OfSpace(fun, result.space)
    xp = array_namespace(result.mean)
    points = xp.stack([result.mean] * n + [result.x] * n)
    if vectorized:
        outcome = evaluate_vectorized(objective, args, points)
    elif isinstance(workers, Evaluator):
        outcome = workers.evaluate(objective, args, points)
    else:
        with Evaluator(workers) as evaluator:
            outcome = evaluator.evaluate(objective, args, points)
    values = outcome.values
    return replace(
        result,
        noise=noise_of(values[:n], values[n:]),
        nfev=result.nfev + 2 * n,
        nfailed=result.nfailed + int(np.isnan(values).sum()),
    )


def noise_of(of_mean: NDArray[np.float64], of_x: NDArray[np.float64]) -> Noise:
    """Return what repeated values of two points show. Values that are not finite are left out."""
    samples = [values[np.isfinite(values)] for values in (of_mean, of_x)]
    (mean_fun, mean_std), (x_fun, x_std) = (_mean_and_std(values) for values in samples)
    # A standard deviation depends on the point. The one at the mean counts, if there is one.
    std = mean_std if math.isfinite(mean_std) else x_std
    return Noise(
        n=len(of_mean),
        std=std,
        mean_fun=mean_fun,
        mean_error=mean_std / math.sqrt(max(len(samples[0]), 1)),
        x_fun=x_fun,
        x_error=x_std / math.sqrt(max(len(samples[1]), 1)),
    )


def _mean_and_std(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the standard deviation; inf and NaN where there are too few values."""
    if len(values) < 2:
        return float(values[0]) if len(values) else math.inf, math.nan
    if (values == values[0]).all():  # the mean of equal values may differ in the last digit
        return float(values[0]), 0.0
    return float(np.mean(values)), float(np.std(values, ddof=1))
