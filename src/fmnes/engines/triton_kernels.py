"""Triton kernels of CR-FM-NES: passes over the draws, and passes over vectors.

The equations are those of `algorithms.cr_fm_nes` and `algorithms._vd_gaussian`, in their notation;
this file says only in which order a GPU computes them. The draws of a tile are made from their
addresses, or loaded if they are stored. A kernel with sums writes one partial sum for each of its
programs, and a kernel of one program adds them, always in the same order. The number of programs
depends on d alone, so equal GPUs give equal bits.

Numbers that belong to a generation stand in one float64 array, at the places named below.
"""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates, load_address, normals_of


def _places(names):
    """The place of each name of an array, as the kernels need it."""
    return tuple(tl.constexpr(place) for place in range(len(names)))


# What the arrays hold, in order. The engine fills them by these names; the kernels know the places
# under the same names in capitals.
NUMBERS = (
    # of the state
    *("sigma", "norm_v2", "v_max2", "p_sigma2", "denominator", "vv_vv_h", "pc_v", "stretch"),
    # of the update
    *("lam_F", "certain", "phase", "c_1", "a_path", "odd_a", "aa", "s_along"),
    *("alpha", "kappa", "largest", "b", "factor"),
    *("c_h", "along", "fraction", "d_scale", "v_scale"),
    # of the values: whether all are equal (and the method is safe), which candidate is the best
    # one, whether it is the best so far, and the two values in the middle
    *("flat", "best", "better", "middle_below", "middle_above"),
)
SIGMA, NORM_V2, V_MAX2, P_SIGMA2, DENOMINATOR, VV_VV_H, PC_V, STRETCH = _places(NUMBERS)[:8]
LAM_F, CERTAIN, PHASE, C_1, A_PATH, ODD_A, AA, S_ALONG = _places(NUMBERS)[8:16]
ALPHA, KAPPA, LARGEST, B, FACTOR = _places(NUMBERS)[16:21]
C_H, ALONG, FRACTION, D_SCALE, V_SCALE = _places(NUMBERS)[21:26]
FLAT, BEST, BETTER, MIDDLE_BELOW, MIDDLE_ABOVE = _places(NUMBERS)[26:]
CONSTANTS = (
    *("dim", "popsize", "chi_n", "c_sigma", "scale_sigma", "c_c", "scale_c"),
    *("long_v", "largest_step", "D_limit", "v_min", "v_max", "eps", "tolx"),
)
DIM, POPSIZE, CHI_N, C_SIGMA, SCALE_SIGMA, C_C, SCALE_C = _places(CONSTANTS)[:7]
LONG_V, LARGEST_STEP, D_LIMIT, V_MIN, V_MAX, EPS, TOLX = _places(CONSTANTS)[7:]
# Rows of the table of rates by the number of feasible candidates; T_ before their capitals.
RATES = ("alpha", "eta_B", "eta_movement", "eta_stagnation", "eta_convergence", "c_1")
T_ALPHA, T_ETA_B, T_ETA_MOVEMENT, T_ETA_STAGNATION, T_ETA_CONVERGENCE, T_C_1 = _places(RATES)
# Rows of the array with a number for each pair of candidates.
PAIRS = (
    *("zv", "norm_z2", "zp", "odd_hat", "even_hat", "odd_dist", "even_dist"),
    *("odd", "even", "even_a"),
)
ZV, NORM_Z2, ZP, ODD_HAT, EVEN_HAT, ODD_DIST, EVEN_DIST, ODD, EVEN, EVEN_A = _places(PAIRS)
# The figures of a generation that the host gets; F_ before their capitals.
FIGURES = (
    # of the values, as in `Survey`
    *("nan", "feasible", "least", "most", "size", "median", "flat"),
    # of the state
    *("sigma", "axis_ratio", "norm_v", "phase"),
    *("deviation_min", "deviation_max", "mean_max", "shrunk"),
)
F_NAN, F_FEASIBLE, F_LEAST, F_MOST, F_SIZE, F_MEDIAN, F_FLAT = _places(FIGURES)[:7]
F_SIGMA, F_AXIS_RATIO, F_NORM_V, F_PHASE = _places(FIGURES)[7:11]
F_DEVIATION_MIN, F_DEVIATION_MAX, F_MEAN_MAX, F_SHRUNK = _places(FIGURES)[11:]
# The phase is certain before p_sigma is known if |p_sigma| is this many standard deviations away
# from the limits of the phases.
SAFETY = tl.constexpr(100.0)


@triton.jit
def int64(i):
    """An index that may exceed 32 bits once it is multiplied."""
    return i + tl.zeros([], tl.int64)


# === The draws of a tile ===


@triton.jit
def _draw(z, words, i, block, j, dim, STORED: tl.constexpr, DOUBLE: tl.constexpr):
    """The two normals of each block in row i: loaded if they are stored, else made.

    Numbers for coordinates beyond the last one are undefined.
    """
    i = int64(i)
    if STORED:
        row = z + i * dim
        cosine = tl.load(row + j, mask=j < dim, other=0.0)
        sine = tl.load(row + j + 8, mask=j + 8 < dim, other=0.0)
    else:
        seed, generation, stream = load_address(words)
        cosine, sine = normals_of(seed, generation, stream, i, block, DOUBLE)
    return cosine, sine


@triton.jit
def row_sums(
    z,
    words,
    v,
    p_sigma,
    partial,
    dim,
    half,
    blocks,
    STORE: tl.constexpr,
    DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Partial sums of <z, v>, |z|^2 and <z, p_sigma> of some rows; keeps the draws if asked."""
    seed, generation, stream = load_address(words)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    programs = tl.num_programs(1)
    dtype = v.dtype.element_ty
    along = tl.zeros([ROWS, TILE], dtype)
    norm2 = tl.zeros([ROWS, TILE], dtype)
    path = tl.zeros([ROWS, TILE], dtype)
    for tile in range(tl.program_id(1), tl.cdiv(blocks, TILE), programs):
        block = int64(tile) * TILE + tl.arange(0, TILE)
        j = coordinates(block)
        x, y = normals_of(seed, generation, stream, i[:, None], block[None, :], DOUBLE)
        x = tl.where((j < dim)[None, :], x, 0.0)
        y = tl.where((j + 8 < dim)[None, :], y, 0.0)
        if STORE:
            to = z + int64(i)[:, None] * dim + j[None, :]
            tl.store(to, x, mask=(i < half)[:, None] & (j < dim)[None, :])
            tl.store(to + 8, y, mask=(i < half)[:, None] & (j + 8 < dim)[None, :])
        vx = tl.load(v + j, mask=j < dim, other=0.0)[None, :]
        vy = tl.load(v + j + 8, mask=j + 8 < dim, other=0.0)[None, :]
        px = tl.load(p_sigma + j, mask=j < dim, other=0.0)[None, :]
        py = tl.load(p_sigma + j + 8, mask=j + 8 < dim, other=0.0)[None, :]
        along += x * vx + y * vy
        norm2 += x * x + y * y
        path += x * px + y * py
    to = partial + int64(i) * programs + tl.program_id(1)
    stride = int64(half) * programs
    tl.store(to, tl.sum(along.to(tl.float64), 1), mask=i < half)
    tl.store(to + stride, tl.sum(norm2.to(tl.float64), 1), mask=i < half)
    tl.store(to + 2 * stride, tl.sum(path.to(tl.float64), 1), mask=i < half)


@triton.jit
def add_row_sums(partial, pairs, half, programs, WIDTH: tl.constexpr):
    """Add the partial sums of one row and kind."""
    i, kind = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, WIDTH)
    parts = partial + int64(kind * half + i) * programs + at
    tl.store(pairs + kind * half + i, tl.sum(tl.load(parts, mask=at < programs, other=0.0)))


@triton.jit
def write_rows(
    out,
    z,
    words,
    mean,
    D,
    v,
    numbers,
    pairs,
    dim,
    half,
    first,
    last,
    low,
    high,
    start,
    size,
    STORED: tl.constexpr,
    DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write the coordinates start to start + size - 1 of candidates first to last - 1.

    x = m + sigma D (z + (r - 1) a vbar), and its mirror image with - sigma.
    """
    dtype = mean.dtype.element_ty
    block = (start // 16 * 8) + int64(tl.program_id(0)) * TILE + tl.arange(0, TILE)
    j = coordinates(block)
    in_x, in_y = (j >= start) & (j < start + size), (j + 8 >= start) & (j + 8 < start + size)
    sigma = tl.load(numbers + SIGMA).to(dtype)
    mean_x = tl.load(mean + j, mask=in_x, other=0.0)
    mean_y = tl.load(mean + j + 8, mask=in_y, other=0.0)
    scale_x = sigma * tl.load(D + j, mask=in_x, other=0.0)
    scale_y = sigma * tl.load(D + j + 8, mask=in_y, other=0.0)
    v_x = tl.load(v + j, mask=in_x, other=0.0)
    v_y = tl.load(v + j + 8, mask=in_y, other=0.0)
    stretch = tl.load(numbers + STRETCH).to(dtype)
    begin = low + tl.program_id(1) * ROWS  # of the pairs low to high - 1, which include these rows
    for number in range(begin, min(high, begin + ROWS)):
        i = int64(number)
        plus, minus = (i >= first) & (i < last), (i + half >= first) & (i + half < last)
        if plus | minus:
            x, y = _draw(z, words, i, block, j, dim, STORED, DOUBLE)
            c = stretch * tl.load(pairs + ZV * half + i).to(dtype)
            x, y = tl.fma(v_x, c, x), tl.fma(v_y, c, y)
            to = out + (i - first) * size + (j - start)
            if plus:
                tl.store(to, tl.fma(scale_x, x, mean_x), mask=in_x)
                tl.store(to + 8, tl.fma(scale_y, y, mean_y), mask=in_y)
            if minus:
                tl.store(to + int64(half) * size, tl.fma(-scale_x, x, mean_x), mask=in_x)
                tl.store(to + int64(half) * size + 8, tl.fma(-scale_y, y, mean_y), mask=in_y)


@triton.jit(do_not_specialize=["candidate"])
def write_row(
    out,
    words,
    mean,
    D,
    v,
    numbers,
    pairs,
    half,
    candidate,
    start,
    size,
    ALIGNED: tl.constexpr,
    DOUBLE: tl.constexpr,
    TILE: tl.constexpr,
):
    """`write_rows` for one candidate whose draws are not stored; the same bits in less time.

    A program takes several tiles, and within a tile numbers of 32 bits count the coordinates.
    ALIGNED: start and size are multiples of 16, so that four numbers are loaded at a time.
    """
    dtype = mean.dtype.element_ty
    seed, generation, stream = load_address(words)
    row = candidate % half
    sigma = tl.load(numbers + SIGMA).to(dtype)
    sigma = tl.where(candidate < half, sigma, -sigma)
    c = tl.load(numbers + STRETCH).to(dtype) * tl.load(pairs + ZV * half + row).to(dtype)
    number = tl.arange(0, TILE)
    j = coordinates(number)
    origin = int64(start) // 16 * 16
    tiles = tl.cdiv(start + size - origin, 2 * TILE)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        base = origin + int64(tile) * (2 * TILE)
        end = tl.minimum(start + size - base, 2 * TILE).to(tl.int32)
        if ALIGNED:
            end = tl.multiple_of(end, 16)
            in_x, in_y = j < end, j + 8 < end
        else:
            begin = tl.maximum(start - base, 0).to(tl.int32)
            in_x, in_y = (j >= begin) & (j < end), (j + 8 >= begin) & (j + 8 < end)
        mean_x = tl.load(mean + base + j, mask=in_x, other=0.0)
        mean_y = tl.load(mean + base + 8 + j, mask=in_y, other=0.0)
        D_x = tl.load(D + base + j, mask=in_x, other=0.0)
        D_y = tl.load(D + base + 8 + j, mask=in_y, other=0.0)
        v_x = tl.load(v + base + j, mask=in_x, other=0.0)
        v_y = tl.load(v + base + 8 + j, mask=in_y, other=0.0)
        block = (base // 2).to(tl.uint32) + number.to(tl.uint32)
        x, y = normals_of(seed, generation, stream, row, block, DOUBLE)
        x, y = tl.fma(v_x, c, x), tl.fma(v_y, c, y)
        to = out + (base - start)
        tl.store(to + j, tl.fma(sigma * D_x, x, mean_x), mask=in_x)
        tl.store(to + 8 + j, tl.fma(sigma * D_y, y, mean_y), mask=in_y)


# === Ranking and weights ===


@triton.jit
def survey(values, best_so_far, numbers, figures, half, SAFE: tl.constexpr, TILE: tl.constexpr):
    """What the values say by themselves, as `generation.survey` of the host; not the median."""
    popsize = 2 * half
    infinity = float("inf")
    nan, feasible = tl.zeros([], tl.int32), tl.zeros([], tl.int32)
    best = tl.zeros([], tl.int32)
    least = tl.full([], infinity, tl.float64)
    most = -least
    for start in range(0, popsize, TILE):
        i = start + tl.arange(0, TILE)
        f = tl.load(values + i, mask=i < popsize, other=infinity)
        can_rank = f < infinity
        nan += tl.sum((f != f).to(tl.int32))
        feasible += tl.sum(can_rank.to(tl.int32))
        value = tl.where(can_rank, f, infinity)
        here = tl.min(value)
        first = tl.min(tl.where(value == here, i, popsize))
        best = tl.where(here < least, first, best)
        least = tl.minimum(least, here)
        most = tl.maximum(most, tl.max(tl.where(can_rank, f, -infinity)))
    most = tl.where(feasible > 0, most, infinity)
    flat = (feasible == popsize) & (least == most) & (tl.abs(least) < infinity)
    tl.store(figures + F_NAN, nan.to(tl.float64))
    tl.store(figures + F_FEASIBLE, feasible.to(tl.float64))
    tl.store(figures + F_LEAST, least)
    tl.store(figures + F_MOST, most)
    tl.store(figures + F_SIZE, tl.maximum(tl.abs(least), tl.abs(most)))
    tl.store(figures + F_FLAT, flat.to(tl.float64))
    tl.store(numbers + FLAT, (flat & SAFE).to(tl.float64))
    tl.store(numbers + BEST, best.to(tl.float64))
    tl.store(numbers + BETTER, (least < tl.load(best_so_far)).to(tl.float64))


@triton.jit
def keep(best, z, mean, D, v, numbers, pairs, dim, half, TILE: tl.constexpr):
    """Write the best candidate if it is the best so far, with the operations of `write_rows`."""
    if tl.load(numbers + BETTER) == 1.0:
        dtype = mean.dtype.element_ty
        candidate = tl.load(numbers + BEST).to(tl.int32)
        row = candidate % half
        sigma = tl.load(numbers + SIGMA).to(dtype)
        sigma = tl.where(candidate < half, sigma, -sigma)
        c = tl.load(numbers + STRETCH).to(dtype) * tl.load(pairs + ZV * half + row).to(dtype)
        for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
            j = int64(tile) * TILE + tl.arange(0, TILE)
            x = tl.load(z + int64(row) * dim + j, mask=j < dim, other=0.0)
            x = tl.fma(tl.load(v + j, mask=j < dim, other=0.0), c, x)
            scale = sigma * tl.load(D + j, mask=j < dim, other=0.0)
            m = tl.load(mean + j, mask=j < dim, other=0.0)
            tl.store(best + j, tl.fma(scale, x, m), mask=j < dim)


@triton.jit
def rank(
    values,
    pairs,
    numbers,
    by_rank,
    cumulated,
    w_hat,
    half,
    SHARE_TIES: tl.constexpr,
    TILE: tl.constexpr,
):
    """The weight of each candidate's rank, by counting: see `weights_by_candidate`.

    Keeps the two values in the middle, too.
    """
    popsize = 2 * half
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    f_i = tl.load(values + i, mask=i < popsize, other=0.0)
    infeasible_i = ~(f_i < float("inf"))
    d_i = tl.load(pairs + NORM_Z2 * half + i % half, mask=(i < popsize) & infeasible_i, other=0.0)
    f_i = tl.where(infeasible_i, float("inf"), f_i)
    before, equal, earlier = tl.zeros([TILE], tl.int32), tl.zeros([TILE], tl.int32), i * 0
    for start in range(0, popsize, TILE):
        k = start + tl.arange(0, TILE)
        f_k = tl.load(values + k, mask=k < popsize, other=0.0)
        infeasible_k = ~(f_k < float("inf"))
        there = (k < popsize)[None, :]
        d_k = tl.load(
            pairs + NORM_Z2 * half + k % half, mask=(k < popsize) & infeasible_k, other=0.0
        )
        f_k = tl.where(infeasible_k, float("inf"), f_k)
        less = f_k[None, :] < f_i[:, None]
        same = f_k[None, :] == f_i[:, None]
        less = (less | (same & (d_k[None, :] < d_i[:, None]))) & there
        same = same & (d_k[None, :] == d_i[:, None]) & there
        before += tl.sum(less.to(tl.int32), 1)
        equal += tl.sum(same.to(tl.int32), 1)
        earlier += tl.sum((same & (k[None, :] < i[:, None])).to(tl.int32), 1)
    place = before + earlier
    tl.store(numbers + MIDDLE_BELOW + i * 0, f_i, mask=(i < popsize) & (place == half - 1))
    tl.store(numbers + MIDDLE_ABOVE + i * 0, f_i, mask=(i < popsize) & (place == half))
    if SHARE_TIES:
        total = tl.load(cumulated + before + equal, mask=i < popsize, other=0.0)
        total -= tl.load(cumulated + before, mask=i < popsize, other=0.0)
        alone = tl.load(by_rank + before, mask=i < popsize, other=0.0)
        w = tl.where(equal <= 1, alone, total / tl.maximum(equal, 1).to(tl.float64))
    else:
        w = tl.load(by_rank + before + earlier, mask=i < popsize, other=0.0)
    tl.store(w_hat + i, w, mask=i < popsize)


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
    tl.store(numbers + PHASE, _phase(length2, chi2))


@triton.jit
def _phase(length2, chi2):
    """1 movement, 2 stagnation, 3 convergence, by the length of the path p_sigma (step 5)."""
    return 1.0 + (length2 < chi2).to(tl.float64) + (length2 < 0.01 * chi2).to(tl.float64)


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
                x, y = _draw(z, words, i, block, j, dim, STORED, DOUBLE)
                w = tl.load(pairs + ODD_HAT * half + i).to(dtype)
                hat_x += w * x
                hat_y += w * y
            x = keep * tl.load(p_sigma + j, mask=j < dim, other=0.0) + scale * hat_x
            y = keep * tl.load(p_sigma + j + 8, mask=j + 8 < dim, other=0.0) + scale * hat_y
            total += tl.where(j < dim, x.to(tl.float64) * x, 0.0)
            total += tl.where(j + 8 < dim, y.to(tl.float64) * y, 0.0)
        tl.store(partial + tl.program_id(0), tl.sum(total))


@triton.jit
def _added(partial, kind, programs, WIDTH: tl.constexpr):
    """The sum of a kernel's partial sums of one kind."""
    at = tl.arange(0, WIDTH)
    return tl.sum(tl.load(partial + kind * programs + at, mask=at < programs, other=0.0))


@triton.jit
def _largest(partial, kind, programs, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    return tl.max(tl.load(partial + kind * programs + at, mask=at < programs, other=-1e300))


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
    chi_n = tl.load(constants + CHI_N)
    phase = tl.load(numbers + PHASE)
    if tl.load(numbers + CERTAIN) == 0.0:
        phase = _phase(_added(partial, 0, programs, WIDTH), chi_n * chi_n)
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
    row = tl.where(
        phase == 1.0, T_ETA_MOVEMENT, tl.where(phase == 2.0, T_ETA_STAGNATION, T_ETA_CONVERGENCE)
    )
    rate = tl.load(rates + row * (popsize + 1) + lam_F)  # line 11
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


# === The sums over the draws, and the mean and the paths ===


@triton.jit
def _H(vv, largest, r):
    """Step 4 of `natural_gradient`."""
    share = vv / largest
    return 2.0 * (1.0 - share) + share * tl.maximum(2.0 - 4.0 * largest, 1.0 / r)


@triton.jit
def _update(
    j, inside, hat, gz, az, zz, mean, D, v, p_sigma, p_c, az_out, s_out, numbers, constants
):
    """Lines 9, 12 and 13 for some coordinates; returns vv s of steps 1 to 4."""
    dtype = mean.dtype.element_ty
    norm_v2 = tl.load(numbers + NORM_V2)
    norm_v, r = tl.sqrt(norm_v2), tl.sqrt(1.0 + norm_v2)
    odd_a, aa, c_1 = tl.load(numbers + ODD_A), tl.load(numbers + AA), tl.load(numbers + C_1)
    a_path, alpha = tl.load(numbers + A_PATH), tl.load(numbers + ALPHA)
    sigma = tl.load(numbers + SIGMA).to(dtype)
    vbar = tl.load(v + j, mask=inside, other=0.0) * (1.0 / norm_v).to(dtype)
    vv = vbar * vbar
    d = tl.load(D + j, mask=inside, other=1.0)
    path = (1.0 - tl.load(constants + C_SIGMA)).to(dtype) * tl.load(
        p_sigma + j, mask=inside, other=0.0
    )
    path += tl.load(constants + SCALE_SIGMA).to(dtype) * hat  # eq. (1)
    tl.store(p_sigma + j, path, mask=inside)
    gy = d * (gz + ((r - 1.0) * odd_a).to(dtype) * vbar)
    m = tl.load(mean + j, mask=inside, other=0.0)
    tl.store(mean + j, m + sigma * gy, mask=inside)  # line 13
    path = (1.0 - tl.load(constants + C_C)).to(dtype) * tl.load(p_c + j, mask=inside, other=0.0)
    path += tl.load(constants + SCALE_C).to(dtype) * gy  # line 12
    tl.store(p_c + j, path, mask=inside)
    # The path is one more sample, of weight c_1: `add_sample`.
    path = path / d - ((r - 1.0) * a_path).to(dtype) * vbar
    az += (c_1 * a_path).to(dtype) * path - (aa + c_1 * a_path * a_path).to(dtype) * vbar
    zz += c_1.to(dtype) * (path * path - 1.0)
    rest = alpha * (aa + c_1 * a_path * a_path - c_1)
    s = zz + tl.load(numbers + FACTOR).to(dtype) * vbar * az - rest.to(dtype) * vv
    s = s / _H(vv, tl.load(numbers + LARGEST).to(dtype), r.to(dtype))
    s = tl.where(inside, s, 0.0)
    tl.store(az_out + j, az, mask=inside)
    tl.store(s_out + j, s, mask=inside)
    return (vv * s).to(tl.float64)


@triton.jit
def sums(
    z,
    words,
    mean,
    D,
    v,
    p_sigma,
    p_c,
    az_out,
    s_out,
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
    """The weighted sums over all pairs, and everything that follows from them coordinate-wise.

    Nothing changes if all values are equal: `unless_flat`.
    """
    dtype = mean.dtype.element_ty
    along = tl.zeros([TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + FLAT) == 1.0, 0, tl.cdiv(blocks, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        block = int64(tile) * TILE + tl.arange(0, TILE)
        j = coordinates(block)
        hat_x, hat_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        gz_x, gz_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        az_x, az_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        zz_x, zz_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        for i in range(half):
            x, y = _draw(z, words, i, block, j, dim, STORED, DOUBLE)
            w_hat = tl.load(pairs + ODD_HAT * half + i).to(dtype)
            odd = tl.load(pairs + ODD * half + i).to(dtype)
            even = tl.load(pairs + EVEN * half + i).to(dtype)
            even_a = tl.load(pairs + EVEN_A * half + i).to(dtype)
            hat_x += w_hat * x
            hat_y += w_hat * y
            gz_x += odd * x
            gz_y += odd * y
            az_x += even_a * x
            az_y += even_a * y
            zz_x += even * (x * x)
            zz_y += even * (y * y)
        along += _update(
            j, j < dim, hat_x, gz_x, az_x, zz_x,
            mean, D, v, p_sigma, p_c, az_out, s_out, numbers, constants,
        )  # fmt: skip
        along += _update(
            j + 8, j + 8 < dim, hat_y, gz_y, az_y, zz_y,
            mean, D, v, p_sigma, p_c, az_out, s_out, numbers, constants,
        )  # fmt: skip
    tl.store(partial + tl.program_id(0), tl.sum(along))


# === The step of D and v ===


@triton.jit
def solve(numbers, partial, programs, WIDTH: tl.constexpr):
    """Step 4 and 5: the numbers that depend on <vv, s>."""
    along = _added(partial, 0, programs, WIDTH)
    c_h = tl.load(numbers + B) / tl.load(numbers + DENOMINATOR) * along
    g, c_1, a_path = (
        1.0 + tl.load(numbers + NORM_V2),
        tl.load(numbers + C_1),
        tl.load(numbers + A_PATH),
    )
    aa = tl.load(numbers + AA) + c_1 * a_path * a_path
    vv_s = along - c_h * tl.load(numbers + VV_VV_H)
    tl.store(numbers + C_H, c_h)
    tl.store(numbers + ALONG, 0.5 * g * (aa - c_1) + tl.load(numbers + ALPHA) * vv_s)
    tl.store(numbers + FRACTION, 1.0)


@triton.jit
def _gradient(j, inside, v, az, s, numbers, SAFE: tl.constexpr):
    """The relative change of D, and the change of u / D (safe) or v: `natural_gradient`."""
    dtype = v.dtype.element_ty
    norm_v2, alpha = tl.load(numbers + NORM_V2), tl.load(numbers + ALPHA)
    g, norm_v, r = 1.0 + norm_v2, tl.sqrt(norm_v2), tl.sqrt(1.0 + norm_v2)
    vbar = tl.load(v + j, mask=inside, other=0.0) * (1.0 / norm_v).to(dtype)
    vv = vbar * vbar
    vv_H = vv / _H(vv, tl.load(numbers + LARGEST).to(dtype), r.to(dtype))
    s = tl.load(s + j, mask=inside, other=0.0) - tl.load(numbers + C_H).to(dtype) * vv_H
    straight = r.to(dtype) * tl.load(az + j, mask=inside, other=0.0)
    straight += tl.load(numbers + ALONG).to(dtype) * vbar
    if SAFE:
        factor = tl.load(numbers + KAPPA) * (g / (norm_v2 + alpha * (g + 1.0)))
    else:
        factor = alpha * (g + 1.0)
    return s, (straight - factor.to(dtype) * vbar * s) * (1.0 / norm_v).to(dtype)


@triton.jit
def step_size(v, az, s, numbers, partial, dim, TILE: tl.constexpr):
    """Partial results of how far D and v would move: the largest |s|, and |change of u / D|^2."""
    most, total = tl.zeros([TILE], v.dtype.element_ty), tl.zeros([TILE], tl.float64)
    for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        log_D, u = _gradient(j, j < dim, v, az, s, numbers, True)
        most = tl.maximum(most, tl.abs(log_D))
        total += u.to(tl.float64) * u
    tl.store(partial + tl.program_id(0), tl.max(most).to(tl.float64))
    tl.store(partial + tl.num_programs(0) + tl.program_id(0), tl.sum(total))


@triton.jit
def limit_step(numbers, constants, partial, programs, WIDTH: tl.constexpr):
    """The share of the step that is taken: `_move`."""
    turn = tl.sqrt(_added(partial, 1, programs, WIDTH) / tl.load(numbers + NORM_V2))
    size = tl.maximum(_largest(partial, 0, programs, WIDTH), turn)
    tl.store(numbers + FRACTION, 1.0 / tl.maximum(size / tl.load(constants + LARGEST_STEP), 1.0))


@triton.jit
def move(D, v, az, s, numbers, constants, partial, dim, SAFE: tl.constexpr, TILE: tl.constexpr):
    """Lines 14 and 15; partial sums of log D and |v|^2 afterwards."""
    dtype = v.dtype.element_ty
    fraction = tl.load(numbers + FRACTION).to(dtype)
    limit = tl.load(constants + D_LIMIT).to(dtype)
    logs, norm2 = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + FLAT) == 1.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        log_D, change = _gradient(j, inside, v, az, s, numbers, SAFE)
        d, direction = (
            tl.load(D + j, mask=inside, other=1.0),
            tl.load(v + j, mask=inside, other=0.0),
        )
        growth = 1.0 + fraction * log_D
        d, direction = d * growth, direction + fraction * change
        if SAFE:
            d, direction = tl.minimum(tl.maximum(d, 1.0 / limit), limit), direction / growth
        tl.store(D + j, d, mask=inside)
        tl.store(v + j, direction, mask=inside)
        logs += tl.where(inside, tl.log(d), 0.0).to(tl.float64)
        norm2 += tl.where(inside, direction.to(tl.float64) * direction, 0.0)
    tl.store(partial + tl.program_id(0), tl.sum(logs))
    tl.store(partial + tl.num_programs(0) + tl.program_id(0), tl.sum(norm2))


@triton.jit
def normalise(
    numbers, constants, partial, programs, SAFE: tl.constexpr, DOUBLE: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Lines 16 and 17: the factors that bring v within its limits and the determinant to 1."""
    if tl.load(numbers + FLAT) == 0.0:
        dim = tl.load(constants + DIM)
        norm_v2, v_scale = _added(partial, 1, programs, WIDTH), tl.full([], 1.0, tl.float64)
        if SAFE:
            length = tl.sqrt(norm_v2)
            within = tl.maximum(tl.load(constants + V_MIN), length)
            v_scale = tl.minimum(within, tl.load(constants + V_MAX)) / length
        norm_v2 = norm_v2 * v_scale * v_scale
        log = _added(partial, 0, programs, WIDTH) / dim + tl.log(1.0 + norm_v2) / (2.0 * dim)
        tl.store(numbers + V_SCALE, v_scale)
        tl.store(numbers + D_SCALE, tl.exp(log))
        tl.store(numbers + SIGMA, tl.load(numbers + S_ALONG))


# === What the next generation and the stopping rules need to know of a state ===

# Kinds of partial results of `settle`; the smallest ones with the opposite sign.
V_NORM2, PATH2, V_LARGEST, D_LEAST, D_MOST, LEAST, MOST, MEAN_SIZE, TOO_LARGE = (
    tl.constexpr(i) for i in range(9)
)
KINDS = 9


@triton.jit
def settle(
    mean, D, v, p_sigma, initial, numbers, constants, partial, dim,
    ONE_INITIAL: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Apply the factors of `normalise`, and take partial figures of the state."""
    dtype = v.dtype.element_ty
    d_scale, v_scale = tl.load(numbers + D_SCALE).to(dtype), tl.load(numbers + V_SCALE).to(dtype)
    sigma, tolx = tl.load(numbers + SIGMA).to(dtype), tl.load(constants + TOLX).to(dtype)
    eps = tl.load(constants + EPS).to(dtype)
    norm2, path2 = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    zero = tl.zeros([TILE], dtype)
    v_max, d_min, d_max = zero, zero + float("inf"), zero
    least, most, mean_max, too_large = zero + float("inf"), zero, zero, zero
    for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        d = tl.load(D + j, mask=inside, other=1.0) / d_scale
        direction = tl.load(v + j, mask=inside, other=0.0) * v_scale
        tl.store(D + j, d, mask=inside)
        tl.store(v + j, direction, mask=inside)
        path = tl.load(p_sigma + j, mask=inside, other=0.0).to(tl.float64)
        norm2 += direction.to(tl.float64) * direction
        path2 += path * path
        v_max = tl.maximum(v_max, tl.abs(direction))
        d_max = tl.maximum(d_max, tl.where(inside, d, 0.0))
        d_min = tl.minimum(d_min, tl.where(inside, d, float("inf")))
        deviation = sigma * d * tl.sqrt(1.0 + direction * direction)
        most = tl.maximum(most, tl.where(inside, deviation, 0.0))
        least = tl.minimum(least, tl.where(inside, deviation, float("inf")))
        size = tl.abs(tl.load(mean + j, mask=inside, other=0.0))
        mean_max = tl.maximum(mean_max, size)
        at = j * 0 if ONE_INITIAL else j
        first = tl.load(initial + at, mask=inside, other=0.0)
        resolved = tl.maximum(tolx * first, eps * size)
        too_large = tl.maximum(too_large, tl.where(inside & ~(deviation <= resolved), 1.0, 0.0))
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to + V_NORM2 * stride, tl.sum(norm2))
    tl.store(to + PATH2 * stride, tl.sum(path2))
    tl.store(to + V_LARGEST * stride, tl.max(v_max).to(tl.float64))
    tl.store(to + D_LEAST * stride, -tl.min(d_min).to(tl.float64))
    tl.store(to + D_MOST * stride, tl.max(d_max).to(tl.float64))
    tl.store(to + LEAST * stride, -tl.min(least).to(tl.float64))
    tl.store(to + MOST * stride, tl.max(most).to(tl.float64))
    tl.store(to + MEAN_SIZE * stride, tl.max(mean_max).to(tl.float64))
    tl.store(to + TOO_LARGE * stride, tl.max(too_large).to(tl.float64))


@triton.jit
def report(numbers, constants, figures, partial, programs, WIDTH: tl.constexpr):
    """The figures of a generation."""
    norm_v2 = _added(partial, V_NORM2, programs, WIDTH)
    path2 = _added(partial, PATH2, programs, WIDTH)
    v_max = _largest(partial, V_LARGEST, programs, WIDTH)
    d_min = -_largest(partial, D_LEAST, programs, WIDTH)
    d_max = _largest(partial, D_MOST, programs, WIDTH)
    chi_n = tl.load(constants + CHI_N)
    tl.store(numbers + NORM_V2, norm_v2)
    tl.store(numbers + V_MAX2, v_max * v_max)
    # c vbar = (r - 1) <z, v> v / |v|^2 in `write_rows`, and (r - 1) / |v|^2 = 1 / (r + 1)
    tl.store(numbers + STRETCH, 1.0 / (tl.sqrt(1.0 + norm_v2) + 1.0))
    tl.store(numbers + P_SIGMA2, path2)
    tl.store(numbers + D_SCALE, 1.0)
    tl.store(numbers + V_SCALE, 1.0)
    middle = tl.load(numbers + MIDDLE_BELOW) / 2.0 + tl.load(numbers + MIDDLE_ABOVE) / 2.0
    median = tl.where(tl.load(figures + F_FEASIBLE) > 0.0, middle, float("inf"))
    tl.store(figures + F_MEDIAN, median)
    tl.store(figures + F_SIGMA, tl.load(numbers + SIGMA))
    tl.store(figures + F_AXIS_RATIO, d_max / d_min * tl.sqrt(1.0 + norm_v2))
    tl.store(figures + F_NORM_V, tl.sqrt(norm_v2))
    tl.store(figures + F_PHASE, _phase(path2, chi_n * chi_n))
    tl.store(figures + F_DEVIATION_MIN, -_largest(partial, LEAST, programs, WIDTH))
    tl.store(figures + F_DEVIATION_MAX, _largest(partial, MOST, programs, WIDTH))
    tl.store(figures + F_MEAN_MAX, _largest(partial, MEAN_SIZE, programs, WIDTH))
    tl.store(figures + F_SHRUNK, 1.0 - _largest(partial, TOO_LARGE, programs, WIDTH))


@triton.jit
def prepare(D, v, p_c, numbers, partial, dim, TILE: tl.constexpr):
    """Partial sums over v and p_c that the next natural gradient needs before its own sums."""
    dtype = v.dtype.element_ty
    norm_v2 = tl.load(numbers + NORM_V2)
    g, r = 1.0 + norm_v2, tl.sqrt(1.0 + norm_v2)
    largest = tl.load(numbers + V_MAX2) / norm_v2
    kappa = tl.minimum((2.0 - 1.0 / r) / largest, 4.0)
    rest = ((4.0 - kappa) / (g + 1.0) * (g / (g + 1.0))).to(dtype)
    below, squares, along = (
        tl.zeros([TILE], tl.float64),
        tl.zeros([TILE], tl.float64),
        tl.zeros([TILE], tl.float64),
    )
    for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        direction = tl.load(v + j, mask=j < dim, other=0.0)
        vbar = direction * (1.0 / tl.sqrt(norm_v2)).to(dtype)
        vv = vbar * vbar
        vv_H = vv / _H(vv, largest.to(dtype), r.to(dtype))
        below += (vv_H * (tl.maximum(1.0 - vv, 0.0) + rest * vv)).to(tl.float64)
        squares += (vv * vv_H).to(tl.float64)
        path = tl.load(p_c + j, mask=j < dim, other=0.0)
        path = path / tl.load(D + j, mask=j < dim, other=1.0)
        along += path.to(tl.float64) * direction
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to, tl.sum(below))
    tl.store(to + stride, tl.sum(squares))
    tl.store(to + 2 * stride, tl.sum(along))


@triton.jit
def prepared(numbers, partial, programs, WIDTH: tl.constexpr):
    """Add the partial sums of `prepare`."""
    tl.store(numbers + DENOMINATOR, 2.0 * _added(partial, 0, programs, WIDTH))
    tl.store(numbers + VV_VV_H, _added(partial, 1, programs, WIDTH))
    tl.store(numbers + PC_V, _added(partial, 2, programs, WIDTH))
