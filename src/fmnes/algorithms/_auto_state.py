"""What the method "auto" is made of: its settings, its constants, its state and the first one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array
from fmnes.algorithms import _axes_gaussian as gaussian
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import _rates
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._axes_gaussian import Axes
from fmnes.algorithms._paths import p_c_rate
from fmnes.algorithms._rates import RateParams, Rates
from fmnes.algorithms._records import Shape, diagonal_of
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import norm2
from fmnes.algorithms.cr_fm_nes import fitted_eta_B


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
        and takes fewer generations. None: nothing adapts. In searches with integers, choices or
        constraints nothing adapts by default, and "rates" and "popsize" are errors.
    normal_scores : bool
        Whether half of the weight of a rank is the expected value of that rank in a sample of
        normal numbers, which has the least noise. False: the rank weights of CR-FM-NES alone, for
        functions that rise much more steeply on one side than on the other; equation (p) of
        docs/methods/auto.md is then left out. Searches with constraints always do this. True by
        default.
    thorough : bool
        Whether a population larger than the default serves to look past local minima. The step
        size then falls more slowly the larger the population is, and the matrix is full from the
        start for smaller populations. With restarts, `minimize` does this in all runs but the
        first, unless variables are discrete or there are constraints. False by default.

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
    thorough: bool = False

    def __post_init__(self) -> None:
        yes_or_no = ("check_sigma0", "normal_scores", "thorough")
        checks.fields(self, **dict.fromkeys(yes_or_no, checks.boolean))
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

    def with_fixed_rates(self) -> Auto:
        """The settings with learning rates and a population that do not follow the noise."""
        if self.adapt in ("rates", "popsize"):
            raise ValueError(
                "adapt: expected 'noise' or None in a search with integers, choices or "
                f"constraints, whose ranking changes without noise, got {self.adapt!r}"
            )
        return replace(self, adapt=None)

    def with_constraints(self) -> Auto:
        """The settings without what a ranking that is steep on one side misleads."""
        return replace(self.with_fixed_rates(), normal_scores=False)

    @property
    def detects_noise(self) -> bool:
        """Whether `minimize` evaluates x0 twice, to see whether the objective is noisy."""
        return self.adapt == "noise"

    def for_noise(self) -> Auto:
        """The settings for an objective that was found to be noisy."""
        return replace(self, adapt="rates") if self.detects_noise else self

    def for_restart(self) -> Auto:
        """The settings of runs after the first one, which found a local minimum (r)."""
        return replace(self, thorough=True)

    @property
    def adapts_popsize(self) -> bool:
        """Whether the method chooses the size of each generation."""
        return self.adapt == "popsize"


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    phase: phases.PhaseParams
    scores: NDArray[np.float64]  # rank weights of the mean and the shape, best first, sum 0
    c_c: float
    c_1: float
    least_eta_sigma: float
    sigma_share: float  # of the rate of sigma
    most_axes: int
    full_from: int  # number of axes from which on the matrix is full; 0: never
    starts_full: bool  # whether the matrix is full from the start
    c_mu_full: float
    c_1_full: float
    room: int  # columns of V at the start; they double when they are all in use
    rates: RateParams
    grows_by_chance: bool  # whether sigma keeps the growth that (p) takes away
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


D_RATE = 1.5  # of D, as a multiple of eta_B
# The persistence of D's gradient below which D learns at the least rate, and by how much it has to
# be larger for the full rate.
QUIET, CLEAR = 0.1, 0.2
_ROOM = 4  # columns of V at the start
# The matrix is full from the start if its rate is this share of the rate of D.
_EARLY, _EARLY_IF_THOROUGH = 0.3, 0.12
_LEAST_SHARE = 1.6  # of the rate of sigma, as a multiple of 1/sqrt(d)


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
    rate_of_D = D_RATE * float(fitted_eta_B(np, dim, np.asarray(float(popsize))))
    early = _EARLY_IF_THOROUGH if settings.thorough else _EARLY
    starts_full = full_from <= most_axes and c_mu_full >= early * rate_of_D
    scores = _scores(phase.w_hat, normal=settings.normal_scores)
    return Params(
        dim=dim,
        popsize=popsize,
        phase=phase,
        scores=scores,
        c_c=p_c_rate(dim, mu_eff),
        c_1=max((dim - 5) / 6, 0.5) * 2 / ((dim + 1.3) ** 2 + mu_eff),
        least_eta_sigma=math.tanh(dim / (64 * mu_eff)),
        sigma_share=_sigma_share(dim, popsize) if settings.thorough else 1.0,
        most_axes=most_axes,
        full_from=full_from if full_from <= most_axes else 0,
        starts_full=starts_full,
        c_mu_full=c_mu_full,
        c_1_full=c_1_full,
        room=min(_ROOM, most_axes),
        grows_by_chance=not settings.normal_scores,
        rates=_rates.rate_params(
            dim, phase.w_hat, scores, _normal_scores(popsize), fixed=settings.adapt != "rates"
        ),
        patience=5 if settings.adapt in ("rates", "popsize") else 1,
    )


def _sigma_share(dim: int, popsize: int) -> float:
    """The rate of sigma in a thorough search, as a share of its usual one (r).

    A large population measures G_sigma with little noise, and would let sigma fall as fast as the
    mean converges: before the search has seen which of many basins is best, and before a full
    matrix has learned how they lie. The size buys that time only if sigma is slower.
    """
    share = math.sqrt(weights.even_default_popsize(dim) / popsize)
    return min(1.0, max(share, _LEAST_SHARE / math.sqrt(dim)))


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
        D_signal=noise * (QUIET + CLEAR) / params.dim,
        D_noise=noise,
        **_rates.first_rates(mean)._asdict(),
        axis_ratio=zeros() + 1,
    )


def upgraded_settings(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of settings, complete: in earlier versions, rates did not adapt."""
    return {"adapt": None, "normal_scores": True, "thorough": False} | fields


def upgraded_state(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a state, complete: before format 6, it had no rates."""
    return _rates.first_rates(fields["D_gradient"])._asdict() | fields


def is_full(state: State) -> bool:
    return bool(state.B.shape[0])


def rates_of(state: State) -> Rates:
    return Rates(*(getattr(state, name) for name in Rates._fields))
