"""Integers and choices: variables with finitely many values, sampled by the method's own Gaussian.

The method searches among real numbers. For a variable with finitely many values we round: each
discrete coordinate y of the method becomes the latent number

    e = centre + scale (y - mean).                                                        (1)

An integer variable takes the integer nearest to e, within its bounds. A choice among K options has
K coordinates and takes the option whose e is the largest; its values are 1 for that option and 0
for the others. The method, its state and the engine that computes it stay as they are, and
everything here costs O(d) for a candidate. Two things make it work.

**A margin.** Once the method's deviations are small, a rounded variable would never change again.
The deviation of e has a lower limit, and the centre stays near the values, so that every integer
variable leaves its value with a probability of at least alpha:

    s = max(deviation of y, 1 / (2 q)),   scale = s / (deviation of y),                   (2)
    centre within [low + 1/2 - q s, high - 1/2 + q s].                                    (3)

q is the upper alpha/2-quantile of the normal distribution, and the upper alpha-quantile for a
variable of two values, which has one threshold. The deviations of a choice have no scale, so s = 1,
and

    (centre of the leading option) - (centre of another) <= q sqrt(2),                    (4)

where q is the upper alpha/(K - 1)-quantile. CMA-ES with margin (Hamano et al., GECCO 2022, arXiv
2205.13482) keeps the same probabilities by a scale that it changes only where a probability is too
small; a lower limit of the deviation is how pycma does it (Marty et al., PPSN 2024). The number
alpha = 1 - 0.73^(1/n) for n discrete variables is that of CatCMA with margin (Hamano et al., GECCO
2025, arXiv 2504.07884).

**What the centre learns.** Two candidates with the same rounded value have the same objective
value. Where e lies between two thresholds is therefore noise, and it would move the centre at
random. We replace it by its expectation, given the rounded value (Rao and Blackwell): with rank
weights w, value v at the centre, and a = (v - 1/2 - centre)/s, b = (v + 1/2 - centre)/s,

    centre += sum_i w_i (e_i - centre if x_i != v, else s (phi(a) - phi(b))/(Phi(b) - Phi(a))). (5)

(A candidate that left v lies close behind a threshold, so that its own e is as good as the
expectation.) For a choice the candidates that leave the leading option l for k contribute their
e_k and e_l, and the others, in each pair (l, k) with the gap g = centre_l - centre_k,

    +-1/sqrt(2) phi(g/sqrt(2)) / Phi(g/sqrt(2)).                                          (6)
"""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes._coordinates import Box
from fmnes.algorithms import Algorithm
from fmnes.algorithms import _weights as weights
from fmnes.engines import Engine, Generation
from fmnes.engines.generation import pieces

_UNCHANGED = 0.73  # the probability that the margin changes no value of a candidate


class Margin(NamedTuple):
    """What changes from generation to generation; see (1)."""

    centre: Array
    scale: Array
    best: Array  # the latent numbers of the best candidate; reals are as the method has them


class Discrete(NamedTuple):
    """Which coordinates of the search are discrete, and what values they take."""

    is_integer: Array  # (d,) bool
    low: Array  # (d,): smallest and largest value of an integer; 0 for the others
    high: Array
    is_choice: Array  # (d,) bool
    choice: Array  # (d,) int: the number of the choice; 0 for the others
    members: Array  # (choices, most options) int: its coordinates; the first one fills the rest
    reach: Array  # (d,): q

    @classmethod
    def build(
        cls,
        xp: Namespace,
        like: Array,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        is_integer: NDArray[np.bool_],
        choices: tuple[tuple[int, ...], ...] = (),
    ) -> "Discrete":
        """Return the record for bounds of integers, and the coordinates of each choice."""
        alpha = least_probability(int(is_integer.sum()) + len(choices))
        reach = np.where(high - low > 1.5, quantile(alpha / 2), quantile(alpha))
        choice = np.full(low.shape, -1)
        for number, coordinates in enumerate(choices):
            indices = list(coordinates)
            choice[indices] = number
            reach[indices] = quantile(alpha / (len(indices) - 1))
        most = max(map(len, choices), default=1)
        members = [first + first[:1] * (most - len(first)) for first in choices]

        def number_array(value: Any) -> Array:
            return constant(xp, value, like)

        def index(value: Any) -> Array:  # booleans and integers keep their dtype
            return xp.asarray(value, device=like.device)

        return cls(
            is_integer=index(is_integer),
            low=number_array(np.where(is_integer, low, 0.0)),
            high=number_array(np.where(is_integer, high, 0.0)),
            is_choice=index(choice >= 0),
            choice=index(np.maximum(choice, 0)),
            members=index(np.array(members, np.int64).reshape(len(choices), most)),
            reach=number_array(reach),
        )

    # === From the search to values ===

    def latent(self, margin: Margin, mean: Array, y: Array) -> Array:
        """Return the latent numbers (1) of coordinates of the search; reals are unchanged."""
        moved = margin.centre + margin.scale * (y - mean)
        return array_namespace(mean).where(self.is_integer | self.is_choice, moved, y)

    def search_of(self, margin: Margin, mean: Array, latent: Array) -> Array:
        """Return coordinates of the search for latent numbers: `latent` backwards."""
        moved = mean + (latent - margin.centre) / margin.scale
        return array_namespace(mean).where(self.is_integer | self.is_choice, moved, latent)

    def rounded(self, latent: Array) -> Array:
        """Return the values of the variables for latent numbers; rows are mapped one by one."""
        xp = array_namespace(latent)
        x = xp.where(self.is_integer, self._nearest(xp, latent), latent)
        if self.members.shape[0] == 0:
            return x
        index = xp.arange(latent.shape[-1], device=latent.device)
        chosen = xp.astype(self._leader(xp, latent) == index, x.dtype)
        return xp.where(self.is_choice, chosen, x)

    def _nearest(self, xp: Namespace, latent: Array) -> Array:
        return xp.minimum(xp.maximum(xp.round(latent), self.low), self.high)

    def _leader(self, xp: Namespace, latent: Array) -> Array:
        """Return, for each coordinate of a choice, the coordinate with the largest number."""
        count, most = self.members.shape
        flat = xp.reshape(self.members, (count * most,))
        numbers = xp.reshape(xp.take(latent, flat, axis=-1), (*latent.shape[:-1], count, most))
        winner = xp.argmax(numbers, axis=-1) + most * xp.arange(count, device=latent.device)
        leaders = xp.take(flat, xp.reshape(winner, (-1,)))
        return xp.take(xp.reshape(leaders, winner.shape), self.choice, axis=-1)

    # === From generation to generation ===

    def start(self, mean: Array, deviations: Array) -> Margin:
        """Return the margin that a run starts with: its centre is the method's mean."""
        xp = array_namespace(mean)
        best = xp.asarray(mean, copy=True)
        return Margin(*self.kept(best, deviations), best)

    def kept(self, centre: Array, deviations: Array) -> tuple[Array, Array]:
        """Return centre and scale with the margin kept: (2), (3) and (4)."""
        xp, q = array_namespace(centre), self.reach
        least = xp.where(self.is_integer, 0.5 / q, xp.zeros_like(q))
        s = xp.where(self.is_choice, xp.ones_like(q), xp.maximum(deviations, least))  # (2)
        low, high = self.low + 0.5 - q * s, self.high - 0.5 + q * s
        inside = xp.minimum(xp.maximum(centre, low), high)  # (3)
        centre = xp.where(self.is_integer, inside, centre)
        if self.members.shape[0]:
            gap = xp.take(centre, self._leader(xp, centre)) - centre
            nearer = -xp.minimum(gap, math.sqrt(2) * q)  # (4): the leader is at 0
            centre = xp.where(self.is_choice, nearer, centre)
        return centre, s / deviations

    def shift(self, centre: Array, s: Array, e: Array, w: Array) -> Array:
        """Return the contribution of some candidates with weights w to (5) and (6)."""
        xp = array_namespace(centre)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # of reals, not used
            shift = self._integer_shift(xp, centre, s, e, w)
            if self.members.shape[0]:
                shift = xp.where(self.is_choice, self._choice_shift(xp, centre, e, w), shift)
        return xp.where(self.is_integer | self.is_choice, shift, xp.zeros_like(shift))

    def _integer_shift(self, xp: Namespace, centre: Array, s: Array, e: Array, w: Array) -> Array:
        v = self._nearest(xp, centre)
        left = self._nearest(xp, e) != v
        a = xp.where(v == self.low, -xp.inf, (v - 0.5 - centre) / s)
        b = xp.where(v == self.high, xp.inf, (v + 0.5 - centre) / s)
        expected = s * (_density(xp, a) - _density(xp, b)) / (_below(xp, b) - _below(xp, a))
        return w @ xp.where(left, e - centre, expected)

    def _choice_shift(self, xp: Namespace, centre: Array, e: Array, w: Array) -> Array:
        leader, winner = self._leader(xp, centre), self._leader(xp, e)
        index = xp.arange(centre.shape[0], device=centre.device)
        left = winner != leader
        involved = left & ((index == winner) | (index == leader))
        moved = w @ xp.where(involved, e - centre, xp.zeros_like(e))
        g = (xp.take(centre, leader) - centre) / math.sqrt(2)
        pull = xp.where(index == leader, 0.0, _density(xp, g) / _below(xp, g) / math.sqrt(2))
        stayed = w @ xp.astype(~left, e.dtype)
        count, most = self.members.shape
        flat = xp.reshape(self.members, (count * most,))
        first = xp.arange(most, device=centre.device) == 0  # the rest of a short row repeats it
        fresh = first | (self.members != self.members[:, :1])
        of_choice = xp.reshape(xp.take(pull, flat), (count, most)) * xp.astype(fresh, e.dtype)
        total = xp.take(xp.sum(of_choice, axis=1), self.choice)
        return moved + stayed * xp.where(index == leader, total, -pull)


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
    for a, b in pieces(algorithm, 0, values.shape[0], mean.shape[0]):
        y = engine.ask(a, b)
        e = y if is_latent else discrete.latent(margin, mean, y)
        centre = centre + discrete.shift(margin.centre, s, e, w[a:b])
    shown = engine.tell(values, best_so_far)
    best = margin.best
    if shown.least < best_so_far:
        best = engine.best if is_latent else discrete.latent(margin, mean, engine.best)
    if shown.flat:
        centre = margin.centre  # a generation without information
    deviations = algorithm.summary(engine.params, engine.state).deviations
    return shown, Margin(*discrete.kept(centre, deviations), best)


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
