"""The weights of each pair, the phase, which they depend on, and the new sigma."""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates
from fmnes.engines.triton_kernels.draws import int64, normals_of_pair
from fmnes.engines.triton_kernels.names import (
    A_PATH,
    AA,
    ALPHA,
    C_1,
    C_C,
    C_SIGMA,
    CERTAIN,
    CHI_N,
    DIM,
    EVEN,
    EVEN_A,
    EVEN_DIST,
    EVEN_HAT,
    FACTOR,
    KAPPA,
    LAM_F,
    LARGEST,
    LONG_V,
    NORM_V2,
    NORM_Z2,
    ODD,
    ODD_A,
    ODD_DIST,
    ODD_HAT,
    P_SIGMA2,
    PC_V,
    PHASE,
    POPSIZE,
    S_ALONG,
    SAFETY,
    SCALE_C,
    SCALE_SIGMA,
    SIGMA,
    T_ALPHA,
    T_C_1,
    T_ETA_B,
    T_ETA_CONVERGENCE,
    T_ETA_MOVEMENT,
    T_ETA_STAGNATION,
    V_MAX2,
    ZP,
    ZV,
    B,
)
from fmnes.engines.triton_kernels.parts import added, phase_of


@triton.jit
def weigh(values, w_hat, pairs, numbers, constants, rates, half, TILE: tl.constexpr):
    """Both kinds of weights of each pair (eqs. 6 and 7), and the phase if it is certain already."""
    popsize = 2 * half
    infeasible, farthest = 0, tl.zeros([], tl.float64)
    for start in range(0, popsize, TILE):
        i = start + tl.arange(0, TILE)
        f = tl.load(values + i, mask=i < popsize, other=0.0)
        infeasible += tl.sum((~(f < float("inf"))).to(tl.int32))
        norm2 = tl.load(pairs + NORM_Z2 * half + i % half, mask=i < popsize, other=0.0)
        farthest = tl.maximum(farthest, tl.max(tl.sqrt(norm2)))
    lam_F = popsize - infeasible
    alpha = tl.load(rates + T_ALPHA * (popsize + 1) + lam_F)
    total = tl.zeros([], tl.float64)
    for start in range(0, popsize, TILE):
        i = start + tl.arange(0, TILE)
        norm = tl.sqrt(tl.load(pairs + NORM_Z2 * half + i % half, mask=i < popsize, other=0.0))
        w = tl.load(w_hat + i, mask=i < popsize, other=0.0)
        total += tl.sum(w * tl.exp(alpha * (norm - farthest)))
    odd_path, odd2_norm2, odd2 = total * 0, total * 0, total * 0
    for start in range(0, half, TILE):
        i = start + tl.arange(0, TILE)
        there = i < half
        norm2 = tl.load(pairs + NORM_Z2 * half + i, mask=there, other=0.0)
        plus = tl.load(w_hat + i, mask=there, other=0.0)
        minus = tl.load(w_hat + half + i, mask=there, other=0.0)
        distance = tl.exp(alpha * (tl.sqrt(norm2) - farthest)) / total
        even_all = 2.0 / tl.load(constants + POPSIZE)
        tl.store(pairs + ODD_HAT * half + i, plus - minus, mask=there)
        tl.store(pairs + EVEN_HAT * half + i, plus + minus - even_all, mask=there)
        tl.store(pairs + ODD_DIST * half + i, (plus - minus) * distance, mask=there)
        tl.store(pairs + EVEN_DIST * half + i, (plus + minus) * distance - even_all, mask=there)
        odd_path += tl.sum((plus - minus) * tl.load(pairs + ZP * half + i, mask=there, other=0.0))
        odd2_norm2 += tl.sum((plus - minus) * (plus - minus) * norm2)
        odd2 += tl.sum((plus - minus) * (plus - minus))
    # |p_sigma|^2 of the new path without the products of different rows, whose sum is about
    # N(0, 2 d (sum odd^2)^2) before the scale.
    keep, scale = 1.0 - tl.load(constants + C_SIGMA), tl.load(constants + SCALE_SIGMA)
    length2 = keep * keep * tl.load(numbers + P_SIGMA2) + 2.0 * keep * scale * odd_path
    length2 += scale * scale * odd2_norm2
    margin = SAFETY * scale * scale * tl.sqrt(2.0 * tl.load(constants + DIM)) * odd2
    margin += 1e-5 * length2
    chi2 = tl.load(constants + CHI_N) * tl.load(constants + CHI_N)
    certain = (tl.abs(length2 - chi2) > margin) & (tl.abs(length2 - 0.01 * chi2) > margin)
    tl.store(numbers + LAM_F, lam_F.to(tl.float64))
    tl.store(numbers + CERTAIN, certain.to(tl.float64))
    tl.store(numbers + PHASE, phase_of(length2, chi2))


@triton.jit
def path_length(
    z,
    words,
    p_sigma,
    pairs,
    numbers,
    constants,
    partial,
    dim,
    half,
    blocks,
    STORED: tl.constexpr,
    DOUBLE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Partial sums of |p_sigma|^2 of the new path, unless the phase is certain without it."""
    if tl.load(numbers + CERTAIN) == 0.0:
        dtype = p_sigma.dtype.element_ty
        keep = (1.0 - tl.load(constants + C_SIGMA)).to(dtype)
        scale = tl.load(constants + SCALE_SIGMA).to(dtype)
        total = tl.zeros([TILE], tl.float64)
        for tile in range(tl.program_id(0), tl.cdiv(blocks, TILE), tl.num_programs(0)):
            block = int64(tile) * TILE + tl.arange(0, TILE)
            j = coordinates(block)
            hat_x, hat_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
            for i in range(half):
                x, y = normals_of_pair(z, words, i, block, j, dim, STORED, DOUBLE)
                w = tl.load(pairs + ODD_HAT * half + i).to(dtype)
                hat_x += w * x
                hat_y += w * y
            x = keep * tl.load(p_sigma + j, mask=j < dim, other=0.0) + scale * hat_x
            y = keep * tl.load(p_sigma + j + 8, mask=j + 8 < dim, other=0.0) + scale * hat_y
            total += tl.where(j < dim, x.to(tl.float64) * x, 0.0)
            total += tl.where(j + 8 < dim, y.to(tl.float64) * y, 0.0)
        tl.store(partial + tl.program_id(0), tl.sum(total))


@triton.jit
def decided_phase(numbers, constants, partial, programs, WIDTH: tl.constexpr):
    """The phase, by the sums of `path_length` unless it was certain without them."""
    phase, chi_n = tl.load(numbers + PHASE), tl.load(constants + CHI_N)
    if tl.load(numbers + CERTAIN) == 0.0:
        phase = phase_of(added(partial, 0, programs, WIDTH), chi_n * chi_n)
    return phase


@triton.jit
def rate_of_sigma(rates, phase, popsize, lam_F):
    """The learning rate of sigma in a phase."""
    row = tl.where(phase == 2.0, T_ETA_STAGNATION, T_ETA_CONVERGENCE)
    row = tl.where(phase == 1.0, T_ETA_MOVEMENT, row)
    return tl.load(rates + row * (popsize + 1) + lam_F)


@triton.jit
def decide(
    pairs,
    numbers,
    constants,
    rates,
    partial,
    half,
    programs,
    SAFE: tl.constexpr,
    DOUBLE: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """The weights of the phase, the new sigma, and the numbers of the natural gradient."""
    popsize = 2 * half
    phase = decided_phase(numbers, constants, partial, programs, WIDTH)
    lam_F = tl.load(numbers + LAM_F).to(tl.int32)
    norm_v2, sigma = tl.load(numbers + NORM_V2), tl.load(numbers + SIGMA)
    norm_v = tl.sqrt(norm_v2)
    eta_B = tl.load(rates + T_ETA_B * (popsize + 1) + lam_F)
    if SAFE:  # `_eta_B`
        slower = tl.minimum(tl.load(constants + LONG_V) / norm_v, 1.0)
        eta_B = tl.where(phase == 1.0, eta_B, eta_B * slower)
    odd_a, aa, trace = norm_v * 0, norm_v * 0, norm_v * 0
    for start in range(0, half, TILE):
        i = start + tl.arange(0, TILE)
        there = i < half
        row = tl.where(phase == 1.0, ODD_DIST, ODD_HAT)
        odd = tl.load(pairs + row * half + i, mask=there, other=0.0)
        row = tl.where(phase == 1.0, EVEN_DIST, EVEN_HAT)
        even = tl.load(pairs + row * half + i, mask=there, other=0.0)
        a = tl.load(pairs + ZV * half + i, mask=there, other=0.0) / norm_v
        trace += tl.sum(even * tl.load(pairs + NORM_Z2 * half + i, mask=there, other=0.0))
        even = eta_B * even
        odd_a += tl.sum(odd * a)
        aa += tl.sum(even * a * a)
        tl.store(pairs + ODD * half + i, odd, mask=there)
        tl.store(pairs + EVEN * half + i, even, mask=there)
        tl.store(pairs + EVEN_A * half + i, even * a, mask=there)
    rate = rate_of_sigma(rates, phase, popsize, lam_F)  # line 11
    c_1 = tl.load(rates + T_C_1 * (popsize + 1) + lam_F)  # eq. (29)
    g = 1.0 + norm_v2
    r = tl.sqrt(g)
    # a of the path as a sample: <p_c / D, vbar> / r after line 12
    keep, scale = 1.0 - tl.load(constants + C_C), tl.load(constants + SCALE_C)
    a_path = keep * tl.load(numbers + PC_V) / norm_v / r + scale * odd_a
    # Steps 3 and 4 of `natural_gradient`, where they depend on v alone
    largest = tl.load(numbers + V_MAX2) / norm_v2
    kappa = tl.minimum((2.0 - 1.0 / r) / largest, 4.0)
    rest = (4.0 - kappa) / (g + 1.0) * (g / (g + 1.0))
    alpha = tl.sqrt(1.0 - rest)
    sigma_new = sigma * tl.exp(rate * (trace / tl.load(constants + DIM)) / 2.0)  # lines 18, 19
    if not DOUBLE:
        sigma_new = sigma_new.to(tl.float32).to(tl.float64)
    tl.store(numbers + PHASE, phase)
    tl.store(numbers + C_1, c_1)
    tl.store(numbers + A_PATH, a_path)
    tl.store(numbers + ODD_A, odd_a)
    tl.store(numbers + AA, aa)
    tl.store(numbers + ALPHA, alpha)
    tl.store(numbers + KAPPA, kappa)
    tl.store(numbers + LARGEST, largest)
    tl.store(numbers + B, kappa - 2.0 + 2.0 * rest)
    tl.store(numbers + FACTOR, (4.0 - kappa) * r / ((g + 1.0) * (1.0 + alpha)) - 2.0)
    tl.store(numbers + S_ALONG, sigma_new)  # becomes sigma when the mean has moved
