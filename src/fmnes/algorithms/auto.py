"""The method "auto": one method for every landscape.

Its distribution is sigma^2 D R D with R = I + V (S - I) V^T (`_axes_gaussian`): separable scaling,
and long or short axes across the coordinates whose number is found during the search. Step size
and phases are those of CR-FM-NES. Two scouts, a long one and a short one, look for the next
axis without taking part in the sampling. If axes keep coming, a full matrix takes their place.

There is no paper, as the method was made here in 2026. docs/methods/auto.md has the equations
(letters in parentheses), docs/auto.md how they were found and what each of them is worth.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, constant, to_host
from fmnes.algorithms import _axes_gaussian as gaussian
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import _rates
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._axes_gaussian import Axes
from fmnes.algorithms._paths import next_path, p_c_rate, path_scale
from fmnes.algorithms._rates import RateParams, Rates
from fmnes.algorithms._records import Shape, Summary, diagonal_of, unless_flat
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import at_least, at_most, choose, norm2
from fmnes.algorithms.cr_fm_nes import fitted_eta_B

COVARIANCE = "sigma^2 D R D"
LINEAR = True  # O(d k) time a candidate and memory
ANTITHETIC = True
GROWING = {"V": ("d", "k"), "S": ("k",), "B": ("0|d", "0|d")}
default_popsize = weights.even_default_popsize


@dataclass(frozen=True, kw_only=True)
class Auto(MethodSettings):
    """Settings of the method "auto".

    Parameters
    ----------
    axes : int, optional
        The largest number of axes across the coordinates, from 1 to d. Time and memory of a
        candidate are O(d axes). By default 64, or d if that is less. A full matrix takes the place
        of the axes once there are more than d/8 of them: never if d/8 is more than this number.
    D : array_like of shape (d,), optional
        Initial scale of each coordinate, multiplied by sigma0. Ones by default.
    check_sigma0 : bool
        Whether `minimize` may start with another step size if the first generation shows that
        sigma0 is 3 times too large or 25 times too small (docs/choosing.md). True by default.
    adapt : {"noise", "rates", "popsize", None}
        "rates": the learning rates of the mean and of sigma fall if values are noisy or if there
        are many local minima, so that the search averages over generations. "noise", the default:
        `minimize` evaluates x0 twice, and does the same if the two values differ; an `Optimizer`
        does not. "popsize": the rates stay at 1 and the population grows instead, in steps of 2 up
        to 64 times its first size, and shrinks again. This is for evaluations that run in parallel,
        and takes fewer generations. None: nothing adapts, as in searches with integers, choices or
        constraints.
    normal_scores : bool
        Whether half of the weight of a rank is the expected value of that rank in a sample of
        normal numbers, which has the least noise. False: the rank weights of CR-FM-NES alone, for
        functions that rise much more steeply on one side than on the other. Searches with
        constraints always use these. True by default.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.Auto(axes=3)
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    axes: int | None = None
    D: ArrayLike | None = None
    check_sigma0: bool = True
    adapt: Literal["noise", "rates", "popsize"] | None = "noise"
    normal_scores: bool = True

    def __post_init__(self) -> None:
        checks.fields(self, check_sigma0=checks.boolean, normal_scores=checks.boolean)
        if self.adapt is not None and (
            not isinstance(self.adapt, str) or self.adapt not in ("noise", "rates", "popsize")
        ):
            raise ValueError(
                f"adapt: expected 'noise', 'rates', 'popsize' or None, got {self.adapt!r}"
            )
        if self.axes is not None:
            checks.fields(self, axes=partial(checks.integer, least=1))

    @property
    def tries_steps(self) -> bool:
        """Whether the first generation may try other step sizes if sigma0 was given."""
        return self.check_sigma0

    def with_fixed_rates(self) -> "Auto":
        """The settings with learning rates and a population that do not follow the noise."""
        return replace(self, adapt=None)

    def with_constraints(self) -> "Auto":
        """The settings without what a ranking that is steep on one side misleads."""
        return replace(self.with_fixed_rates(), normal_scores=False)

    @property
    def detects_noise(self) -> bool:
        """Whether `minimize` evaluates x0 twice, to see whether the objective is noisy."""
        return self.adapt == "noise"

    def for_noise(self) -> "Auto":
        """The settings for an objective that was found to be noisy."""
        return replace(self, adapt="rates") if self.detects_noise else self

    @property
    def adapts_popsize(self) -> bool:
        """Whether the method chooses the size of each generation."""
        return self.adapt == "popsize"


Settings = Auto


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    phase: phases.PhaseParams
    scores: NDArray[np.float64]  # rank weights of the mean and the shape, best first, sum 0
    c_c: float
    c_1: float
    least_eta_sigma: float
    most_axes: int
    full_from: int  # number of axes from which on the matrix is full; 0: never
    starts_full: bool  # whether the matrix is full from the start
    c_mu_full: float
    c_1_full: float
    room: int  # columns of V at the start; they double when they are all in use
    rates: RateParams
    refresh_every: int = 10
    store_draws: bool = True
    patience: int = 1  # with the rule of stagnation: 1, or a multiple of its default


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    D: Array
    V: Array  # (d, K): the axes, K >= k columns; (d, 0) once the matrix is full
    S: Array  # (K,)
    B: Array  # (0, 0), or the full matrix: R = B B^T
    scouts: Array  # (d, 2): the direction of the long one and of the short one
    evidence: Array  # (2,): for each of them
    p_sigma: Array
    p_c: Array  # in units of sigma; in those of sigma D B once the matrix is full
    D_gradient: Array  # (d,): average of the gradients of log D
    D_signal: Array  # average of their products with D_gradient, and of their squares
    D_noise: Array
    eta: Array  # the learning rate of the mean, and what it is found from: see `Rates`
    m_gradient: Array
    m_averages: Array
    sigma_averages: Array
    axis_ratio: Array


_ROOM = 4  # columns of V at the start
_EARLY = 0.3  # the matrix is full from the start if its rate is this share of the rate of D


def params(dim: int, popsize: int, settings: Auto = Auto()) -> Params:
    """The constants of the method."""
    phase = phases.phase_params(dim, popsize)
    mu_eff = phase.mu_eff
    most_axes = min(dim, 64) if settings.axes is None else settings.axes
    if most_axes > dim:
        raise ValueError(f"axes: expected at most the number of variables, {dim}, got {most_axes}")
    full_from = 1 + dim // 8
    # The rates of dd-CMA-ES for a full matrix (Akimoto and Hansen 2020). The weights below have so
    # much less noise than rank weights that four times its c_mu is best with small populations.
    c_1_full = 1 / (2 * ((dim + 1) / 2 + 1) * (dim + 1) ** 0.75 + mu_eff / 2)
    mu_prime = mu_eff + 1 / mu_eff - 2 + popsize / (2 * (popsize + 5))
    c_mu = mu_prime * c_1_full
    c_mu_full = 4 * c_mu / (1 + 12 * c_mu)  # (j)
    # A large population teaches a full matrix nearly as fast as D: it is there from the start.
    rate_of_D = _D_RATE * float(fitted_eta_B(np, dim, np.asarray(float(popsize))))
    starts_full = full_from <= most_axes and c_mu_full >= _EARLY * rate_of_D
    scores = _scores(phase.w_hat, normal=settings.normal_scores)
    return Params(
        dim=dim,
        popsize=popsize,
        phase=phase,
        scores=scores,
        c_c=p_c_rate(dim, mu_eff),
        c_1=max((dim - 5) / 6, 0.5) * 2 / ((dim + 1.3) ** 2 + mu_eff),
        least_eta_sigma=math.tanh(dim / (64 * mu_eff)),
        most_axes=most_axes,
        full_from=full_from if full_from <= most_axes else 0,
        starts_full=starts_full,
        c_mu_full=c_mu_full,
        c_1_full=c_1_full,
        room=min(_ROOM, most_axes),
        rates=_rates.rate_params(
            dim, phase.w_hat, scores, _normal_scores(popsize), fixed=settings.adapt != "rates"
        ),
        patience=5 if settings.adapt in ("rates", "popsize") else 1,
    )


def fixed(params: Params) -> Params:
    """The Params with room for all axes from the start, which a full matrix never replaces."""
    return params._replace(room=params.most_axes, full_from=0, starts_full=False)


def _normal_scores(popsize: int) -> NDArray[np.float64]:
    """Expected values of ordered normal numbers, largest first (b)."""
    normal = NormalDist()
    ranks = range(popsize)
    scores = np.asarray([-normal.inv_cdf((i + 0.625) / (popsize + 0.25)) for i in ranks])
    return np.asarray((scores - scores[::-1]) / 2)  # antisymmetric to the last bit: the sum is 0


def _scores(w_hat: NDArray[np.float64], *, normal: bool) -> NDArray[np.float64]:
    """Half the weights w_hat, half normal scores with the same signal (b); or w_hat alone.

    For a linear function of a normal number, normal scores are the weights with the least noise.
    They learn as much from the worst candidates as from the best ones, though, which misleads the
    mean if the function rises much more steeply on one side than on the other. The penalties of
    constraints do: there, w_hat alone needs fewer evaluations.
    """
    if not normal:
        return np.asarray(w_hat - 1 / w_hat.shape[0])
    scores = _normal_scores(w_hat.shape[0])
    scores = scores * (w_hat @ scores) / (scores @ scores)
    return np.asarray((scores + (w_hat - 1 / w_hat.shape[0])) / 2)


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state, without axes unless the shape has them; it does not need the draw z."""
    xp = array_namespace(mean)
    room = params.room

    def zeros(*sizes: int) -> Array:
        return xp.zeros(sizes, dtype=mean.dtype, device=device(mean))

    D, B = diagonal_of(xp, shape), zeros(0, 0)
    axes = Axes(zeros(params.dim, room), zeros(room) + 1)
    volume = zeros() + 1
    if shape.v is not None:
        length = xp.sqrt(norm2(xp, shape.v))
        S = xp.where(length > 0, 1 + length * length, zeros() + 1)
        unit = shape.v / xp.where(length > 0, length, zeros() + 1)
        D, axes = shape.D, gaussian.with_new(xp, axes, unit[:, None], S[None])
    elif shape.C is not None and params.full_from:
        B, volume = full.normalised_root(xp, Shape(D=D, C=shape.C / (D[:, None] * D)))
        axes = Axes(axes.V[:, :0], axes.S[:0])
    elif params.starts_full:
        B = xp.eye(params.dim, dtype=mean.dtype, device=device(mean))
        axes = Axes(axes.V[:, :0], axes.S[:0])
    # Sigma alone carries the volume.
    volume_D = gaussian.volume(xp, D, axes)
    # What the gradient of D has under neutral selection; see `_rate_of_D`.
    noise = zeros() + 2 * params.dim * float(params.scores @ params.scores)
    return State(
        mean,
        sigma * volume * volume_D,
        D / volume_D,
        *axes,
        B=B,
        scouts=zeros(params.dim, 2),
        evidence=zeros(2),
        p_sigma=zeros(params.dim),
        p_c=zeros(params.dim),
        D_gradient=zeros(params.dim),
        D_signal=noise * (_QUIET + _CLEAR) / params.dim,
        D_noise=noise,
        **_rates.first_rates(mean)._asdict(),
        axis_ratio=zeros() + 1,
    )


def upgraded_settings(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of settings, complete: in earlier versions, rates did not adapt."""
    return {"adapt": None, "normal_scores": True} | fields


def upgraded_state(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a state, complete: before format 6, it had no rates."""
    return _rates.first_rates(fields["D_gradient"])._asdict() | fields


def _is_full(state: State) -> bool:
    return bool(state.B.shape[0])


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D R^(1/2) z, or sigma D B z (a)."""
    return state.sigma * _steps(state, z)


def _steps(state: State, z: Array) -> Array:
    xp = array_namespace(z)
    if _is_full(state):
        return state.D * xp.vecdot(
            z[..., None, :], state.B
        )  # each row by itself, as in `stretched`
    return state.D * gaussian.stretched(xp, Axes(state.V, state.S), z)


def draws_of(params: Params, state: State, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    xp = array_namespace(steps)
    y = steps / (state.sigma * state.D)
    if _is_full(state):
        return xp.linalg.solve(state.B, y.T).T
    return gaussian.stretched(xp, Axes(state.V, state.S), y, -0.5)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + step, then rows m - step."""
    step = transform(params, state, z)
    return array_namespace(z).concat([state.mean + step, state.mean - step], axis=0)


class Sample(NamedTuple):
    """What the shape learns from: draws with weights for even functions, and the path."""

    z: Array
    w: Array  # directional weights of even functions: sum w |z|^2 = 0
    path: Array
    eta_B: Array
    c_1: Array
    step: Array  # the mean's, N(0, I) under neutral selection
    last_path: Array  # the path before this step
    odd: Array  # weights of odd functions
    moving: Array


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
    eta_sigma = phases.eta_sigma(
        xp, params.phase, selection.phase, selection.lam_F, params.least_eta_sigma
    )
    next_rates = _rates.followed_rates if _is_full(state) else _rates.next_rates
    rates, factors = next_rates(
        xp,
        params.rates,
        _rates_of(state),
        odd @ z,
        selection.G_sigma,
    )
    G_sigma = selection.G_sigma
    if _is_full(state):
        G_sigma = _without_chance(xp, params, selection, norm_z2, rates.eta)
    growth = xp.exp(factors.sigma * eta_sigma * G_sigma / 2)
    new = state._replace(
        **rates._asdict(),
        mean=state.mean + factors.mean * state.sigma * gm,
        sigma=state.sigma * growth * factors.widening,
        p_sigma=selection.p_sigma,
        p_c=next_path(state.p_c, params.c_c, params.phase.mu_eff, gz if _is_full(state) else gy),
    )
    if _is_full(state):
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
        new = _learn_axes(xp, params, new, sample)
    return unless_flat(xp, f, state, new)


def _by_pair(
    xp: Namespace, by_rank: NDArray[np.float64], z: Array, f: Array, norm_z2: Array
) -> tuple[Array, Array]:
    """Weights by rank, as those of odd and of even functions of the pairs."""
    norms2 = weights.for_candidates(xp, norm_z2, f)
    w = weights.by_candidate(xp, constant(xp, by_rank, z), f, norms2)
    return weights.pair_sums(w, z.shape[0])


# === The shape: scales, axes and scouts ===

_D_RATE = 1.5  # rates as multiples of eta_B: of D,
_SHORT_RATE = 0.1  # of the length of short axes (that of long ones is 1),
_TURN_RATE = 0.1  # of the direction of axes
_SCOUT_RATE = 0.2  # and of scouts
_LONG = 20.0  # an axis with sqrt(S) above it turns more slowly
_LARGEST_STEP = 0.7
_NEW = 2.0  # S of a new long axis; a new short one has its inverse
_ASLEEP = 1.1  # an axis with S or 1/S below it is dropped
_ALONG = 0.7  # an axis with this share in one coordinate is handed to D
# If there is no axis, the evidence changes by a random number of variance 1 in each generation.
# _DRIFT is subtracted in each generation, and a scout whose evidence reaches _WAKE becomes an axis.
# Without an axis this happens once in about exp(2 0.4 15) = 160000 generations.
_DRIFT, _WAKE = 0.4, 15.0
# The persistence of D's gradient below which D learns at the least rate, and by how much it has to
# be larger for the full rate.
_QUIET, _CLEAR = 0.1, 0.2
_LEAST_D_RATE = 0.1
_D_WINDOW = 0.02


def _learn_axes(xp: Namespace, params: Params, state: State, sample: Sample) -> State:
    """D, the axes and the scouts after a generation."""
    axes = Axes(state.V, state.S)
    z, w, path = sample.z, sample.w, sample.path
    eta_B, c_1 = sample.eta_B, sample.c_1
    zero = xp.zeros_like(eta_B)
    samples = gaussian.moments(xp, axes, eta_B * w, z, zero)
    # The path is one more sample; its trace belongs to sigma.
    trace = c_1 * norm2(xp, path) / params.dim
    of_path = gaussian.moments(xp, axes, c_1[None], path[None, :], trace)
    state, rate = _rate_of_D(xp, params, state, samples.q / eta_B)
    a = rate * gaussian.log_scales(xp, axes, _D_RATE * samples.q + of_path.q)
    root = gaussian.rates_of(xp, axes, 1.0, math.sqrt(_SHORT_RATE))
    M = samples.M * root[:, None] * root + of_path.M
    step = gaussian.joint_step(xp, axes, a, M, _TURN_RATE * samples.X + of_path.X)
    slow = at_most(xp, _LONG / xp.sqrt(axes.S), 1.0)
    step = step._replace(Y=step.Y * xp.where(sample.moving, 1.0, slow))
    D, new = gaussian.moved(xp, state.D, axes, step, _LARGEST_STEP)
    D, new = gaussian.handed_over(xp, D, new, _ALONG)
    new = _without_sleepers(xp, new)
    busy = xp.clip((rate - _LEAST_D_RATE) / (1 - _LEAST_D_RATE), 0.0, 1.0)
    scouts, evidence = _scouted(xp, axes, state, sample, D / state.D, busy)
    # Random directions for scouts that start again; they do not depend on the candidates' order.
    fresh = xp.stack([sample.step, (w * sample.odd) @ z], axis=1)
    new, scouts, evidence = _woken(xp, new, scouts, evidence, fresh)
    D = D / gaussian.volume(xp, D, new)
    return state._replace(D=D, V=new.V, S=new.S, scouts=scouts, evidence=evidence)


def _rate_of_D(xp: Namespace, params: Params, state: State, q: Array) -> tuple[State, Array]:
    """The share of its learning rate that D takes, by the persistent part of its gradient (h).

    The product of a gradient with the average of the earlier ones is an unbiased estimate of that
    part. Without one D would walk at random, and turn the axes.
    """
    q = q - xp.mean(q)
    signal = state.D_signal + _D_WINDOW * (xp.sum(q * state.D_gradient) - state.D_signal)
    noise = state.D_noise + _D_WINDOW * (norm2(xp, q) - state.D_noise)
    average = state.D_gradient + (q - state.D_gradient) / params.dim
    rate = xp.clip((params.dim * signal / noise - _QUIET) / _CLEAR, _LEAST_D_RATE, 1.0)
    return state._replace(D_signal=signal, D_noise=noise, D_gradient=average), rate


def _without_sleepers(xp: Namespace, axes: Axes) -> Axes:
    """The axes without those that are hardly longer or shorter than 1, but for the longest one."""
    first = xp.arange(axes.S.shape[0], device=device(axes.S)) == 0
    kept_long = first & (axes.S > 1)
    S = xp.where(kept_long, at_least(xp, axes.S, _ASLEEP), axes.S)
    asleep = xp.maximum(S, 1 / S) < _ASLEEP
    return gaussian.without(xp, Axes(axes.V, S), asleep & ~kept_long)


def _scouted(
    xp: Namespace, axes: Axes, state: State, sample: Sample, growth: Array, busy: Array
) -> tuple[Array, Array]:
    """The scouts' directions, and the evidence that there is an axis (i).

    The mean's steps go on along a long axis: the new step is compared with the path of the earlier
    ones, of which it would be independent without an axis. Along a short axis the better draws are
    the shorter ones.
    """
    z, w, path = sample.z, sample.w, sample.path
    eta_B, c_1 = sample.eta_B, sample.c_1
    W, kind = state.scouts, constant(xp, [1.0, -1.0], z)
    rows = xp.concat([z, path[None, :]])
    rows = rows - (rows @ axes.V) @ axes.V.T
    along = rows @ W
    persistent = xp.sign(sample.last_path @ W[:, 0]) * (sample.step @ W[:, 0])
    tiny = xp.finfo(w.dtype).smallest_normal  # all weights are 0 if each pair is at opposite ends
    shorter = -(w @ along[:-1, 1] ** 2) / xp.sqrt(at_least(xp, 2 * norm2(xp, w), tiny))
    evidence = state.evidence + (1 - busy) * xp.stack([persistent, shorter]) - _DRIFT
    by_row = xp.concat([_SCOUT_RATE * eta_B * w, c_1[None]])
    X = rows.T @ (by_row[:, None] * along)
    X = X - W * xp.sum(W * X, axis=0)
    turned = W + kind * math.sqrt(_NEW) / (_NEW - 1) * X
    return turned * growth[:, None] ** -kind, at_least(xp, evidence, 0.0)


def _woken(
    xp: Namespace, axes: Axes, scouts: Array, evidence: Array, fresh: Array
) -> tuple[Axes, Array, Array]:
    """The axes with those scouts that have found one; these start again from fresh directions.

    One long axis is always there: Rosenbrock's valley is lost before the evidence for it is enough.
    Only one scout at a time becomes an axis, because they are not at right angles to each other.
    """
    W = _across(xp, axes, scouts)
    found = constant(xp, [_NEW, 1 / _NEW], W)
    alone = xp.stack([~xp.any(axes.S > 1), xp.any(xp.inf < axes.S)])
    awake = ((evidence > _WAKE) | alone) & (norm2(xp, W.T) > 0.5)
    awake = xp.stack([awake[0], awake[1] & ~awake[0]])
    axes = gaussian.with_new(xp, axes, W, xp.where(awake, found, 1.0))
    again = awake | (xp.max(W * W, axis=0) > _ALONG) | (norm2(xp, W.T) < 0.5)
    W = _across(xp, axes, xp.where(again, fresh, W))
    return axes, W, xp.where(again, 0.0, evidence)


def _across(xp: Namespace, axes: Axes, W: Array) -> Array:
    """The columns at right angles to the axes, at length 1; 0 if only rounding is left of one."""
    beside = W - axes.V @ (axes.V.T @ W)
    lengths, before = xp.sqrt(norm2(xp, beside.T)), xp.sqrt(norm2(xp, W.T))
    left = lengths > _LEAST_SHARE * before
    return xp.where(left, beside / xp.where(left, lengths, 1.0), 0.0)


_LEAST_SHARE = 1e-3


# === The full matrix ===

_SHRINKING = 2.0  # of sigma, as a multiple of tr(Z^2) / d


def _without_chance(
    xp: Namespace, params: Params, selection: phases.Selection, norm_z2: Array, eta: Array
) -> Array:
    """G_sigma without the growth that the distance weights cause by themselves (p).

    They are meant for a mean that moves. If the ranking is chance, the path is long in half of the
    generations, and sigma would grow for ever. The rate eta is the share of the mean's steps that
    persists; CR-FM-NES and the axes, which need the growth while D learns, keep all of it.
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
    most = _LARGEST_STEP / 2
    step = full.along_axes(xp, step.axes, xp.clip(step.log, -most, most))
    B = full.stretched(xp, state.B, step)
    p_c = full.stretched(xp, state.p_c, full.inverse(step))
    bounded = full.is_bounded(xp, B)
    B, p_c = choose(xp, bounded, B, state.B), choose(xp, bounded, p_c, state.p_c)
    spread = xp.sum(step.log**2) / params.dim - step.mean_log**2  # tr(Z^2) / d
    return state._replace(B=B, p_c=p_c, sigma=state.sigma * xp.exp(-_SHRINKING * spread))


def refresh(params: Params, state: State) -> State:
    """The same state with its axis ratio."""
    if not _is_full(state):
        return state
    xp = array_namespace(state.B)
    return state._replace(axis_ratio=full.axis_ratio(xp, state.D[:, None] * state.B))


def resized(params: Params, state: State) -> State:
    """The state with room for more axes, or with a full matrix in their place."""
    if _is_full(state):
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
    clear = 0.0 if _is_full(state) else float(params.dim * state.D_signal / state.D_noise)
    rates, learns = _rates_of(state), clear > _LEARNING
    factor = _rates.popsize_factor(xp, params.rates, rates, shape_learns=learns)
    new = min(max(int(factor * size), least), _MOST_GROWTH * least)
    if new == size:
        return size, state
    widening = (new / size) ** params.rates.widening
    kept = _rates.forgotten(rates)
    return new, state._replace(**kept._asdict(), sigma=state.sigma * widening)


_MOST_GROWTH = 64  # of the population
_LEARNING = 0.15  # persistence of D's gradient above which it is not noise


def _rates_of(state: State) -> Rates:
    return Rates(*(getattr(state, name) for name in Rates._fields))


def shape(params: Params, state: State) -> Shape:
    """The part of the state that a warm start takes over, apart from the mean and sigma.

    The longest axis alone, before the matrix is full: a Shape has one v.
    """
    xp = array_namespace(state.D)
    if _is_full(state):
        B = state.D[:, None] * state.B
        C = B @ B.T
        return Shape(D=_deviations(state), C=(C + C.T) / 2)
    return Shape(D=state.D, v=state.V[:, 0] * xp.sqrt(at_least(xp, state.S[0] - 1, 0.0)))


def _deviations(state: State) -> Array:
    xp = array_namespace(state.D)
    if _is_full(state):
        return state.D * xp.sqrt(norm2(xp, state.B))
    return state.D * xp.sqrt(1 + (state.V * state.V) @ (state.S - 1))


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    xp = array_namespace(state.mean)
    ratio = state.axis_ratio
    if not _is_full(state):
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
        phases.eta_sigma(np, phase, np.full_like(lam_F, number), lam_F, params.least_eta_sigma)
        for number in (phases.MOVEMENT, phases.STAGNATION, phases.CONVERGENCE)
    )
    constants = {
        "chi_n": phase.chi_n,
        "c_sigma": phase.c_sigma,
        "scale_sigma": path_scale(phase.c_sigma, phase.mu_eff),
        "c_c": params.c_c,
        "scale_c": path_scale(params.c_c, phase.mu_eff),
        "mu_eff": phase.mu_eff,
        "D_rate": _D_RATE,
        "short_rate": _SHORT_RATE,
        "turn_rate": _TURN_RATE,
        "scout_rate": _SCOUT_RATE,
        "longest": _LONG,
        "largest_step": _LARGEST_STEP,
        "least_S": gaussian.LEAST,
        "S_near_1": gaussian.S_NEAR_1,
        "S_limit": gaussian.S_LIMIT,
        "new_S": _NEW,
        "asleep": _ASLEEP,
        "aligned": _ALONG,
        "drift": _DRIFT,
        "wake": _WAKE,
        "least_share": _LEAST_SHARE,
        "quiet": _QUIET,
        "clear": _CLEAR,
        "least_D_rate": _LEAST_D_RATE,
        "D_window": _D_WINDOW,
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
