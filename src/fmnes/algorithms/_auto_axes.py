"""How the method "auto" learns its shape: scales of the coordinates, axes and scouts."""

import math
from typing import NamedTuple

from array_api_compat import device

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _axes_gaussian as gaussian
from fmnes.algorithms._auto_state import CLEAR, D_RATE, QUIET, Params, State
from fmnes.algorithms._axes_gaussian import Axes
from fmnes.algorithms._vectors import at_least, at_most, norm2


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


SHORT_RATE = 0.1  # rates as multiples of eta_B: of the length of short axes (of long ones: 1),
TURN_RATE = 0.1  # of the direction of axes
SCOUT_RATE = 0.2  # and of scouts
LONG = 20.0  # an axis with sqrt(S) above it turns more slowly
LARGEST_STEP = 0.7
NEW = 2.0  # S of a new long axis; a new short one has its inverse
ASLEEP = 1.1  # an axis with S or 1/S below it is dropped
ALONG = 0.7  # an axis with this share in one coordinate is handed to D
# If there is no axis, the evidence changes by a random number of variance 1 in each generation.
# DRIFT is subtracted in each generation, and a scout whose evidence reaches WAKE becomes an axis.
# Without an axis this happens once in about exp(2 0.4 15) = 160000 generations.
DRIFT, WAKE = 0.4, 15.0
LEAST_D_RATE = 0.1
D_WINDOW = 0.02


def learn_axes(xp: Namespace, params: Params, state: State, sample: Sample) -> State:
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
    a = rate * gaussian.log_scales(xp, axes, D_RATE * samples.q + of_path.q)
    root = gaussian.rates_of(xp, axes, 1.0, math.sqrt(SHORT_RATE))
    M = samples.M * root[:, None] * root + of_path.M
    step = gaussian.joint_step(xp, axes, a, M, TURN_RATE * samples.X + of_path.X)
    slow = at_most(xp, LONG / xp.sqrt(axes.S), 1.0)
    step = step._replace(Y=step.Y * xp.where(sample.moving, 1.0, slow))
    D, new = gaussian.moved(xp, state.D, axes, step, LARGEST_STEP)
    D, new = gaussian.handed_over(xp, D, new, ALONG)
    new = _without_sleepers(xp, new)
    busy = xp.clip((rate - LEAST_D_RATE) / (1 - LEAST_D_RATE), 0.0, 1.0)
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
    signal = state.D_signal + D_WINDOW * (xp.sum(q * state.D_gradient) - state.D_signal)
    noise = state.D_noise + D_WINDOW * (norm2(xp, q) - state.D_noise)
    average = state.D_gradient + (q - state.D_gradient) / params.dim
    rate = xp.clip((params.dim * signal / noise - QUIET) / CLEAR, LEAST_D_RATE, 1.0)
    return state._replace(D_signal=signal, D_noise=noise, D_gradient=average), rate


def _without_sleepers(xp: Namespace, axes: Axes) -> Axes:
    """The axes without those that are hardly longer or shorter than 1, but for the longest one."""
    first = xp.arange(axes.S.shape[0], device=device(axes.S)) == 0
    kept_long = first & (axes.S > 1)
    S = xp.where(kept_long, at_least(xp, axes.S, ASLEEP), axes.S)
    asleep = xp.maximum(S, 1 / S) < ASLEEP
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
    evidence = state.evidence + (1 - busy) * xp.stack([persistent, shorter]) - DRIFT
    by_row = xp.concat([SCOUT_RATE * eta_B * w, c_1[None]])
    X = rows.T @ (by_row[:, None] * along)
    X = X - W * xp.sum(W * X, axis=0)
    turned = W + kind * math.sqrt(NEW) / (NEW - 1) * X
    return turned * growth[:, None] ** -kind, at_least(xp, evidence, 0.0)


def _woken(
    xp: Namespace, axes: Axes, scouts: Array, evidence: Array, fresh: Array
) -> tuple[Axes, Array, Array]:
    """The axes with those scouts that have found one; these start again from fresh directions.

    One long axis is always there: Rosenbrock's valley is lost before the evidence for it is enough.
    Only one scout at a time becomes an axis, because they are not at right angles to each other.
    """
    W = _across(xp, axes, scouts)
    found = constant(xp, [NEW, 1 / NEW], W)
    alone = xp.stack([~xp.any(axes.S > 1), xp.any(xp.inf < axes.S)])
    awake = ((evidence > WAKE) | alone) & (norm2(xp, W.T) > 0.5)
    awake = xp.stack([awake[0], awake[1] & ~awake[0]])
    axes = gaussian.with_new(xp, axes, W, xp.where(awake, found, 1.0))
    again = awake | (xp.max(W * W, axis=0) > ALONG) | (norm2(xp, W.T) < 0.5)
    W = _across(xp, axes, xp.where(again, fresh, W))
    return axes, W, xp.where(again, 0.0, evidence)


def _across(xp: Namespace, axes: Axes, W: Array) -> Array:
    """The columns at right angles to the axes, at length 1; 0 if only rounding is left of one."""
    beside = W - axes.V @ (axes.V.T @ W)
    lengths, before = xp.sqrt(norm2(xp, beside.T)), xp.sqrt(norm2(xp, W.T))
    left = lengths > LEAST_SHARE * before
    return xp.where(left, beside / xp.where(left, lengths, 1.0), 0.0)


LEAST_SHARE = 1e-3
