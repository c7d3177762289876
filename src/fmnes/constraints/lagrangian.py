"""The augmented Lagrangian: constraints as terms of the values that a method ranks.

A. Atamna, A. Auger, N. Hansen: "Linearly convergent evolution strategies via augmented Lagrangian
constraint handling", FOGA 2017: (1), and (2) of its Algorithm 1. (3) and (4) are later changes of
pycma (`cma.constraints_handler`, "algorithm 3"). With multipliers lambda and penalties mu of
constraints g(x) <= 0 and h(x) = 0, candidates are ranked by

    f + sum_i  lambda_i g_i + mu_i g_i^2 / 2   for an equality, or where g_i > -lambda_i / mu_i
               -lambda_i^2 / (2 mu_i)          elsewhere: the constraint does not matter there. (1)

Its minimum is the solution of the constrained problem once lambda has converged to the Lagrange
multipliers. After each generation, with g at the next mean and chi = 2^(1/(5 d)),

    lambda <- lambda + mu g / 5,   and at least 0 for an inequality,                            (2)
    mu <- mu chi^((1 + a)/4) or mu chi^(-(1 + a)/4),                                            (3)

the former where g > 0, or where g <= 0 is penalised and was <= 0 in more than 95 % of about the
last 5 + d generations; the latter where g < 0 and this share is below 90 %. The exponent a grows
from 0 to 4 while mu moves in one direction. They start at, with interquartile ranges over the
candidates of a generation,

    lambda = iqr(f) / (d iqr(g)),   mu = 40 iqr(f) / (d iqr(g)^2).                               (4)

(pycma has mu = 2 iqr(f) / (5 d (iqr(g) + 1e-6 iqr(g^2))), which depends on the units of f and g. On
bbob-constrained ours solves more targets.)

All functions are pure. Only the values that are ranked depend on the constraints, so every method
and every engine can be used, in O(m) per candidate.

An equality h = 0 is also -h = 0, and mu is adapted by rules for g <= 0, in which g > 0 means that
lambda is too small. We therefore take the sign of h for which lambda >= 0 before a generation, and
give lambda its own sign back after it: a search with -h is the same search.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.constraints.kinds import Floats

_DAMPING = 5.0  # of the multipliers
_MARGIN, _LARGEST_MARGIN = 0.5, 8.0  # factors of the margins
_DROUGHT = 20  # generations without a feasible candidate after which the margins grow
_SETTLED = 0.1  # a generation with this share of candidates on either side settles mu
_RESOLVED = 1e-14  # of the values: smaller differences are rounding errors
_FIRST_MU, _FIRST_MU_OF_KNOWN = 40.0, 4.0  # the factor of mu in (4), and if lambda is known


class Lagrangian(NamedTuple):
    """Multipliers and penalties of the constraints, and what their adaptation remembers."""

    equality: NDArray[np.bool_]  # (m,): which constraints are h(x) = 0
    multipliers: Floats  # lambda, >= 0 for inequalities
    penalties: Floats  # mu; 0 until candidates violated the constraint
    settled: NDArray[np.bool_]  # whether mu is adapted, no longer initialised
    feasible: Floats  # share of the last generations in which the mean satisfied it
    direction: Floats  # the number of changes of mu in the same direction, with their sign
    updates: int  # generations since mu was first set
    margin: float  # a factor of the margins, see `_margins`
    drought: int  # generations without a feasible candidate


def initial(equality: NDArray[np.bool_], multipliers: Floats | None = None) -> Lagrangian:
    """No penalties yet: candidates are ranked by f alone. An earlier search may know lambda."""
    m = len(equality)
    none = np.zeros(m)
    return Lagrangian(
        equality=equality,
        multipliers=none if multipliers is None else multipliers.copy(),
        penalties=none,
        settled=np.zeros(m, bool),
        feasible=np.full(m, 0.5),
        direction=none,
        updates=0,
        margin=_MARGIN,
        drought=0,
    )


def merit(lagrangian: Lagrangian, f: Floats, g: Floats) -> Floats:
    """Return the values to rank, shape (n,), for values f and constraints g of shape (n, m).

    A candidate with NaN or an infinite number among its constraints has no merit: NaN.
    """
    equality, lam, mu = lagrangian.equality, lagrangian.multipliers, lagrangian.penalties
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least = np.where(equality, -np.inf, np.where(mu > 0, -lam / mu, 0.0))
        clipped = np.maximum(g, least)
        terms = np.where(mu > 0, clipped * (lam + 0.5 * mu * clipped), 0.0)  # (1)
        total = f + terms.sum(axis=1)
    # Where numbers overflow, the order by violation is what is left.
    total = np.where(np.isnan(total) & ~np.isnan(f), np.inf, total)
    return np.where(np.isfinite(g).all(axis=1), total, np.nan)


def after(
    lagrangian: Lagrangian,
    dim: int,
    f: Floats,
    g: Floats,
    unchanged: NDArray[np.bool_] | None = None,
    *,
    found: bool = True,
) -> tuple[Lagrangian, Floats]:
    """Return the Lagrangian after a generation with values f and constraints g, and the merits.

    ``found``: a feasible candidate is known, or nobody knows. ``unchanged``, of shape (n,): which
    candidates have the discrete values of the mean; None without integers and choices.
    """
    usable = np.isfinite(f) & np.isfinite(g).all(axis=1)
    if not usable.any():
        return lagrangian, merit(lagrangian, f, g)
    sign = _signs(lagrangian, g[usable])
    spread = _deviation if unchanged is None else _deviation_of_most
    near = np.ones(len(f), bool) if unchanged is None else unchanged
    now, merits = _after(
        _turned(lagrangian, sign), dim, f, sign * g, usable, near, spread, found=found
    )
    return _turned(now, sign), merits


def _signs(lagrangian: Lagrangian, g: Floats) -> Floats:
    """Return -1 for each equality whose multiplier is negative, or will be, and 1 for the rest."""
    lam = lagrangian.multipliers
    below = (lam < 0) | ((lam == 0) & (g.sum(axis=0) < 0))
    return np.where(lagrangian.equality & below, -1.0, 1.0)


def _turned(lagrangian: Lagrangian, sign: Floats) -> Lagrangian:
    return lagrangian._replace(multipliers=sign * lagrangian.multipliers)


def _after(
    lagrangian: Lagrangian,
    dim: int,
    f: Floats,
    g: Floats,
    usable: NDArray[np.bool_],
    near: NDArray[np.bool_],
    spread: Callable[[Floats], Floats],
    *,
    found: bool,
) -> tuple[Lagrangian, Floats]:
    lagrangian = _searched(lagrangian, g[usable])
    margins = _margins(lagrangian, dim, g[usable], spread)
    g = g + margins
    now = _initialised(lagrangian, dim, f[usable], g[usable])
    merits = merit(now, f[usable], g[usable])
    now = _adapted(now, dim, g[usable], _at_next_mean(merits, g[usable], near[usable]))
    unresolved = np.ptp(merits) <= _RESOLVED * np.max(np.abs(f[usable]))
    if now.drought > _DROUGHT or (unresolved and not found):
        return now, _restoring(now, f, g)
    # The margins raise the value at the optimum by about lambda times the margin. Without this
    # constant, which changes no rank, the values of different generations can be compared.
    return now, merit(now, f, g) - float(np.sum(now.multipliers * margins))


def _restoring(lagrangian: Lagrangian, f: Floats, g: Floats) -> Floats:
    """Return values to rank by which the search returns to where candidates are feasible.

    They are the penalties alone. If constraints are not convex, the ranked values may have a local
    minimum outside of them, at which the search would converge before mu is large enough. Filter
    methods call this the restoration phase. It ends with the first feasible candidate. Near the
    solution with many equalities, the ranked values differ by rounding errors of f before all
    equalities hold to their tolerance: there, too, the penalties are what is left.
    """
    alone = lagrangian._replace(multipliers=np.zeros_like(lagrangian.multipliers))
    return merit(alone, np.where(np.isfinite(f), 0.0, f), g)


def _margins(
    lagrangian: Lagrangian, dim: int, g: Floats, spread: Callable[[Floats], Floats]
) -> Floats:
    """Return how far inside of each active constraint the search aims; not in the paper.

    With the mean on the boundary of m active constraints, a candidate satisfies all of them with
    probability 2^-m, and with a mean just outside hardly ever: multipliers approach their limits
    from below. The search would converge, and the best feasible candidate would be an old one. We
    aim inside by a multiple of the standard deviation of g in the generation: a factor times that
    at which half of the candidates would satisfy m + 1 independent constraints, where at most d of
    them meet in a point. The margin vanishes as the search converges. On bbob-constrained, twice
    the margin and none solve fewer targets. Integers never stop changing, in a quarter of the
    candidates: the deviation of the others is what vanishes then (`_deviation_of_most`).
    """
    lam, mu = lagrangian.multipliers, lagrangian.penalties
    active = (lam > 0) & ~lagrangian.equality & (mu * g > -lam).any(axis=0)
    meeting = min(dim, int(active.sum()))
    if not meeting:
        return np.zeros(len(active))
    deviations = lagrangian.margin * NormalDist().inv_cdf(0.5 ** (1 / (1 + meeting)))
    return np.where(active, deviations * spread(g), 0.0)


def _searched(lagrangian: Lagrangian, g: Floats) -> Lagrangian:
    """Return the Lagrangian with larger margins if no candidate has been feasible for long."""
    inequalities = ~lagrangian.equality
    found = bool((g <= 0)[:, inequalities].all(axis=1).any())
    drought = 0 if found else lagrangian.drought + 1
    pace = 0.9 if found else 1.1 if drought > _DROUGHT else 1.0
    margin = min(max(lagrangian.margin * pace, _MARGIN), _LARGEST_MARGIN)
    return lagrangian._replace(margin=margin, drought=drought)


def _at_next_mean(merits: Floats, g: Floats, near: NDArray[np.bool_]) -> Floats:
    """Return the weighted mean of the constraints of the better half of the candidates.

    To first order these are the constraints at the next mean, whose evaluation the paper asks for.
    pycma takes those of the best candidate, which vary more: on bbob-constrained the weighted mean
    solves more targets. Of candidates whose integers or choices are not those of the mean this is
    not true: ``near`` are the others. Only if there are none, all of them count.
    """
    if near.any():
        merits, g = merits[near], g[near]
    order = np.argsort(merits, kind="stable")[: max(1, len(merits) // 2)]
    w = np.log(len(merits) / 2 + 1) - np.log(np.arange(1, len(order) + 1))
    # A product of matrices would differ by the kind of CPU, in the last digits.
    weighted: Floats = np.sum((w / w.sum())[:, None] * g[order], axis=0)
    return weighted


def _initialised(lagrangian: Lagrangian, dim: int, f: Floats, g: Floats) -> Lagrangian:
    """Set lambda and mu of constraints from the spread of f and g, until both sides were seen.

    A lambda that an earlier search has found stays, and only its mu is set, once: from the spread
    of f + lambda g, which is of second order near the solution, as mu g^2 is. The spread of f alone
    is of first order: mu would be larger, the smaller sigma is. A hundredth of it is the least,
    because with linear functions f + lambda g may be constant.
    """
    equality, lam, mu = lagrangian.equality, lagrangian.multipliers, lagrangian.penalties
    settled, found = lagrangian.settled, (lam != 0) & (mu == 0)
    above: Floats = np.mean(g > 0, axis=0)
    below: Floats = np.mean(g < 0, axis=0)
    violated = np.where(equality, np.maximum(above, below), above)
    # Where all values of g are equal, nothing shows its scale, and no multiplier changes a rank.
    todo = ~settled & (g != g[0]).any(axis=0) & (equality | (violated > _SETTLED))
    if not todo.any():
        return lagrangian
    f_varies = bool((f != f[0]).any())
    df: Floats = _range_of_most(f) if f_varies else np.ones(())
    if (todo & found).any():
        known = f + np.sum(np.where(todo & found, lam * g, 0.0), axis=1)
        df = np.where(found, np.maximum(_range_of_most(known), 0.01 * df), df)
    dg = np.where(todo, _range_of_most(g), 1.0)
    new_mu = np.where(found, _FIRST_MU_OF_KNOWN, _FIRST_MU) * df / dim / dg / dg  # (4)
    new_lam = np.where(equality | found, lam, df / dim / dg)  # (4)
    # While most candidates violate a constraint, mu may only grow. Otherwise it may only fall.
    growing = violated > 0.6
    better = np.where(
        growing, np.maximum(mu, new_mu), np.where(mu > 0, np.minimum(mu, new_mu), new_mu)
    )
    largest = np.where(todo, np.max(np.abs(g), axis=0), 1.0)
    reach = new_lam / largest  # -lambda/mu lies within the population
    better = np.clip(reach, better, 20 * better)
    now_settled = (todo & f_varies) & (
        found | (np.abs(violated - 0.5) < 0.5 - _SETTLED) | (lagrangian.updates > 2 + dim)
    )
    return lagrangian._replace(
        multipliers=np.where(todo, new_lam, lam),
        penalties=np.where(todo, better, mu),
        settled=settled | now_settled,
    )


def _adapted(lagrangian: Lagrangian, dim: int, g: Floats, at_mean: Floats) -> Lagrangian:
    """Move lambda by mu g / 5 (2), and adapt mu (3)."""
    equality, lam, mu = lagrangian.equality, lagrangian.multipliers, lagrangian.penalties
    share, direction = lagrangian.feasible, lagrangian.direction
    on = mu > 0
    if not on.any():
        return lagrangian
    horizon = 5 + dim
    share = share + (1 / horizon) * ((at_mean <= 0) - share)
    penalised = equality | (mu * at_mean > -lam)
    reached = penalised | (mu * g > -lam).any(axis=0)  # a candidate felt the constraint
    new_lam = np.where(on & reached, lam + mu * at_mean / _DAMPING, lam)  # (2)
    clamped = ~equality & (new_lam < 0)
    new_lam = np.where(clamped, 0.0, new_lam)
    movable = on & ~clamped & (equality | (mu * at_mean >= -new_lam))
    up = movable & ((at_mean > 0) | ((share > 0.95) & (mu * at_mean > -new_lam)))
    down = movable & ~up & (at_mean < 0) & (share < 0.9)
    direction = np.where(up, np.maximum(direction, 0) + 1, direction)
    direction = np.where(down, np.minimum(direction, 0) - 1, direction)
    # Changes in the same direction accelerate, up to a limit.
    pace = 0.25 * (1 + _acceleration(len(mu), np.abs(direction)))
    log_chi = math.log(2) / (5 * dim)
    new_mu = mu * np.exp(log_chi * pace * (up.astype(float) - down.astype(float)))  # (3)
    return lagrangian._replace(
        multipliers=new_lam,
        penalties=new_mu,
        feasible=share,
        direction=direction,
        updates=lagrangian.updates + 1,
    )


def _acceleration(constraints: int, count: Floats) -> Floats:
    """What is added to the exponent after more than 2 + m changes in one direction: up to 4."""
    wait = 2 + constraints
    return 4 * np.clip(count - wait, 0, wait) / wait


def _iqr(values: Floats) -> Floats:
    """The interquartile range of each column."""
    low, high = np.percentile(values, (25, 75), axis=0)
    spread: Floats = high - low
    return spread


def _range_of_most(values: Floats) -> Floats:
    """The interquartile range; the standard deviation if half of the values are equal."""
    iqr = _iqr(values)
    return np.where(iqr > 0, iqr, np.std(values, axis=0))


def _deviation(values: Floats) -> Floats:
    """The standard deviation of each column."""
    deviation: Floats = np.std(values, axis=0)
    return deviation


def _deviation_of_most(values: Floats) -> Floats:
    """The standard deviation, but at most 3 times that of a normal distribution with the quartiles.

    Some candidates whose integers have changed are far off. The others decide how large it is, and
    3 times because the quartiles of few candidates are uncertain.
    """
    of_quartiles = _iqr(values) / (2 * NormalDist().inv_cdf(0.75))
    return np.minimum(_deviation(values), 3 * of_quartiles)
