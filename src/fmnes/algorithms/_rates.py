"""Learning rates of the mean and of sigma that follow the noise, for the method "auto".

If values are noisy, or a landscape has many small hills, a step of the mean is mostly chance. The
mean then learns more slowly, so that it averages over many generations at the default population.
Rates follow two signal-to-noise ratios that cost one vector and two dot products. Letters in
parentheses are the equations of docs/methods/auto.md, which tells where they come from.
"""

import math
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from fmnes._arrays import Array, Namespace, to_host
from fmnes.algorithms._vectors import at_least, at_most, norm2

_LEAST_RATE = 1e-4


class RateParams(NamedTuple):
    """Constants of the learning rates for a dimension and a population size."""

    least_ratio: float  # signal-to-noise ratio of the mean's step that a rate of 1 needs
    linear_ratio: float  # that of a linear function without noise
    sigma_ratio: float  # that of sigma's step if the length of the draws alone decides the ranking
    speed: float = 0.1  # of the rate's own adaptation
    most_change: float = 0.1  # of the logarithm of the rate in a generation
    least_rate: float = _LEAST_RATE  # 1: all rates stay at 1
    window: float = 0.3  # averages of the mean look back over 1/(window rate) generations,
    shortest: float = 0.2  # but not over less than 1/shortest
    longest: float = 0.002  # and not over more than 1/longest
    sigma_window: float = 0.1
    widening: float = 0.3  # sigma grows by the fall of the rate to this power
    # Sigma may fall faster than the mean if the lengths of the draws decide the ranking this many
    # times more than a linear function does.
    settled: float = 10.0


class Rates(NamedTuple):
    """What the rates remember; arrays of one dtype and device."""

    eta: Array  # the learning rate of the mean
    m_gradient: Array  # (d,): average of the mean's gradients
    m_averages: Array  # (3,): of their products with m_gradient, of their squares, and of 1
    sigma_averages: Array  # (2,): of sigma's gradient and its square


class Factors(NamedTuple):
    """What the steps of a generation are multiplied by."""

    mean: Array  # the step of the mean
    sigma: Array  # the step of log sigma
    widening: Array  # sigma itself


def rate_params(
    dim: int,
    w_hat: NDArray[np.float64],
    scores: NDArray[np.float64],
    normal_scores: NDArray[np.float64],
    *,
    fixed: bool = False,
) -> RateParams:
    """The constants, from the weights of sigma and the mean, and expected ordered normal numbers.

    With ``fixed`` all rates stay at 1.
    """

    def ratio(weights: NDArray[np.float64]) -> float:
        """The squared signal over the noise, if one normal number decides the ranking."""
        return float(weights @ normal_scores) ** 2 / float(weights @ weights)

    return RateParams(
        least_ratio=0.15 / math.sqrt(dim),
        linear_ratio=ratio(scores) / dim,
        sigma_ratio=ratio(w_hat),
        least_rate=1.0 if fixed else _LEAST_RATE,
    )


def first_rates(mean: Array) -> Rates:
    """The rates before the first generation."""
    xp = array_namespace(mean)

    def zeros(*sizes: int) -> Array:
        return xp.zeros(sizes, dtype=mean.dtype, device=device(mean))

    return Rates(zeros() + 1, zeros(mean.shape[0]), zeros(3), zeros(2))


def followed_rates(
    xp: Namespace, params: RateParams, rates: Rates, g: Array, G_sigma: Array
) -> tuple[Rates, Factors]:
    """The same with a rate that is known also where it is fixed, and the steps stay whole."""
    free = params._replace(least_rate=_LEAST_RATE)
    new, factors = next_rates(xp, free, rates, g, G_sigma)
    whole = xp.ones_like(new.eta)
    return new, Factors(whole, whole, whole) if params.least_rate == 1 else factors


def _within(xp: Namespace, x: Array, least: float, most: float) -> Array:
    return at_most(xp, at_least(xp, x, least), most)


def _lengths(xp: Namespace, params: RateParams, mean_G: Array, mean_G2: Array) -> Array:
    """How much of the ranking the lengths of the draws decide, from 0 to 1 (m)."""
    c = params.sigma_window
    clear = mean_G * mean_G - c / (2 - c) * mean_G2
    tiny = xp.finfo(mean_G.dtype).smallest_normal
    ratio = clear / at_least(xp, mean_G2 - mean_G * mean_G, tiny)
    return _within(xp, ratio / params.sigma_ratio, 0.0, 1.0)


def next_rates(
    xp: Namespace, params: RateParams, rates: Rates, g: Array, G_sigma: Array
) -> tuple[Rates, Factors]:
    """The rates after a generation with the gradients g of the mean and G_sigma of sigma."""
    tiny = xp.finfo(g.dtype).smallest_normal
    eta, E = rates.eta, rates.m_gradient
    b = _within(xp, params.window * eta, params.longest, params.shortest)
    # The averages start at 0; ``seen`` is the share of them that is not the start. (k)
    seen = rates.m_averages[2] + b * (1 - rates.m_averages[2])
    product = xp.sum(g * E) / seen  # unbiased: this generation against the earlier ones
    signal = rates.m_averages[0] + b * (product - rates.m_averages[0])
    noise = rates.m_averages[1] + b * (norm2(xp, g) - rates.m_averages[1])
    size = at_least(xp, noise / seen, tiny)
    # The rate moves towards the signal-to-noise ratio. (l)
    change = params.speed * (product / size / params.least_ratio - eta)
    change = _within(xp, change, -params.most_change, params.most_change)
    new_eta = _within(xp, eta * xp.exp(change), params.least_rate, 1.0)
    # How much of the ranking the lengths of the draws decide, and a linear function of them. (m)
    c = params.sigma_window
    mean_G = rates.sigma_averages[0] + c * (G_sigma - rates.sigma_averages[0])
    mean_G2 = rates.sigma_averages[1] + c * (G_sigma * G_sigma - rates.sigma_averages[1])
    lengths = _lengths(xp, params, mean_G, mean_G2)
    linear = at_least(xp, signal / (size * seen) / params.linear_ratio, 0.0)
    # Once the mean has settled in the middle of the samples, sigma need not wait for it. (n)
    room = at_least(xp, lengths - params.settled * linear, 0.0)
    # exp and log instead of **, which NumPy rounds differently for scalars and for arrays.
    widening = xp.exp(params.widening * xp.log(eta / new_eta))
    factors = Factors(new_eta, _within(xp, new_eta + room * room, 0.0, 1.0), widening)
    averages = xp.stack([signal, noise, seen])
    return Rates(new_eta, E + b * (g - E), averages, xp.stack([mean_G, mean_G2])), factors


# === A population size that follows the noise instead ===

_SEEN = 0.8  # share of the averages that is not their start, before they say anything
_SILENT, _LOUD = 0.05, 0.3  # how much of the ranking the lengths decide: in noise, and without
_ENOUGH = 3.0  # signal-to-noise ratio of the mean, over the least one, for half the population


def popsize_factor(xp: Namespace, params: RateParams, rates: Rates, *, shape_learns: bool) -> float:
    """By which factor the population should change, 2, 1 or 1/2, if rates stay at 1 (q).

    The population grows if nothing learns: the values say nothing about the mean, about sigma or
    about the shape.
    """
    signal, noise, seen = (float(x) for x in to_host(rates.m_averages))
    if seen < _SEEN or noise <= 0:
        return 1.0
    ratio = signal / noise / params.least_ratio
    lengths = float(_lengths(xp, params, rates.sigma_averages[0], rates.sigma_averages[1]))
    if ratio < 1 and lengths < _SILENT and not shape_learns:
        return 2.0
    return 0.5 if ratio > _ENOUGH or lengths > _LOUD else 1.0


def forgotten(rates: Rates) -> Rates:
    """The rates without what they remember of the mean: a new population begins anew (q)."""
    first = first_rates(rates.m_gradient)
    return first._replace(sigma_averages=rates.sigma_averages)
