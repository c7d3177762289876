"""The categorical distribution of choices: how likely each option is, and how a search learns it.

CatCMA with margin (Hamano et al., GECCO 2025, arXiv 2504.07884). Choice i has options k = 1 ... K_i
with probabilities q_ik. Candidates with rank weights w that sum to 1 move them along the natural
gradient of the expected rank,

    G_ik = sum (w of the candidates with option k) - q_ik,     q += (delta / |s|) G,           (1)

where s is the gradient in coordinates in which its length does not depend on q,

    s_ik = G_ik / sqrt(q_ik) + sqrt(q_ik) (sum_l<K G_il) / (q_iK + sqrt(q_iK)),   k < K_i.     (2)

All choices share the step delta = 1 / Delta. It shrinks if successive gradients cancel each other,
as noise does, and grows if they add up: with n = sum (K_i - 1) and beta = delta / sqrt(n),

    p <- (1 - beta) p + sqrt(beta (2 - beta)) s / |s|,
    g <- (1 - beta)^2 g + beta (2 - beta),      Delta <- Delta exp(beta (g - |p|^2 / 1.5)).    (3)

Each option keeps a probability of at least alpha / (K_i - 1), so that a choice can always change:

    q <- max(q, least),     q <- q - (sum q - 1) (q - least) / (sum q - K least).              (4)

The functions are pure. Arrays have one row for each choice, as long as the longest.
"""

import math
from typing import NamedTuple

from array_api_compat import array_namespace

from fmnes._arrays import Array, Namespace

_FIRST = 0.5  # the part of the probability that is given to the option of x0 at the start
_LONGEST = 1.5  # |p|^2 in units of g at which delta stays as it is


class Chances(NamedTuple):
    """The distribution of all choices, and what its adaptation remembers."""

    q: Array  # (choices, most options); 0 beyond the options of a choice
    path: Array  # p, of the same shape
    pace: Array  # (2,): Delta and g


def start(options: Array, least: Array, most: int, first: Array) -> Chances:
    """Return the distribution at the start: equal chances, or ``first`` >= 0 is preferred."""
    xp = array_namespace(least)
    k = xp.arange(most, dtype=least.dtype, device=least.device)
    exists = xp.astype(k < options[:, None], least.dtype)
    equal = exists / xp.sum(exists, axis=1, keepdims=True)
    preferred = xp.astype(k == first[:, None], least.dtype)
    given = (1 - _FIRST) * equal + _FIRST * preferred
    q = xp.where(first[:, None] >= 0, given, equal)
    pace = xp.asarray([1.0, 0.0], dtype=least.dtype, device=least.device)
    return Chances(_kept(xp, q, exists, least), xp.zeros_like(q), pace)


def drawn(q: Array, options: Array, u: Array) -> Array:
    """Return the option for each number u between 0 and 1, of shape (..., choices)."""
    xp = array_namespace(q)
    ends = xp.cumulative_sum(q, axis=1)
    option = xp.sum(xp.astype(u[..., None] >= ends, q.dtype), axis=-1)
    return xp.minimum(option, options - 1)  # sums end at 1 up to rounding


def centre_of(q: Array, option: Array) -> Array:
    """Return the number u in the middle of those that give an option: `drawn` backwards."""
    xp = array_namespace(q)
    k = xp.arange(q.shape[1], dtype=q.dtype, device=q.device)
    below = xp.where(k < option[..., None], q, xp.zeros_like(q))
    own = xp.where(k == option[..., None], q, xp.zeros_like(q))
    return xp.sum(below + own / 2, axis=-1)


def after(chances: Chances, options: Array, least: Array, found: Array) -> Chances:
    """Return the distribution after a generation.

    ``found`` has the sum of the weights of the candidates with each option.
    """
    xp, (q, path, pace) = array_namespace(least), chances
    k = xp.arange(q.shape[1], dtype=q.dtype, device=q.device)
    exists = xp.astype(k < options[:, None], q.dtype)
    is_last = xp.astype(k == options[:, None] - 1, q.dtype)
    gradient = exists * (found - q)
    root = xp.sqrt(q) + (1 - exists)  # no division by 0
    last = xp.sum(q * is_last, axis=1, keepdims=True)
    others = xp.sum(gradient * (1 - is_last), axis=1, keepdims=True)
    s = (exists - is_last) * (gradient / root + root * others / (last + xp.sqrt(last)))  # (2)
    length = xp.sqrt(xp.sum(s * s))
    if not float(length) > 0:
        return chances
    total = float(xp.sum(exists - is_last))
    delta = 1 / pace[0]
    q = _kept(xp, q + delta / length * gradient, exists, least)  # (1), (4)
    beta = delta / math.sqrt(total)
    path = (1 - beta) * path + xp.sqrt(beta * (2 - beta)) * s / length
    g = (1 - beta) ** 2 * pace[1] + beta * (2 - beta)
    Delta = pace[0] * xp.exp(beta * (g - xp.sum(path * path) / _LONGEST))  # (3)
    Delta = xp.maximum(Delta, xp.ones_like(Delta) / math.sqrt(total))  # beta <= 1
    return Chances(q, path, xp.stack([Delta, g]))


def _kept(xp: Namespace, q: Array, exists: Array, least: Array) -> Array:
    """Return probabilities that are at least ``least`` and sum to 1: (4)."""
    floor = least[:, None] * exists
    q = xp.maximum(q, floor) * exists
    total, floors = (xp.sum(part, axis=1, keepdims=True) for part in (q, floor))
    return q - (total - 1) * (q - floor) / (total - floors)
