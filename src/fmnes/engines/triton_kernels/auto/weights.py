"""The weights of each pair, their products with the directions, and the learning rates."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.names import (
    CLEAR,
    D_NOISE,
    D_SIGNAL,
    D_WINDOW,
    DRIFT,
    ETA,
    ETA_B,
    ETA_MEAN,
    EVIDENCE_LONG,
    EVIDENCE_SHORT,
    G_SIGMA,
    GM_ALONG,
    GRADIENT,
    GZ_ALONG,
    LEAST_D_RATE,
    LEAST_RATE,
    LEAST_RATIO,
    LINEAR_RATIO,
    LIVE,
    MEAN_G,
    MOST_CHANGE,
    MU_EFF,
    NEXT_SIGMA,
    NOISE,
    OF_DIRECTIONS,
    PATH_ALONG,
    Q_ALONG,
    Q_NORM2,
    QUIET,
    R_D,
    ROUNDING,
    SEEN,
    SETTLED,
    SHORTEST,
    SIGMA_RATIO,
    SIGMA_WINDOW,
    SIGNAL,
    SPEED,
    SQUARE,
    TINY,
    W_FRESH,
    W_GM,
    W_GZ,
    W_HAT,
    W_NORM2,
    WIDENING,
    WINDOW,
    WINDOW_LEAST,
    WINDOW_RATE,
    WW,
    K,
    S,
)
from fmnes.engines.triton_kernels.names import (
    C_1,
    C_C,
    DIM,
    EVEN,
    EVEN_DIST,
    EVEN_HAT,
    FLAT,
    LAM_F,
    NORM_Z2,
    ODD_DIST,
    ODD_HAT,
    PHASE,
    SCALE_C,
    SIGMA,
    T_C_1,
    T_ETA_B,
)
from fmnes.engines.triton_kernels.parts import added
from fmnes.engines.triton_kernels.weights import decided_phase, rate_of_sigma


@triton.jit
def clipped(x, least, most):
    """A number within limits."""
    return tl.minimum(tl.maximum(x, least), most)


@triton.jit
def rounded(x, DOUBLE: tl.constexpr):
    """A number of the state, which has the dtype of its vectors."""
    return x if DOUBLE else x.to(tl.float32).to(tl.float64)


@triton.jit
def decide(
    by_score,
    pairs,
    numbers,
    constants,
    rates,
    partial,
    along,
    by_row,
    half,
    programs,
    directions,
    DIRECTIONS: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """The phase, the weights of each pair for it (b), and the sums of numbers by them."""
    popsize = 2 * half
    dim = tl.load(constants + DIM)
    phase = decided_phase(numbers, constants, partial, programs, WIDTH)
    lam_F = tl.load(numbers + LAM_F).to(tl.int32)
    k = tl.load(numbers + K).to(tl.int32)
    rounding, tiny = tl.load(constants + ROUNDING), tl.load(constants + TINY)
    odd_row = tl.where(phase == 1.0, ODD_DIST, ODD_HAT)
    even_row = tl.where(phase == 1.0, EVEN_DIST, EVEN_HAT)
    G_sigma, mean_g, w_norm2 = phase * 0, phase * 0, phase * 0
    c = tl.arange(0, DIRECTIONS)
    is_axis = (c >= 2) & (c < 2 + k)
    for start in range(0, half, TILE):
        i = start + tl.arange(0, TILE)
        there = i < half
        norm2 = tl.load(pairs + NORM_Z2 * half + i, mask=there, other=1.0)
        hat = tl.load(pairs + ODD_HAT * half + i, mask=there, other=0.0)
        odd = tl.load(pairs + odd_row * half + i, mask=there, other=0.0)
        even = tl.load(pairs + even_row * half + i, mask=there, other=0.0)
        plus = tl.load(by_score + i, mask=there, other=0.0)
        minus = tl.load(by_score + half + i, mask=there, other=0.0)
        # A pair at opposite ends has the weight 0, and not what rounding leaves of it with ties.
        w = tl.where(tl.abs(plus + minus) > rounding, plus + minus, 0.0)
        w = w * dim / tl.maximum(norm2, tiny)
        there_2 = (c < directions)[:, None] & there[None, :]
        share = tl.load(along + c[:, None] * half + i[None, :], mask=there_2, other=0.0)
        beside = norm2 - tl.sum(tl.where(is_axis[:, None], share * share, 0.0), 0)
        G_sigma += tl.sum(even * norm2)
        mean_g += tl.sum(w * beside)
        w_norm2 += tl.sum(w * w)
        tl.store(pairs + EVEN * half + i, w, mask=there)
        tl.store(by_row + W_HAT * half + i, hat, mask=there)
        tl.store(by_row + W_GM * half + i, plus - minus + (odd - hat), mask=there)
        tl.store(by_row + W_GZ * half + i, odd, mask=there)
        tl.store(by_row + W_FRESH * half + i, w * odd, mask=there)
        to = by_row + (c + OF_DIRECTIONS)[:, None] * half + i[None, :]
        tl.store(to, w[None, :] * share, mask=there_2)
    eta_B = tl.load(rates + T_ETA_B * (popsize + 1) + lam_F)
    eta, shortest = tl.load(numbers + ETA), tl.load(constants + SHORTEST)
    window = clipped(
        tl.load(constants + WINDOW_RATE) * eta, tl.load(constants + WINDOW_LEAST), shortest
    )
    tl.store(numbers + LIVE, 1.0 - tl.load(numbers + FLAT))
    tl.store(numbers + PHASE, phase)
    tl.store(numbers + ETA_B, eta_B)
    tl.store(numbers + C_1, tl.load(rates + T_C_1 * (popsize + 1) + lam_F))
    tl.store(numbers + WINDOW, window)
    tl.store(numbers + G_SIGMA, G_sigma / dim)
    tl.store(numbers + MEAN_G, mean_g / dim)
    tl.store(numbers + W_NORM2, w_norm2)


@triton.jit
def moments(
    along,
    by_row,
    pairs,
    table,
    M,
    numbers,
    half,
    room,
    width,
    AXES: tl.constexpr,
    TILE: tl.constexpr,
):
    """Products of one direction with sums of draws, and its row of M = V^T G V (c)."""
    n, k = tl.program_id(0), tl.load(numbers + K).to(tl.int32)
    c = tl.arange(0, AXES)
    row = tl.zeros([AXES], tl.float64)
    gz, gm, ww = tl.zeros([], tl.float64), tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    for start in range(0, half, TILE):
        i = start + tl.arange(0, TILE)
        there = i < half
        share = tl.load(along + n * half + i, mask=there, other=0.0)
        w = tl.load(pairs + EVEN * half + i, mask=there, other=0.0)
        gz += tl.sum(share * tl.load(by_row + W_GZ * half + i, mask=there, other=0.0))
        gm += tl.sum(share * tl.load(by_row + W_GM * half + i, mask=there, other=0.0))
        ww += tl.sum(w * share * share)
        axes = along + (2 + c)[:, None] * half + i[None, :]
        axes = tl.load(axes, mask=(c < k)[:, None] & there[None, :], other=0.0)
        row += tl.sum(axes * (w * share)[None, :], 1)
    tl.store(M + n * room + c, row, mask=c < room)
    tl.store(table + GZ_ALONG * width + n, gz)
    tl.store(table + GM_ALONG * width + n, gm)
    tl.store(table + WW * width + n, ww)


@triton.jit
def _next_rates(numbers, constants, g_E, g2, DOUBLE: tl.constexpr):
    """The rates from <g, E_m> and |g|^2 of the mean's gradient g, (k) to (n)."""
    eta, b = tl.load(numbers + ETA), tl.load(numbers + WINDOW)
    tiny, c = tl.load(constants + TINY), tl.load(constants + SIGMA_WINDOW)
    seen = tl.load(numbers + SEEN)
    seen = rounded(seen + b * (1.0 - seen), DOUBLE)
    product = g_E / seen
    signal, noise = tl.load(numbers + SIGNAL), tl.load(numbers + NOISE)
    signal = rounded(signal + b * (product - signal), DOUBLE)
    noise = rounded(noise + b * (g2 - noise), DOUBLE)
    size = tl.maximum(noise / seen, tiny)
    change = product / size / tl.load(constants + LEAST_RATIO) - eta
    change, most = tl.load(constants + SPEED) * change, tl.load(constants + MOST_CHANGE)
    new = eta * tl.exp(clipped(change, -most, most))
    new = rounded(clipped(new, tl.load(constants + LEAST_RATE), 1.0), DOUBLE)
    G_sigma = tl.load(numbers + G_SIGMA)
    G, G2 = tl.load(numbers + GRADIENT), tl.load(numbers + SQUARE)
    G = rounded(G + c * (G_sigma - G), DOUBLE)
    G2 = rounded(G2 + c * (G_sigma * G_sigma - G2), DOUBLE)
    lengths = (G * G - c / (2.0 - c) * G2) / tl.maximum(G2 - G * G, tiny)
    lengths = clipped(lengths / tl.load(constants + SIGMA_RATIO), 0.0, 1.0)
    linear = signal / (size * seen) / tl.load(constants + LINEAR_RATIO)
    settled = tl.load(constants + SETTLED) * tl.maximum(linear, 0.0)
    space = tl.maximum(lengths - settled, 0.0)
    tl.store(numbers + SEEN, seen)
    tl.store(numbers + SIGNAL, signal)
    tl.store(numbers + NOISE, noise)
    tl.store(numbers + ETA, new)
    tl.store(numbers + GRADIENT, G)
    tl.store(numbers + SQUARE, G2)
    widening = tl.exp(tl.load(constants + WIDENING) * tl.log(eta / new))
    return new, clipped(new + space * space, 0.0, 1.0), widening


@triton.jit
def judge(
    table,
    numbers,
    constants,
    rates,
    partial,
    half,
    programs,
    width,
    DOUBLE: tl.constexpr,
    AXES: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """How fast D learns (h), the evidence for axes (i), the rates, the new sigma, and V^T q."""
    if tl.load(numbers + LIVE) == 1.0:
        popsize = 2 * half
        window, least = tl.load(constants + D_WINDOW), tl.load(constants + LEAST_D_RATE)
        signal, noise = tl.load(numbers + D_SIGNAL), tl.load(numbers + D_NOISE)
        signal = rounded(signal + window * (added(partial, 1, programs, WIDTH) - signal), DOUBLE)
        noise = rounded(noise + window * (added(partial, 2, programs, WIDTH) - noise), DOUBLE)
        clear = tl.load(constants + DIM) * signal / noise - tl.load(constants + QUIET)
        r_D = clipped(clear / tl.load(constants + CLEAR), least, 1.0)
        busy = clipped((r_D - least) / (1.0 - least), 0.0, 1.0)
        before, gz = tl.load(table + PATH_ALONG * width), tl.load(table + GZ_ALONG * width)
        sign = (before > 0.0).to(tl.float64) - (before < 0.0).to(tl.float64)
        persistent = sign * tl.sqrt(tl.load(constants + MU_EFF)) * gz
        noise2 = tl.maximum(2.0 * tl.load(numbers + W_NORM2), tl.load(constants + TINY))
        shorter = -tl.load(table + WW * width + 1) / tl.sqrt(noise2)
        drift = tl.load(constants + DRIFT)
        evidence = tl.load(numbers + EVIDENCE_LONG) + (1.0 - busy) * persistent - drift
        tl.store(numbers + EVIDENCE_LONG, rounded(tl.maximum(evidence, 0.0), DOUBLE))
        evidence = tl.load(numbers + EVIDENCE_SHORT) + (1.0 - busy) * shorter - drift
        tl.store(numbers + EVIDENCE_SHORT, rounded(tl.maximum(evidence, 0.0), DOUBLE))

        g_E, g2 = added(partial, 3, programs, WIDTH), added(partial, 4, programs, WIDTH)
        of_mean, of_sigma, widening = _next_rates(numbers, constants, g_E, g2, DOUBLE)
        phase = tl.load(numbers + PHASE)
        lam_F = tl.load(numbers + LAM_F).to(tl.int32)
        growth = of_sigma * rate_of_sigma(rates, phase, popsize, lam_F)
        growth = tl.exp(growth * tl.load(numbers + G_SIGMA) / 2.0) * widening

        # q = (1 - c_c) R^(-1/2) p_c / D + scale_c sum(w z); scouts are at right angles to the axes.
        c, k = tl.arange(0, AXES), tl.load(numbers + K).to(tl.int32)
        is_axis = (c >= 2) & (c < 2 + k)
        S_c = tl.load(table + S * width + c - 2, mask=is_axis, other=1.0)
        q = (1.0 - tl.load(constants + C_C)) / tl.sqrt(S_c)
        q = q * tl.load(table + PATH_ALONG * width + c, mask=c < 2 + k, other=0.0)
        gz_along = tl.load(table + GZ_ALONG * width + c, mask=c < 2 + k, other=0.0)
        q += tl.load(constants + SCALE_C) * gz_along
        tl.store(table + Q_ALONG * width + c, q, mask=c < 2 + k)
        tl.store(numbers + D_SIGNAL, signal)
        tl.store(numbers + D_NOISE, noise)
        tl.store(numbers + R_D, r_D)
        tl.store(numbers + Q_NORM2, added(partial, 0, programs, WIDTH))
        tl.store(numbers + ETA_MEAN, of_mean)
        tl.store(numbers + NEXT_SIGMA, rounded(tl.load(numbers + SIGMA) * growth, DOUBLE))
