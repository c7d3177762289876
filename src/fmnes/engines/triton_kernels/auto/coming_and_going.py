"""How axes come and go: some become scales, some are dropped, and scouts become axes (i)."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.names import (
    ALIGNED,
    ASLEEP,
    BASE_LONG,
    COORDINATE,
    CURRENT,
    D_DIVISOR,
    EVIDENCE_LONG,
    EVIDENCE_SHORT,
    FACTOR_LONG,
    HANDED,
    K_KEPT,
    K_NEXT,
    K_OUT,
    LARGEST_V2,
    LEAST_SHARE,
    LIVE,
    LN_D,
    NEW_S,
    NEXT_SIGMA,
    OF_AXES,
    OF_LONG,
    OF_NEW,
    OF_SHORT,
    ORDER,
    PLACE,
    S_KEPT,
    S_NEXT,
    S_OUT,
    SCALE_LONG,
    SCALE_SHORT,
    SHARE_LONG,
    SOURCE,
    WAKE,
    WHO,
    K,
    S,
)
from fmnes.engines.triton_kernels.auto.weights import rounded
from fmnes.engines.triton_kernels.draws import int64
from fmnes.engines.triton_kernels.names import DIM, SIGMA
from fmnes.engines.triton_kernels.parts import largest_of


@triton.jit
def hand_over(
    work, D, table, numbers, constants, turned_sums, dim, room, width, AXES: tl.constexpr
):
    """Axes along a coordinate become scales of D there; the others and the scouts stay in space.

    The axes that are left are at `source`, if there was such a one.
    """
    c, k = tl.arange(0, AXES), tl.load(numbers + K_OUT).to(tl.int32)
    limit = tl.where(tl.load(numbers + LIVE) == 1.0, tl.load(constants + ALIGNED), 2.0)
    V2 = tl.load(table + LARGEST_V2 * width + c, mask=c < k, other=0.0)
    goes, stays = (c < k) & (limit < V2), (c < k) & (limit >= V2)
    handed = tl.sum(goes.to(tl.int32))
    S_c = tl.load(table + S_OUT * width + c, mask=c < k, other=1.0)
    ln_D = tl.load(turned_sums) + tl.sum(tl.where(goes, 0.5 * tl.log(S_c), 0.0))
    for e in range(tl.where(handed > 0, k, 0)):
        if tl.sum((goes & (c == e)).to(tl.int32)) > 0:
            j = tl.load(table + COORDINATE * width + e).to(tl.int64)
            root = tl.sqrt(tl.load(table + S_OUT * width + e))
            tl.store(D + j, tl.load(D + j) * root)
            tl.store(work + j, tl.load(work + j) / root)
            tl.store(work + int64(dim) + j, tl.load(work + int64(dim) + j) * root)
            at = work + (int64(c) + OF_AXES) * dim + j
            V = tl.load(at, mask=stays, other=0.0)
            tl.debug_barrier()
            tl.store(at, tl.where(S_c > 1.0, V / root, V * root), mask=stays)
            tl.debug_barrier()
    before = tl.sum((stays[None, :] & (c[None, :] < c[:, None])).to(tl.int32), 1)
    tl.store(table + SOURCE * width + before, c.to(tl.float64), mask=stays)
    tl.store(table + S_KEPT * width + before, S_c, mask=stays)
    tl.store(numbers + HANDED, (handed > 0).to(tl.float64))
    tl.store(numbers + K_KEPT, tl.sum(stays.to(tl.float64)))
    tl.store(numbers + LN_D, ln_D)
    # The axes lie in the first place, or in the second one if they are turned once more.
    tl.store(numbers + CURRENT, tl.where(handed > 0, OF_AXES + room + 2, OF_AXES).to(tl.float64))


@triton.jit
def products(work, numbers, partial, dim, room, AXES: tl.constexpr, TILE: tl.constexpr):
    """Partial products of a scout, or of a fresh one, with the axes and with all four of them."""
    row, c, i = tl.program_id(1), tl.arange(0, AXES), tl.arange(0, 4)
    k, current = tl.load(numbers + K_OUT).to(tl.int32), tl.load(numbers + CURRENT).to(tl.int64)
    axes, scouts = tl.zeros([AXES, TILE], tl.float64), tl.zeros([4, TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        W = tl.load(work + int64(row) * dim + j, mask=inside, other=0.0).to(tl.float64)
        V = work + (current + c)[:, None] * dim + j[None, :]
        axes += tl.load(V, mask=(c < k)[:, None] & inside[None, :], other=0.0) * W[None, :]
        others = work + int64(i)[:, None] * dim + j[None, :]
        scouts += tl.load(others, mask=inside[None, :], other=0.0) * W[None, :]
    to, many = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to + (row * (room + 4) + c) * many, tl.sum(axes, 1), mask=c < room)
    tl.store(to + (row * (room + 4) + room + i) * many, tl.sum(scouts, 1))


@triton.jit
def _beside(shared, order, row, column, k, room, c):
    """The product of two scouts beside the axes in use."""
    stride = room + 4
    at = tl.load(order + c, mask=c < k, other=0.0).to(tl.int32)
    x = tl.load(shared + row * stride + at, mask=c < k, other=0.0)
    y = tl.load(shared + column * stride + at, mask=c < k, other=0.0)
    return tl.load(shared + row * stride + room + column) - tl.sum(x * y)


@triton.jit
def _scale(beside2, before2, least_share):
    """One over a length; 0 if only rounding is left of it."""
    left = beside2 > least_share * least_share * before2
    return tl.where(left, 1.0 / tl.sqrt(tl.where(left, beside2, 1.0)), 0.0)


@triton.jit
def _share(shared, used, row, room, c):
    """What a scout shares with each of the axes in use."""
    return tl.where(used, tl.load(shared + row * (room + 4) + c, mask=used, other=0.0), 0.0)


@triton.jit
def drop_axes(
    shared, table, numbers, constants, room, width, DOUBLE: tl.constexpr, AXES: tl.constexpr
):
    """Drop the axes that are hardly longer or shorter than 1, except the longest one.

    Then the scouts, straight to the axes that are left: what they share with those.
    """
    if tl.load(numbers + LIVE) == 1.0:
        c, k = tl.arange(0, AXES), tl.load(numbers + K_OUT).to(tl.int32)
        S_c = tl.load(table + S_OUT * width + c, mask=c < k, other=1.0)
        asleep = tl.load(constants + ASLEEP)
        is_longest = (c == 0) & (S_c > 1.0) & (c < k)
        S_c = tl.where(is_longest, tl.maximum(S_c, rounded(asleep, DOUBLE)), S_c)
        used = (c < k) & (is_longest | (tl.maximum(S_c, 1.0 / S_c) >= asleep))
        place = tl.sum((used[None, :] & (c[None, :] < c[:, None])).to(tl.int32), 1)
        left, order = tl.sum(used.to(tl.int32)), table + ORDER * width
        tl.store(order + place, c.to(tl.float64), mask=used)
        tl.store(table + S_NEXT * width + place, S_c, mask=used)
        tl.debug_barrier()
        share = tl.load(constants + LEAST_SHARE)
        stride = room + 4
        long2, short2 = tl.load(shared + room), tl.load(shared + stride + room + 1)
        beside = _beside(shared, order, 0, 0, left, room, c)
        tl.store(numbers + SCALE_LONG, _scale(beside, long2, share))
        beside = _beside(shared, order, 1, 1, left, room, c)
        tl.store(numbers + SCALE_SHORT, _scale(beside, short2, share))
        tl.store(table + OF_LONG * width + c, _share(shared, used, 0, room, c), mask=c < room)
        tl.store(table + OF_SHORT * width + c, _share(shared, used, 1, room, c), mask=c < room)
        tl.store(numbers + K_NEXT, left.to(tl.float64))


@triton.jit
def scout_sizes(work, table, numbers, partial, dim, width, AXES: tl.constexpr, TILE: tl.constexpr):
    """Partial results of the largest entry of each scout at right angles to the axes."""
    dtype = work.dtype.element_ty
    k, current = tl.load(numbers + K_OUT).to(tl.int32), tl.load(numbers + CURRENT).to(tl.int64)
    c = tl.arange(0, AXES)
    of_long = tl.load(table + OF_LONG * width + c, mask=c < k, other=0.0).to(dtype)[:, None]
    of_short = tl.load(table + OF_SHORT * width + c, mask=c < k, other=0.0).to(dtype)[:, None]
    long, short = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        V = work + (current + c)[:, None] * dim + j[None, :]
        V = tl.load(V, mask=(c < k)[:, None] & inside[None, :], other=0.0)
        W = tl.load(work + j, mask=inside, other=0.0)
        long = tl.maximum(long, tl.abs(W - tl.sum(of_long * V, 0)))
        W = tl.load(work + int64(dim) + j, mask=inside, other=0.0)
        short = tl.maximum(short, tl.abs(W - tl.sum(of_short * V, 0)))
    tl.store(partial + tl.program_id(0), tl.max(long).to(tl.float64))
    tl.store(partial + tl.num_programs(0) + tl.program_id(0), tl.max(short).to(tl.float64))


@triton.jit
def _set_scout(
    shared, table, numbers, scout, again, who, joins, scale_who, constants, left, used, room,
    width, c,
):  # fmt: skip
    """The base of a scout, its factor, and the share of the new axis that it loses."""
    base = tl.where(again, scout + 2, scout)
    order, share = table + ORDER * width, tl.load(constants + LEAST_SHARE)
    base2 = _beside(shared, order, base, base, left, room, c)
    of_new = scale_who * _beside(shared, order, base, who, left, room, c)
    of_new = tl.where(joins, of_new, 0.0)
    # A scout is straight and of length 1 before it meets the new axis; a fresh one is as it came.
    before2 = tl.load(shared + base * (room + 4) + room + base)
    before2 = tl.where(again, before2, base2)
    factor = _scale(base2 - of_new * of_new, before2, share)
    row = tl.where(scout == 0, OF_LONG, OF_SHORT)
    tl.store(table + row * width + c, _share(shared, used, base, room, c), mask=c < room)
    at = numbers + tl.where(scout == 0, 0, 1)
    tl.store(at + BASE_LONG, base.to(tl.float64))
    tl.store(at + FACTOR_LONG, factor)
    tl.store(at + SHARE_LONG, of_new * factor)


@triton.jit
def wake(
    shared,
    table,
    numbers,
    constants,
    partial,
    programs,
    room,
    width,
    AXES: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """A scout with enough evidence becomes an axis: one at a time. One long axis is always there.

    Scouts start again from a fresh direction if they did, lie along a coordinate or have none.
    """
    if tl.load(numbers + LIVE) == 1.0:
        c = tl.arange(0, AXES)
        left = tl.load(numbers + K_NEXT).to(tl.int32)
        S_c = tl.load(table + S_NEXT * width + c, mask=c < left, other=1.0)
        source = tl.load(table + ORDER * width + c, mask=c < left, other=-1.0).to(tl.int32)
        used = tl.sum((source[None, :] == c[:, None]).to(tl.int32), 1) > 0
        long, short = tl.load(numbers + SCALE_LONG), tl.load(numbers + SCALE_SHORT)
        enough, aligned = tl.load(constants + WAKE), tl.load(constants + ALIGNED)
        alone = tl.sum((S_c > 1.0).to(tl.int32)) == 0
        long_wakes = ((tl.load(numbers + EVIDENCE_LONG) > enough) | alone) & (long > 0.0)
        short_wakes = (tl.load(numbers + EVIDENCE_SHORT) > enough) & (short > 0.0) & ~long_wakes
        size = largest_of(partial, 0, programs, WIDTH) * long
        long_again = long_wakes | (size * size > aligned) | (long == 0.0)
        size = largest_of(partial, 1, programs, WIDTH) * short
        short_again = short_wakes | (size * size > aligned) | (short == 0.0)
        joins = (long_wakes | short_wakes) & (left < room)
        who = tl.where(long_wakes, 0, 1)
        scale = tl.where(long_wakes, long, short)
        tl.store(table + OF_NEW * width + c, _share(shared, used, who, room, c), mask=c < room)
        _set_scout(
            shared, table, numbers, 0, long_again, who, joins, scale, constants, left, used,
            room, width, c,
        )  # fmt: skip
        _set_scout(
            shared, table, numbers, 1, short_again, who, joins, scale, constants, left, used,
            room, width, c,
        )  # fmt: skip
        # The new axis stands behind those that are as long or longer.
        new = tl.load(constants + NEW_S)
        new = tl.where(long_wakes, new, 1.0 / new)
        place = tl.sum(((c < left) & (S_c >= new)).to(tl.int32))
        place = tl.where(joins, place, -1)
        to = tl.where(c >= tl.where(joins, place, AXES), c + 1, c)
        tl.debug_barrier()
        tl.store(table + ORDER * width + to, source.to(tl.float64), mask=c < left)
        tl.store(table + S * width + to, S_c, mask=c < left)
        tl.store(table + S * width + place, new, mask=joins)
        ln_det = tl.load(numbers + LN_D) + tl.sum(tl.log(S_c)) / 2.0
        ln_det += tl.where(joins, tl.log(new) / 2.0, 0.0)
        tl.store(numbers + D_DIVISOR, tl.exp(ln_det / tl.load(constants + DIM)))
        tl.store(numbers + K, (left + joins.to(tl.int32)).to(tl.float64))
        tl.store(numbers + PLACE, place.to(tl.float64))
        tl.store(numbers + WHO, who.to(tl.float64))
        tl.store(numbers + SIGMA, tl.load(numbers + NEXT_SIGMA))
        zero = ln_det * 0
        tl.store(numbers + EVIDENCE_LONG, zero, mask=long_again)
        tl.store(numbers + EVIDENCE_SHORT, zero, mask=short_again)
