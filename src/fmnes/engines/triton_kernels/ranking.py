"""What the values say by themselves, and the rank of each candidate."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.names import (
    BEST,
    BETTER,
    F_FEASIBLE,
    F_FLAT,
    F_LEAST,
    F_MOST,
    F_NAN,
    F_SIZE,
    FLAT,
    MIDDLE_ABOVE,
    MIDDLE_BELOW,
    NORM_Z2,
)


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
