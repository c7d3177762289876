"""The method "auto": one method for every landscape.

Its distribution is sigma^2 D R D with R = I + V (S - I) V^T (`_axes_gaussian`): separable scaling,
and long or short axes across the coordinates whose number is found during the search. Step size
and phases are those of CR-FM-NES. Two scouts, a long one and a short one, look for the next
axis without taking part in the sampling. If axes keep coming, a full matrix takes their place.

There is no paper, as the method was made here in 2026. docs/methods/auto.md has the equations
(letters in parentheses), docs/auto.md how they were found and what each of them is worth.
"""

import math
from functools import partial

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from fmnes._arrays import Array, Namespace, constant, to_host
from fmnes.algorithms import _auto_axes as learning
from fmnes.algorithms import _axes_gaussian as gaussian
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import _rates
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._auto_axes import Sample
from fmnes.algorithms._auto_state import CLEAR, D_RATE, QUIET, is_full, rates_of
from fmnes.algorithms._auto_state import Auto as Auto
from fmnes.algorithms._auto_state import Params as Params
from fmnes.algorithms._auto_state import State as State
from fmnes.algorithms._auto_state import fixed as fixed
from fmnes.algorithms._auto_state import init as init
from fmnes.algorithms._auto_state import params as params
from fmnes.algorithms._auto_state import upgraded_settings as upgraded_settings
from fmnes.algorithms._auto_state import upgraded_state as upgraded_state
from fmnes.algorithms._axes_gaussian import Axes
from fmnes.algorithms._paths import next_path, path_scale
from fmnes.algorithms._records import Shape, Summary, unless_flat
from fmnes.algorithms._vectors import at_least, choose, norm2
from fmnes.algorithms.cr_fm_nes import fitted_eta_B

COVARIANCE = "sigma^2 D R D"
LINEAR = True  # O(d k) time a candidate and memory
ANTITHETIC = True
GROWING = {"V": ("d", "k"), "S": ("k",), "B": ("0|d", "0|d")}
default_popsize = weights.even_default_popsize

Settings = Auto


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D R^(1/2) z, or sigma D B z (a)."""
    return state.sigma * _steps(state, z)


def _steps(state: State, z: Array) -> Array:
    xp = array_namespace(z)
    if is_full(state):
        return state.D * xp.vecdot(
            z[..., None, :], state.B
        )  # each row by itself, as in `stretched`
    return state.D * gaussian.stretched(xp, Axes(state.V, state.S), z)


def draws_of(params: Params, state: State, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    xp = array_namespace(steps)
    y = steps / (state.sigma * state.D)
    if is_full(state):
        return xp.linalg.solve(state.B, y.T).T
    return gaussian.stretched(xp, Axes(state.V, state.S), y, -0.5)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + step, then rows m - step."""
    step = transform(params, state, z)
    return array_namespace(z).concat([state.mean + step, state.mean - step], axis=0)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    norm_z2 = norm2(xp, z)
    selection = phases.select(xp, params.phase, state.p_sigma, z, norm_z2, f)
    gz = selection.odd @ z
    gy = _steps(state, gz)
    share = selection.lam_F / params.popsize
    odd, w = _by_pair(xp, params.scores, z, f, norm_z2)
    # The mean takes these weights in place of w_hat (b); in the movement phase `selection.odd`
    # holds distance weights, of which the difference to w_hat is kept.
    odd_hat, _ = _by_pair(xp, params.phase.w_hat, z, f, norm_z2)
    gm = _steps(state, (odd + (selection.odd - odd_hat)) @ z)
    # Weights that cancel are 0, and not what rounding leaves of them with ties.
    rounding = float(4 * math.sqrt(params.popsize) * xp.finfo(z.dtype).eps * params.scores[0])
    w = xp.where(xp.abs(w) > rounding, w, 0.0)
    # Only the direction of a draw counts, and not its length (b).
    w = w * params.dim / at_least(xp, norm_z2, xp.finfo(z.dtype).smallest_normal)
    eta_sigma = _eta_sigma(xp, params, selection.lam_F, selection.phase)
    next_rates = _rates.followed_rates if is_full(state) else _rates.next_rates
    rates, factors = next_rates(
        xp,
        params.rates,
        rates_of(state),
        odd @ z,
        selection.G_sigma,
    )
    G_sigma = selection.G_sigma
    if is_full(state) and not params.grows_by_chance:
        G_sigma = _without_chance(xp, params, selection, norm_z2, rates.eta)
    growth = xp.exp(factors.sigma * eta_sigma * G_sigma / 2)
    new = state._replace(
        **rates._asdict(),
        mean=state.mean + factors.mean * state.sigma * gm,
        sigma=state.sigma * growth * factors.widening,
        p_sigma=selection.p_sigma,
        p_c=next_path(state.p_c, params.c_c, params.phase.mu_eff, gz if is_full(state) else gy),
    )
    if is_full(state):
        new = _learn_matrix(xp, params, new, z, w, share)
    else:
        unstretched = partial(gaussian.stretched, xp, Axes(state.V, state.S), power=-0.5)
        last_path, path = unstretched(state.p_c / state.D), unstretched(new.p_c / state.D)
        step = math.sqrt(params.phase.mu_eff) * gz
        eta_B = fitted_eta_B(xp, params.dim, selection.lam_F)
        moving = selection.phase == phases.MOVEMENT
        sample = Sample(
            z=z,
            w=w,
            path=path,
            eta_B=eta_B,
            c_1=params.c_1 * share,
            step=step,
            last_path=last_path,
            odd=selection.odd,
            moving=moving,
        )
        new = learning.learn_axes(xp, params, new, sample)
    return unless_flat(xp, f, state, new)


def _eta_sigma(xp: Namespace, params: Params, lam_F: Array, phase: Array) -> Array:
    """The rate of sigma, of which a thorough search takes a share (r)."""
    eta_sigma = phases.eta_sigma(xp, params.phase, phase, lam_F, params.least_eta_sigma)
    return params.sigma_share * eta_sigma


def _by_pair(
    xp: Namespace, by_rank: NDArray[np.float64], z: Array, f: Array, norm_z2: Array
) -> tuple[Array, Array]:
    """Weights by rank, as those of odd and of even functions of the pairs."""
    norms2 = weights.for_candidates(xp, norm_z2, f)
    w = weights.by_candidate(xp, constant(xp, by_rank, z), f, norms2)
    return weights.pair_sums(w, z.shape[0])


# === The full matrix ===

_SHRINKING = 2.0  # of sigma, as a multiple of tr(Z^2) / d


def _without_chance(
    xp: Namespace, params: Params, selection: phases.Selection, norm_z2: Array, eta: Array
) -> Array:
    """G_sigma without the growth that the distance weights cause by themselves (p).

    They are meant for a mean that moves. If the ranking is chance, the path is long in half of the
    generations, and sigma would grow for ever. The rate eta is the share of the mean's steps that
    persists; CR-FM-NES and the axes, which need the growth while D learns, keep all of it. So does
    a search on a function that is steep on one side, where the mean goes back and forth.
    """
    chance = phases.neutral_growth(xp, params.phase, xp.sqrt(norm_z2), selection.lam_F)
    moving = selection.phase == phases.MOVEMENT
    return selection.G_sigma - xp.where(moving, (1 - eta) * chance, 0.0)


def _learn_matrix(
    xp: Namespace, params: Params, state: State, z: Array, w: Array, share: Array
) -> State:
    """B, the path and sigma after a generation: B exp(Z), 2 Z = c_mu sum w z z^T + c_1 q q^T (j).

    If the ranking is chance, exp(Z) with tr(Z) = 0 keeps the volume and lets the variances grow. On
    a rugged function the search would stay wide for ever. So sigma falls a little (o).
    """
    rows = xp.concat([z, state.p_c[None, :]])
    by_row = xp.concat([share * params.c_mu_full * w, (share * params.c_1_full)[None]])
    step = full.natural_step(xp, 1.0, by_row, rows)
    most = learning.LARGEST_STEP / 2
    step = full.along_axes(xp, step.axes, xp.clip(step.log, -most, most))
    B = full.stretched(xp, state.B, step)
    p_c = full.stretched(xp, state.p_c, full.inverse(step))
    bounded = full.is_bounded(xp, B)
    B, p_c = choose(xp, bounded, B, state.B), choose(xp, bounded, p_c, state.p_c)
    spread = xp.sum(step.log**2) / params.dim - step.mean_log**2  # tr(Z^2) / d
    return state._replace(B=B, p_c=p_c, sigma=state.sigma * xp.exp(-_SHRINKING * spread))


def refresh(params: Params, state: State) -> State:
    """The same state with its axis ratio."""
    if not is_full(state):
        return state
    xp = array_namespace(state.B)
    return state._replace(axis_ratio=full.axis_ratio(xp, state.D[:, None] * state.B))


def resized(params: Params, state: State) -> State:
    """The state with room for more axes, or with a full matrix in their place."""
    if is_full(state):
        return state
    xp = array_namespace(state.S)
    axes, room = Axes(state.V, state.S), state.S.shape[0]
    k = int(to_host(xp.sum(gaussian.in_use(xp, axes))))
    if 0 < params.full_from <= k:
        eye = xp.eye(params.dim, dtype=state.D.dtype, device=device(state.D))
        path = gaussian.stretched(xp, axes, state.p_c / state.D, -0.5)
        return state._replace(
            B=gaussian.stretched(xp, axes, eye), p_c=path, V=state.V[:, :0], S=state.S[:0]
        )
    if k + 1 < room or room >= params.most_axes:
        return state
    more = min(room, params.most_axes - room)
    ones = xp.ones(more, dtype=state.S.dtype, device=device(state.S))
    wider = xp.concat([state.V, xp.zeros_like(state.D)[:, None] * ones], axis=1)
    axes = gaussian.ordered(xp, Axes(wider, xp.concat([state.S, ones])))
    return state._replace(V=axes.V, S=axes.S)


def next_popsize(params: Params, state: State, least: int) -> tuple[int, State]:
    """The size of the next generation, and the state for it (q); ``least`` is the first size."""
    xp, size = array_namespace(state.mean), params.popsize
    # A full matrix has no signal of D.
    clear = 0.0 if is_full(state) else float(params.dim * state.D_signal / state.D_noise)
    rates, learns = rates_of(state), clear > _LEARNING
    factor = _rates.popsize_factor(xp, params.rates, rates, shape_learns=learns)
    new = min(max(int(factor * size), least), _MOST_GROWTH * least)
    if new == size:
        return size, state
    widening = (new / size) ** params.rates.widening
    kept = _rates.forgotten(rates)
    return new, state._replace(**kept._asdict(), sigma=state.sigma * widening)


_MOST_GROWTH = 64  # of the population
_LEARNING = 0.15  # persistence of D's gradient above which it is not noise


def shape(params: Params, state: State) -> Shape:
    """The part of the state that a warm start takes over, apart from the mean and sigma.

    The longest axis alone, before the matrix is full: a Shape has one v.
    """
    xp = array_namespace(state.D)
    if is_full(state):
        B = state.D[:, None] * state.B
        C = B @ B.T
        return Shape(D=_deviations(state), C=(C + C.T) / 2)
    return Shape(D=state.D, v=state.V[:, 0] * xp.sqrt(at_least(xp, state.S[0] - 1, 0.0)))


def _deviations(state: State) -> Array:
    xp = array_namespace(state.D)
    if is_full(state):
        return state.D * xp.sqrt(norm2(xp, state.B))
    return state.D * xp.sqrt(1 + (state.V * state.V) @ (state.S - 1))


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    xp = array_namespace(state.mean)
    ratio = state.axis_ratio
    if not is_full(state):
        ratio = xp.max(state.D) / xp.min(state.D) * xp.sqrt(xp.max(state.S) / xp.min(state.S))
    phase = phases.phase_of(xp, params.phase, state.p_sigma)
    deviations = state.sigma * _deviations(state)
    return Summary(state.sigma, deviations, ratio, xp.full_like(state.sigma, xp.nan), phase)


def tables(params: Params) -> tuple[dict[str, float], dict[str, NDArray[np.float64]]]:
    """The constants and rates that the compiled ask and tell need, by name (native/records.hpp).

    Each rate is an array with an entry for each number of feasible candidates from 0 to lambda.
    """
    lam_F = np.arange(params.popsize + 1.0)
    phase = params.phase
    movement, stagnation, convergence = (
        _eta_sigma(np, params, lam_F, np.full_like(lam_F, number))
        for number in (phases.MOVEMENT, phases.STAGNATION, phases.CONVERGENCE)
    )
    constants = {
        "chi_n": phase.chi_n,
        "c_sigma": phase.c_sigma,
        "scale_sigma": path_scale(phase.c_sigma, phase.mu_eff),
        "c_c": params.c_c,
        "scale_c": path_scale(params.c_c, phase.mu_eff),
        "mu_eff": phase.mu_eff,
        "D_rate": D_RATE,
        "short_rate": learning.SHORT_RATE,
        "turn_rate": learning.TURN_RATE,
        "scout_rate": learning.SCOUT_RATE,
        "longest": learning.LONG,
        "largest_step": learning.LARGEST_STEP,
        "least_S": gaussian.LEAST,
        "S_near_1": gaussian.S_NEAR_1,
        "S_limit": gaussian.S_LIMIT,
        "new_S": learning.NEW,
        "asleep": learning.ASLEEP,
        "aligned": learning.ALONG,
        "drift": learning.DRIFT,
        "wake": learning.WAKE,
        "least_share": learning.LEAST_SHARE,
        "quiet": QUIET,
        "clear": CLEAR,
        "least_D_rate": learning.LEAST_D_RATE,
        "D_window": learning.D_WINDOW,
    }
    rates = {
        "alpha": phases.distance_strength(np, phase, lam_F),
        "eta_B": fitted_eta_B(np, params.dim, lam_F),
        "eta_movement": movement,
        "eta_stagnation": stagnation,
        "eta_convergence": convergence,
        "c_1": params.c_1 * lam_F / params.popsize,
    }
    return constants, rates
