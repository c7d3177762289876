"""FM-NES: fast moving natural evolution strategy.

M. Nomura, I. Ono: "Natural evolution strategy for unconstrained and implicitly constrained
problems with ridge structure", SSCI 2021, arXiv 2108.09455; the step numbers below are those of
section II of arXiv 2201.11422, which restates it. DX-NES-IC with the rank-one update of CMA-ES,
which lets the distribution run along ridges.

Covariance sigma^2 B B^T with a full matrix B, det B = 1. O(d^2) time a candidate, one symmetric
eigendecomposition a generation, O(d^2) memory: for up to some hundred variables.
"""

from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fmnes._arrays import Array, Namespace
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import dx_nes_ic
from fmnes.algorithms._shared import (
    Report,
    Shape,
    at_most,
    check_rates,
    even_default_popsize,
    is_feasible,
    mirrored,
    norm2,
    pair_sums,
    path_scale,
    unless_flat,
)

LINEAR = False
ANTITHETIC = True  # z has lambda/2 rows; the other half of the population is mirrored
default_popsize = even_default_popsize


@dataclass(frozen=True, kw_only=True)
class FMNES:
    """Settings of FM-NES.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial shape of the covariance beside sigma0. The identity by default.
    eta_B : float, optional
        Learning rate of the shape in all phases. By default that of DX-NES-IC, which depends on
        the phase and on the number of feasible candidates.
    c_1 : float, optional
        Learning rate of the rank-one update, 2 / ((d + 1.3)^2 + mu_eff) by default. With 0 the
        method is DX-NES-IC but for the reset.

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
        check_rates(eta_B=self.eta_B, c_1=self.c_1)


Settings = FMNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    refresh_every: int
    search: dx_nes_ic.Params
    c_c: float
    c_1: float  # when every candidate is feasible
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


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
    mu_eff = search.mu_eff
    return Params(
        dim=dim,
        popsize=popsize,
        refresh_every=0,
        search=search,
        c_c=(4 + mu_eff / dim) / (dim + 4 + 2 * mu_eff / dim),
        c_1=2 / ((dim + 1.3) ** 2 + mu_eff) if settings.c_1 is None else settings.c_1,
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state (step 1)."""
    xp = array_namespace(mean)
    B, volume = full.normalised_root(xp, shape)
    return State(
        mean,
        sigma * volume,
        B,
        p_sigma=xp.zeros_like(mean),
        B_inv_p_c=xp.zeros_like(mean),
        gamma=xp.ones_like(sigma),
        axis_ratio=full.axis_ratio(xp, B),
        B_0=B,
        always_feasible=xp.ones_like(sigma),
    )


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma B z."""
    return state.sigma * (z @ state.B.T)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + sigma B z, then m - sigma B z."""
    return mirrored(array_namespace(z), state.mean, transform(params, state, z))


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, B = state.mean, state.sigma, state.B

    # === Steps 3 to 10, but for B: DX-NES-IC ===
    step = dx_nes_ic.search_step(xp, params.search, B, state.p_sigma, state.gamma, z, f)

    # === Shape (steps 9 to 11): B <- B P exp(eta_B G_B / 2) exp(c_1 R_B / 2) ===
    r = (1 - params.c_c) * state.B_inv_p_c + path_scale(
        params.c_c, params.search.mu_eff
    ) * step.G_delta  # B^-1 p_c, with the new p_c and the old B
    c_1 = params.c_1 * step.lam_F / params.popsize
    c_1 = xp.where(_path_is_free(xp, params, step, r, z, f), c_1, 0.0)
    stretches = (step.expansion, step.gradient, _rank_one(xp, c_1, r))
    B_new, r_new = B, r
    for by in stretches:
        B_new = full.stretched(xp, B_new, by)
        r_new = full.stretched(xp, r_new, full.inverse(by))
    taken = full.bounded(xp, B_new)
    new = State(
        mean + sigma * (B @ step.G_delta),
        sigma * step.growth,
        xp.where(taken, B_new, B),
        step.p_sigma,
        xp.where(taken, r_new, r),
        step.gamma,
        step.axis_ratio,
        state.B_0,
        state.always_feasible,
    )
    new = _reset_at_first_infeasible(xp, new, step.lam_F < params.popsize)
    return unless_flat(xp, f, state, new)


def refresh(params: Params, state: State) -> State:
    """Nothing: each generation looks at the axes itself."""
    return state


def shape(params: Params, state: State) -> Shape:
    """What a warm start takes over beside the mean and sigma."""
    return full.shape_of(array_namespace(state.B), state.B)


def report(params: Params, state: State) -> Report:
    """What the history and the stopping rules look at."""
    xp = array_namespace(state.mean)
    return Report(
        sigma=state.sigma,
        deviations=full.deviations(xp, state.sigma, state.B),
        axis_ratio=state.axis_ratio,
        norm_v=xp.full_like(state.sigma, xp.nan),
        phase=phases.phase_of(xp, params.search.phase, xp.sqrt(norm2(xp, state.p_sigma))),
    )


# One rank-one update stretches the path's axis by at most exp() of this. What it asks for is about
# 1/d, and up to 2 at d = 3; only a path that stayed long in a distribution that shrank along it
# could ask for more, and exp() of that could overflow.
_LARGEST_STRETCH = 5.0


def _rank_one(xp: Namespace, c_1: Array, r: Array) -> full.Stretch:
    """exp(c_1 R_B / 2) with R = r r^T - I, R_B = R - tr(R) I / d: a stretch along r (step 11)."""
    norm_r2 = norm2(xp, r)
    length = xp.where(norm_r2 > 0, xp.sqrt(norm_r2), xp.ones_like(norm_r2))
    log = at_most(xp, c_1 * norm_r2 / 2, _LARGEST_STRETCH)
    return full.Stretch((r / length)[:, None], log[None])


# How clearly infeasible candidates have to lie behind, in standard deviations of their sum. With 1
# the constrained ellipsoid (d = 20) takes 1.2 times the evaluations of DX-NES-IC, with 2 the gain
# on the constrained cigar falls from 1.5 to 1.3; in between neither is seen.
_BEHIND = 1.5


def _path_is_free(
    xp: Namespace, params: Params, step: dx_nes_ic.Step, r: Array, z: Array, f: Array
) -> Array:
    """Whether this generation takes the rank-one update: not where it leads out of the domain.

    The paper says only that there is a condition, because the bare update does harm under
    implicit constraints. It does so where the mean closes in on a boundary: the path points at
    the boundary, and a distribution stretched along it wastes its candidates beyond. So the
    candidates are asked. Were feasibility unrelated to the path, the sum of <z_i, r/|r|> over the
    n infeasible ones would be N(0, n) (less, where both of a pair are infeasible); the update is
    taken if it lies 1.5 standard deviations on the side behind. A boundary beside the path lets
    enough updates pass, one ahead of it none, and without infeasible candidates 0 <= 0 always
    holds. benchmarks/fm_nes_evidence.py compares it with simpler conditions ("always", "in the
    movement phase", "all feasible"): it alone comes near the published gains on ridges both with
    and without constraints, and is as good as DX-NES-IC on the other constrained functions.
    """
    odd, _ = pair_sums(xp.astype(~is_feasible(xp, f), z.dtype))
    ahead = xp.sum((odd @ z) * r)
    return ahead <= -_BEHIND * xp.sqrt((params.popsize - step.lam_F) * norm2(xp, r))


def _reset_at_first_infeasible(xp: Namespace, new: State, infeasible: Array) -> State:
    """The shape as it was at the start, once, when the first infeasible candidate is met.

    The abstract says no more than that. What was learnt where everything was feasible goes: B,
    the path p_c and the expansion rate. It goes back to the initial B, not to the identity, as a
    user's own scales are no fruit of the search; sigma and p_sigma, which are no shape, stay.
    On the constrained ellipsoid and k-tablet of the evidence it saves 3 to 15 % of the evaluations,
    on the constrained ridges it changes nothing.
    """
    reset = infeasible & (new.always_feasible > 0)
    return new._replace(
        B=xp.where(reset, new.B_0, new.B),
        B_inv_p_c=xp.where(reset, 0.0, new.B_inv_p_c),
        gamma=xp.where(reset, 1.0, new.gamma),
        always_feasible=xp.where(infeasible, 0.0, new.always_feasible),
    )
