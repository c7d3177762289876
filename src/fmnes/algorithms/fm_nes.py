"""FM-NES: fast moving natural evolution strategy.

M. Nomura, I. Ono: "Natural evolution strategy for unconstrained and implicitly constrained
problems with ridge structure", SSCI 2021, arXiv 2108.09455. DX-NES-IC with the rank-one update of
CMA-ES, which lets the distribution run along ridges. Step and equation numbers are those of
section II of arXiv 2201.11422, which restates the method.

Covariance sigma^2 B B^T with a full matrix B, det B = 1. O(d^2) time for each candidate, one
symmetric eigendecomposition in each generation, O(d^2) memory: for up to some hundred variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import dx_nes_ic
from fmnes.algorithms._paths import next_path, p_c_rate
from fmnes.algorithms._records import (
    Shape,
    Summary,
    as_they_are,
    same_popsize,
    unchanged,
    unless_flat,
)
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import at_most, choose, norm2
from fmnes.algorithms._weights import even_default_popsize, is_feasible, pair_sums

COVARIANCE = "sigma^2 B B^T"
LINEAR = False
ANTITHETIC = True  # z has lambda/2 rows; the other half of the population is mirrored
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = even_default_popsize  # eq. (32) of arXiv 2201.11422


@dataclass(frozen=True, kw_only=True)
class FMNES(MethodSettings):
    """Settings of FM-NES.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial shape of the covariance, without sigma0. The identity by default.
    eta_B : float, optional
        Learning rate of the shape in all phases. By default that of DX-NES-IC, which depends on
        the phase and on the number of feasible candidates.
    c_1 : float, optional
        Learning rate of the rank-one update, 2 / ((d + 1.3)^2 + mu_eff) by default. With 0, the
        method differs from DX-NES-IC only in the reset.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.FMNES(c_1=0.02)
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    C: ArrayLike | None = None
    eta_B: float | None = None
    c_1: float | None = None

    def __post_init__(self) -> None:
        checks.fields(self, eta_B=checks.rate, c_1=checks.rate)


Settings = FMNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    search: dx_nes_ic.Params
    c_c: float
    c_1: float  # when every candidate is feasible
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again
    patience: int = 1


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    B: Array
    p_sigma: Array
    B_inv_p_c: Array  # the path p_c in the coordinates of the draws: no B is ever inverted
    gamma: Array  # expansion rate, >= 1
    axis_ratio: Array  # longest over shortest axis of the last population's distribution
    B_0: Array  # what a reset goes back to
    always_feasible: Array  # 1 until the first infeasible candidate, then 0


def params(dim: int, popsize: int, settings: FMNES = FMNES()) -> Params:
    """The constants of section II; those of DX-NES-IC where it refers to that paper."""
    search = dx_nes_ic.params(dim, popsize, dx_nes_ic.DXNESIC(eta_B=settings.eta_B))
    mu_eff = search.phase.mu_eff
    return Params(
        dim=dim,
        popsize=popsize,
        search=search,
        # Section II uses c_c in eq. (12) without giving a value, and for c_1 (step 11) it refers to
        # the CMA-ES tutorial, arXiv 1604.00772. Both are eqs. (56) and (57) of that tutorial.
        c_c=p_c_rate(dim, mu_eff),
        c_1=2 / ((dim + 1.3) ** 2 + mu_eff) if settings.c_1 is None else settings.c_1,
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state (step 1); it does not need the draw z."""
    xp = array_namespace(mean)
    first = dx_nes_ic.init(params.search, mean, sigma, shape, z)
    return State(
        **first._asdict(),
        B_inv_p_c=xp.zeros_like(mean),
        B_0=first.B,
        always_feasible=xp.ones_like(sigma),
    )


transform = full.transform
draws_of = full.draws_of
ask = full.mirrored_ask  # step 2


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    The paper's path and its rank-one update are

        p_c <- (1 - c_c) p_c + sqrt(c_c (2 - c_c) mu_eff) B G_delta                      eq. (12)
        R = (B^-1 p_c) (B^-1 p_c)^T - I,   R_B = R - tr(R) I / d                 eqs. (21), (20)
        B' <- B' exp(c_1 R_B / 2)                                                        eq. (19)

    Only r = B^-1 p_c enters, so the state holds r instead of p_c, and no matrix is inverted: eq.
    (12) times B^-1 gives the new r for the old B, and each factor that B is multiplied by
    multiplies r by its inverse.
    """
    xp = array_namespace(z)
    mean, sigma, B = state.mean, state.sigma, state.B
    step = dx_nes_ic.search_step(xp, params.search, B, state.p_sigma, state.gamma, z, f)
    r = next_path(state.B_inv_p_c, params.c_c, params.search.phase.mu_eff, step.G_delta)  # eq. (12)
    # Step 11. Section II has c_1 alone; the factor lambda_F / lambda is from the authors' code.
    c_1 = params.c_1 * step.lam_F / params.popsize
    c_1 = xp.where(_path_is_free(xp, params, step, r, z, f), c_1, 0.0)
    B_new, r_new = B, r
    for stretch in (step.expansion, step.gradient, _rank_one(xp, c_1, r)):  # eqs. 14, 11 and 19
        B_new = full.stretched(xp, B_new, stretch)
        r_new = full.stretched(xp, r_new, full.inverse(stretch))
    bounded = full.is_bounded(xp, B_new)
    new = State(
        mean + sigma * (B @ step.G_delta),  # eq. (10)
        sigma * step.growth,  # eqs. (9) and (15)
        choose(xp, bounded, B_new, B),
        step.p_sigma,
        choose(xp, bounded, r_new, r),
        step.gamma,
        step.axis_ratio,
        state.B_0,
        state.always_feasible,
    )
    new = _reset_at_first_infeasible(xp, new, step.lam_F < params.popsize)
    return unless_flat(xp, f, state, new)


refresh = resized = unchanged
fixed = as_they_are
next_popsize = same_popsize
shape = full.shape


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    phase = phases.phase_of(array_namespace(state.B), params.search.phase, state.p_sigma)
    return full.summary(params, state)._replace(phase=phase)


# One rank-one update stretches the path's axis by at most exp() of this. It asks for about 1/d,
# and for up to 2 at d = 3. Only a path that stayed long while the distribution shrank along it
# could ask for more, and exp() of that could overflow.
_LARGEST_STRETCH = 5.0


def _rank_one(xp: Namespace, c_1: Array, r: Array) -> full.Stretch:
    """exp(c_1 R_B / 2) of eqs. (19) to (21): a stretch along r.

    R = r r^T - I has the eigenvalue |r|^2 - 1 along r and -1 elsewhere. A Stretch has determinant
    1, so the multiples of I drop out, and the logarithm along r is c_1 |r|^2 / 2.
    """
    return full.along_vector(xp, r, at_most(xp, c_1 * norm2(xp, r) / 2, _LARGEST_STRETCH))


# How clearly infeasible candidates have to lie behind, in standard deviations of their sum. With 1
# the constrained ellipsoid (d = 20) takes 1.2 times the evaluations of DX-NES-IC; with 2 the gain
# on the constrained cigar falls from 1.5 to 1.3. 1.5 avoids both.
_BEHIND = 1.5


def _path_is_free(
    xp: Namespace, params: Params, step: dx_nes_ic.SearchStep, r: Array, z: Array, f: Array
) -> Array:
    """Whether this generation takes the rank-one update: not if the path leads out of the domain.

    The abstract of the SSCI 2021 paper says only that there is a condition, because the bare
    update does harm under implicit constraints. It does harm where the mean approaches a boundary:
    the path points at the boundary, and a distribution stretched along the path wastes its
    candidates beyond. Our condition looks at the infeasible candidates. If feasibility did not
    depend on the path, the sum of <z_i, r/|r|> over the n infeasible ones would be N(0, n) (less
    if both of a pair are infeasible). The update is taken if that sum lies 1.5 standard deviations
    on the side behind. If the path runs along a boundary, enough updates are taken; if it leads to
    one, none is. Without infeasible candidates 0 <= 0 always holds. benchmarks/fm_nes_evidence.py
    compares this condition with simpler ones ("always", "in the movement phase", "all feasible"):
    it alone comes near the published gains on ridges both with and without constraints, and is as
    good as DX-NES-IC on the other constrained functions.
    """
    if isinstance(z, np.ndarray) and step.lam_F == params.popsize:
        return np.True_  # 0 <= 0
    odd, _ = pair_sums(xp.astype(~is_feasible(xp, f), z.dtype), z.shape[0])
    ahead = xp.sum((odd @ z) * r)
    return ahead <= -_BEHIND * xp.sqrt((params.popsize - step.lam_F) * norm2(xp, r))


def _reset_at_first_infeasible(xp: Namespace, new: State, infeasible: Array) -> State:
    """Reset the shape once, when the first infeasible candidate appears.

    The abstract of the SSCI 2021 paper says no more than that. We reset what the search learned
    while everything was feasible: B, the path p_c and the expansion rate. B goes back to its
    initial value instead of the identity, because the search did not learn a scale that the user
    gave. sigma and p_sigma are no part of the shape and stay. On the constrained ellipsoid and
    k-tablet of the evidence the reset saves 3 to 15 % of the evaluations; on the constrained ridges
    it changes nothing.
    """
    if isinstance(infeasible, np.bool_) and not infeasible:
        return new
    reset = infeasible & (new.always_feasible > 0)
    return new._replace(
        B=choose(xp, reset, new.B_0, new.B),
        B_inv_p_c=xp.where(reset, 0.0, new.B_inv_p_c),
        gamma=xp.where(reset, 1.0, new.gamma),
        always_feasible=xp.where(infeasible, 0.0, new.always_feasible),
    )
