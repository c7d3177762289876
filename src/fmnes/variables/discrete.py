"""Integers and choices: variables with finitely many values, sampled by the method's own Gaussian.

The method searches among real numbers. For a variable with finitely many values we round: each
discrete coordinate y of the method becomes the latent number

    e = centre + scale (y - mean).                                                        (1)

An integer variable takes the integer nearest to e, within its bounds. A choice among more than two
options takes the option that a categorical distribution (`categorical.py`) has at the quantile
Phi((y - mean)/deviation). The method, its state and the engine that computes it stay as they are,
and everything here costs O(d) for a candidate, and O(K) for a choice. Two things make it work.

**A margin.** Once the method's deviations are small, a rounded variable would never change again.
The deviation of e has a lower limit, and the centre stays near the values, so that every integer
variable leaves its value with a probability of at least alpha:

    s = max(deviation of y, 1 / (2 q)),   scale = s / (deviation of y),                   (2)
    centre within [low + 1/2 - q s, high - 1/2 + q s].                                    (3)

q is the upper alpha/2-quantile of the normal distribution, and the upper alpha-quantile for a
variable of two values, which has one threshold. CMA-ES with margin (Hamano et al., GECCO 2022,
arXiv 2205.13482) keeps the same probabilities by a scale that it changes only where a probability
is too small; a lower limit of the deviation is how pycma does it (Marty et al., PPSN 2024). The
number alpha = 1 - 0.73^(1/n) for n discrete variables is that of CatCMA with margin (Hamano et al.,
GECCO 2025, arXiv 2504.07884).

**Ends of a range.** Beyond the last value of an integer, all e have the same value: a plateau. With
a few values that does no harm, and an optimum at the end is found quickly. With hundreds of values
and an optimum near the end, but not on it, the plateau is better than most of the range: a search
moves there and stays. An integer of nine or more values therefore has mirrors half a unit beyond
its ends. With n = high - low + 1 values and m = round(e) - low modulo 2 n, the value is

    x = low + min(m, 2 n - 1 - m).                                                        (4)

The e of the value at an end then have an interval of length 2, and (3) becomes: the distance of
the centre to the nearest threshold is at most q s. With deviations much larger than n all values
would have equal chances, so that s is at most n/2.

**What the centre learns.** Two candidates with the same rounded value have the same objective
value. Where e lies between two thresholds is therefore noise, and it would move the centre at
random. We replace it by its expectation, given the rounded value (Rao and Blackwell): with rank
weights w, value v at the centre, and a = (v - 1/2 - centre)/s, b = (v + 1/2 - centre)/s (further
away, or infinite, for the value at an end),

    centre += sum_i w_i (e_i - centre if x_i != v, else s (phi(a) - phi(b))/(Phi(b) - Phi(a))). (5)

(A candidate that left v lies close behind a threshold, so that its own e is as good as the
expectation.)
"""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes._arrays import Array, Namespace, beside, constant
from fmnes.algorithms import Algorithm
from fmnes.algorithms import _weights as weights
from fmnes.engines import Engine, Generation
from fmnes.engines.generation import pieces
from fmnes.variables.bounds import Box
from fmnes.variables.categorical import Chances, centre_of, drawn
from fmnes.variables.categorical import after as chances_after
from fmnes.variables.categorical import start as initial_chances

_MANY = 9  # an integer with so many values has mirrors at the ends of its range
_UNCHANGED = 0.73  # the probability that the margin changes no value of a candidate


class Margin(NamedTuple):
    """What changes from generation to generation; see (1), and `Chances` for the choices."""

    centre: Array
    scale: Array
    best: Array  # the latent numbers of the best candidate; reals are as the method has them
    q: Array
    path: Array
    pace: Array

    @property
    def chances(self) -> Chances:
        """The distribution of the choices."""
        return Chances(self.q, self.path, self.pace)


class Discrete(NamedTuple):
    """Which coordinates of the search are discrete, and what values they take."""

    is_integer: Array  # (d,) bool
    low: Array  # (d,): smallest and largest value of an integer; 0 for the others
    high: Array
    is_choice: Array  # (d,) bool
    choice: Array  # (d,) int: the number of the choice; 0 for the others
    column: Array  # (choices,) int: the coordinate of each choice
    options: Array  # (choices,): how many it has
    least: Array  # (choices,): the least probability of each of its options
    reach: Array  # (d,): q

    @classmethod
    def build(
        cls,
        xp: Namespace,
        like: Array,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        is_integer: NDArray[np.bool_],
        choices: tuple[tuple[int, int], ...] = (),
    ) -> "Discrete":
        """Return the record for bounds of integers; coordinate and number of options of choices."""
        alpha = least_probability(int(is_integer.sum()) + len(choices))
        reach = np.where(high - low > 1.5, quantile(alpha / 2), quantile(alpha))
        column, options = np.array(choices, np.int64).reshape(-1, 2).T
        choice = np.full(low.shape, -1)
        choice[column] = np.arange(len(choices))

        def number(value: Any) -> Array:
            return constant(xp, value, like)

        def index(value: Any) -> Array:
            return beside(xp, value, like)

        return cls(
            is_integer=index(is_integer),
            low=number(np.where(is_integer, low, 0.0)),
            high=number(np.where(is_integer, high, 0.0)),
            is_choice=index(choice >= 0),
            choice=index(np.maximum(choice, 0)),
            column=index(column),
            options=number(options),
            least=number(alpha / np.maximum(options - 1, 1)),
            reach=number(reach),
        )

    # === From the search to values ===

    def latent(self, margin: Margin, mean: Array, y: Array) -> Array:
        """Return the latent numbers (1) of coordinates of the search; reals are unchanged.

        The latent number of a choice is the number of its option.
        """
        xp = array_namespace(mean)
        moved = margin.centre + margin.scale * (y - mean)
        latent = xp.where(self.is_integer, moved, y)
        if not self.has_choices:
            return latent
        u = _exactly_below(xp, xp.take(moved, self.column, axis=-1))
        return self._with_options(xp, latent, drawn(margin.q, self.options, u))

    def latent_mean(self, margin: Margin, mean: Array) -> Array:
        """Return the latent numbers of the mean: those of a choice are the most likely option."""
        xp = array_namespace(mean)
        latent = xp.where(self.is_integer, margin.centre, mean)
        if not self.has_choices:
            return latent
        likely = xp.astype(xp.argmax(margin.q, axis=1), mean.dtype)
        return self._with_options(xp, latent, likely)

    def unchanged(self, latent: Array, latent_mean: Array) -> Array:
        """Return which candidates have the same integers and choices as the mean."""
        xp = array_namespace(latent)
        same = self.rounded(latent) == self.rounded(latent_mean)
        return xp.all(same | ~(self.is_integer | self.is_choice), axis=-1)

    @property
    def has_choices(self) -> bool:
        """Whether there are choices of more than two options."""
        return int(self.column.shape[0]) > 0

    def _with_options(self, xp: Namespace, latent: Array, options: Array) -> Array:
        return xp.where(self.is_choice, xp.take(options, self.choice, axis=-1), latent)

    def search_of(self, margin: Margin, mean: Array, latent: Array) -> Array:
        """Return coordinates of the search for values, near the centre: `latent` backwards."""
        xp, centre, n = array_namespace(mean), margin.centre, self._count
        turn = xp.floor((centre - self.low + 0.5) / n)
        ahead, back = latent + turn * n, 2 * self.low - latent + (turn + 1) * n - 1
        images = xp.where(xp.remainder(turn, 2 * xp.ones_like(turn)) == 0, ahead, back)
        images = xp.where(self._is_wide, images, latent)
        if self.has_choices:
            u = centre_of(margin.q, xp.take(latent, self.column, axis=-1))
            images = self._with_options(xp, images, _quantiles(xp, u))
        moved = mean + (images - centre) / margin.scale
        return xp.where(self.is_integer | self.is_choice, moved, latent)

    def contains(self, latent: Array) -> bool:
        """Return whether each integer variable is nearest to an integer within its bounds."""
        xp = array_namespace(latent)
        inside = (self.low - 0.5 <= latent) & (latent <= self.high + 0.5)
        return bool(xp.all(inside | ~self.is_integer))

    def rounded(self, latent: Array) -> Array:
        """Return the values of the variables for latent numbers; rows are mapped one by one."""
        xp = array_namespace(latent)
        x = xp.where(self.is_integer, self._nearest(xp, latent), latent)
        return xp.where(self.is_choice, xp.maximum(latent, xp.zeros_like(latent)), x)

    def _nearest(self, xp: Namespace, latent: Array) -> Array:
        """Return the integer values for latent numbers."""
        near = xp.round(latent)
        ends = xp.minimum(xp.maximum(near, self.low), self.high)
        turns = xp.remainder(near - self.low, 2 * self._count)
        mirrored = self.low + xp.minimum(turns, 2 * self._count - 1 - turns)  # (4)
        return xp.where(self._is_wide, mirrored, ends)

    @property
    def _count(self) -> Array:
        """The number of values of integer variables."""
        return self.high - self.low + 1

    @property
    def _is_wide(self) -> Array:
        """Which variables have so many values that the ends of their range are mirrors."""
        return self._count >= _MANY

    def _cell(self, xp: Namespace, centre: Array) -> tuple[Array, Array]:
        """Return between which latent numbers the value is that of the centre."""
        v = self._nearest(xp, centre)
        near = xp.where(self._is_wide, xp.round(centre), v)
        none = xp.zeros_like(v)
        further = xp.where(self._is_wide, none + 1.0, none + xp.inf)
        below, above = (
            xp.where(self._nearest(xp, near + step) == v, further, none) for step in (-1, 1)
        )
        return near - 0.5 - below, near + 0.5 + above

    # === From generation to generation ===

    def start(self, mean: Array, deviations: Array) -> Margin:
        """Return the margin that a run starts with: its centre is the method's mean."""
        xp = array_namespace(mean)
        best = xp.asarray(mean, copy=True)
        most = int(xp.max(self.options)) if self.has_choices else 1
        first = xp.round(xp.take(mean, self.column))
        chances = initial_chances(self.options, self.least, most, first)
        return Margin(*self.kept(best, deviations), best, *chances)

    def kept(self, centre: Array, deviations: Array) -> tuple[Array, Array]:
        """Return centre and scale with the margin kept: (2) and (3)."""
        xp, q = array_namespace(centre), self.reach
        least = xp.where(self.is_integer, 0.5 / q, xp.zeros_like(q))
        s = xp.maximum(deviations, least)  # (2)
        s = xp.where(self._is_wide, xp.minimum(s, self._count / 2), s)
        s = xp.where(self.is_choice, xp.ones_like(q), s)
        low, high = self.low + 0.5 - q * s, self.high - 0.5 + q * s
        inside = xp.minimum(xp.maximum(centre, low), high)  # (3)
        inside = xp.where(self._is_wide, self._near_threshold(xp, centre, q * s), inside)
        centre = xp.where(self.is_integer, inside, xp.zeros_like(centre))
        return centre, s / deviations

    def _near_threshold(self, xp: Namespace, centre: Array, most: Array) -> Array:
        """Return the centre, at most this far from the nearest threshold around it."""
        a, b = self._cell(xp, centre)
        with np.errstate(invalid="ignore"):  # of cells without an end, not used
            middle, half = (a + b) / 2, (b - a) / 2
            off = centre - middle
            least = xp.maximum(xp.abs(off), half - most)
            return middle + xp.where(off < 0, -least, least)

    def shift(self, centre: Array, s: Array, e: Array, w: Array) -> Array:
        """Return the contribution of some candidates with weights w to (5)."""
        xp = array_namespace(centre)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # of reals, not used
            shift = self._integer_shift(xp, centre, s, e, w)
        return xp.where(self.is_integer, shift, xp.zeros_like(shift))

    def found(self, latent: Array, w: Array, most: int) -> Array:
        """Return the sum of the weights of some candidates with each option of each choice."""
        xp = array_namespace(latent)
        picked = xp.take(latent, self.column, axis=-1)[:, :, None]
        is_option = picked == xp.arange(most, dtype=latent.dtype, device=latent.device)
        return xp.sum(w[:, None, None] * xp.astype(is_option, latent.dtype), axis=0)

    def _integer_shift(self, xp: Namespace, centre: Array, s: Array, e: Array, w: Array) -> Array:
        v = self._nearest(xp, centre)
        left = self._nearest(xp, e) != v
        a, b = ((threshold - centre) / s for threshold in self._cell(xp, centre))
        expected = s * (_density(xp, a) - _density(xp, b)) / (_below(xp, b) - _below(xp, a))
        # Not a product of matrices, whose last digits depend on the kind of CPU.
        return xp.sum(w[:, None] * xp.where(left, e - centre, expected), axis=0)


def told(
    algorithm: Algorithm,
    engine: Engine,
    discrete: Discrete | None,
    margin: Margin | None,
    values: NDArray[np.float64],
    best_so_far: float,
    *,
    is_latent: bool = False,
) -> tuple[Generation, Margin | None]:
    """Tell an engine the values of a generation; return what it showed and the next margin.

    ``is_latent``: the candidates of the engine are latent numbers already (asynchronous).
    """
    if discrete is None or margin is None:
        return engine.tell(values, best_so_far), None
    xp = array_namespace(engine.state.mean)
    mean = xp.asarray(engine.state.mean, copy=True)  # it may be a view that changes
    s = margin.scale * algorithm.summary(engine.params, engine.state).deviations
    centre, w = margin.centre, constant(xp, _weights_of(values), mean)
    found = xp.zeros_like(margin.q)
    for a, b in pieces(algorithm, 0, values.shape[0], mean.shape[0]):
        y = engine.ask(a, b)
        e = y if is_latent else discrete.latent(margin, mean, y)
        centre = centre + discrete.shift(margin.centre, s, e, w[a:b])
        if discrete.has_choices:
            found = found + discrete.found(e, w[a:b], found.shape[1])
    shown = engine.tell(values, best_so_far)
    best = margin.best
    if shown.least < best_so_far:
        best = engine.best if is_latent else discrete.latent(margin, mean, engine.best)
    chances = margin.chances
    if shown.flat:
        centre = margin.centre  # a generation without information
    elif discrete.has_choices:
        chances = chances_after(chances, discrete.options, discrete.least, found)
    deviations = algorithm.summary(engine.params, engine.state).deviations
    return shown, Margin(*discrete.kept(centre, deviations), best, *chances)


def _weights_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank weights of the candidates; equal values share theirs."""
    f = np.where(weights.is_feasible(np, values), values, np.inf)
    w: NDArray[np.float64] = weights.by_candidate(
        np, weights.nes_weights(f.size), f, np.zeros(f.size)
    )
    return w


def to_user(box: Box | None, discrete: Discrete | None, latent: Array) -> Array:
    """Return latent numbers, or coordinates of the search, in the user's coordinates."""
    x = latent if discrete is None else discrete.rounded(latent)
    return x if box is None else box.to_user(array_namespace(x), x)


def least_probability(count: int) -> float:
    """Return alpha, the least probability with which each of ``count`` variables changes."""
    return 1.0 - math.exp(math.log(_UNCHANGED) / max(count, 1))


def quantile(probability: float) -> float:
    """Return the upper quantile of the normal distribution."""
    return -NormalDist().inv_cdf(probability)


def _density(xp: Namespace, u: Array) -> Array:
    return xp.exp(-u * u / 2) / math.sqrt(2 * math.pi)


def _below(xp: Namespace, u: Array) -> Array:
    """The normal distribution function to 3e-4: array libraries need not have the exact one."""
    u = xp.clip(u, -9.0, 9.0)
    return (1 + xp.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u * u * u))) / 2


def _exactly_below(xp: Namespace, u: Array) -> Array:
    """The same to 1e-7, for small probabilities (Abramowitz and Stegun, 26.2.17)."""
    t = 1 / (1 + 0.2316419 * xp.abs(u))
    sum_ = 1.330274429
    for coefficient in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        sum_ = coefficient + t * sum_
    tail = _density(xp, u) * t * sum_
    return xp.where(u < 0, tail, 1 - tail)


def _quantiles(xp: Namespace, probability: Array) -> Array:
    """The numbers at which `_exactly_below` has the given values, by bisection."""
    low = xp.full_like(probability, -9.0)
    width = 18.0
    for _ in range(60):
        width /= 2
        low = xp.where(_exactly_below(xp, low + width) < probability, low + width, low)
    return low
