// Loops over the directions of auto, in blocks whose results are added in order.
#pragma once

#include "auto_sample.hpp"

namespace fmnes::FMNES_LEVEL {

// Call body(first, last, part) for the groups of every PART groups; a block has several parts. The
// body adds to part.sums (`sums` numbers, 0 at first), to part.lanes (`lanes` times eight, which
// become sums behind the others) and to the record part.totals. The sums of all blocks end up in
// s.totals, the record is returned.
template <class Totals>
struct Part {
    Totals totals;
    double *sums, *lanes, *group;  // group: room for the numbers of one group
};

template <class Totals, class T, class Body>
Totals each_part(AutoSearch<T>& s, int64_t sums, int64_t lanes, Body body) {
    const double ns = SWEEP_NS * static_cast<double>(1 + s.k);
    parallel_for(s.blocks, threads_for(ns * static_cast<double>(s.dim)),
                 [&](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block) {
            Part<Totals> part{{}, s.sums_of(block), s.lanes_of(block), s.group_of(block)};
            for (int64_t i = 0; i < sums; ++i) part.sums[i] = 0;
            for (int64_t i = 0; i < LANES * lanes; ++i) part.lanes[i] = 0;
            const int64_t begin = block * BLOCK;
            const int64_t end = begin + BLOCK < s.groups ? begin + BLOCK : s.groups;
            for (int64_t first = begin; first < end; first += PART)
                body(first, first + PART < end ? first + PART : end, part);
            for (int64_t i = 0; i < lanes; ++i)
                part.sums[sums + i] = sum(load(part.lanes + LANES * i));
            keep_block(s, block, part.totals);
        }
    });
    for (int64_t i = 0; i < sums + lanes; ++i) {
        s.totals[i] = 0;
        for (int64_t block = 0; block < s.blocks; ++block) s.totals[i] += s.sums_of(block)[i];
    }
    return all_blocks<Totals>(s);
}

// Which of the eight coordinates from j on exist.
template <class T>
FMNES_INLINE u64 live_at(const AutoSearch<T>& s, int64_t j) {
    return j + LANES <= s.dim ? u64(~uint64_t{0}) : first_lanes(s.dim - j);
}

// Call body(j, live) for every eight coordinates of some groups; `live` says which of them exist.
template <class T, class Body>
FMNES_INLINE void each_eight(const AutoSearch<T>& s, int64_t first, int64_t last, Body body) {
    const int64_t end = last * GROUP < s.dim ? last * GROUP : s.dim;
    for (int64_t j = first * GROUP; j < end; j += LANES) body(j, live_at(s, j));
}

FMNES_INLINE void add(double* lanes, int64_t which, f64 x) {
    store(lanes + LANES * which, load(lanes + LANES * which) + x);
}

// sum_j x(j) y(j) over some groups, for functions that give eight numbers.
template <class X, class Y>
FMNES_INLINE double sum_over(int64_t first, int64_t last, X x, Y y) {
    f64 even(0), odd(0);
    for (int64_t j = first * GROUP; j < last * GROUP; j += GROUP) {
        even = even + x(j) * y(j);
        odd = odd + x(j + LANES) * y(j + LANES);
    }
    return sum(even + odd);
}

// sums[n] += sum_j a_j V_j,b+n V_jc for n < N, over some groups; a is the step of log D if `scaled`,
// and else 1.
template <int N, class T>
FMNES_INLINE void add_pairs(AutoSearch<T>& s, bool scaled, int64_t first, int64_t last, int64_t b,
                            int64_t c, double* sums) {
    f64 total[N];
    for (int n = 0; n < N; ++n) total[n] = f64(0);
    for (int64_t j = first * GROUP; j < last * GROUP; j += LANES) {
        f64 y = load(s.axis(c, j));
        if (scaled) y = y * load(s.slot(LOG_D, j));
        FMNES_UNROLL for (int n = 0; n < N; ++n)
            total[n] = total[n] + load(s.axis(b + n, j)) * y;
    }
    for (int n = 0; n < N; ++n) sums[n] += sum(total[n]);
}

// sums[c (c + 1)/2 + b] += sum_j a_j V_jb V_jc for b <= c, over some groups.
template <class T>
void add_gram(AutoSearch<T>& s, bool scaled, int64_t axes, int64_t first, int64_t last,
              double* sums) {
    for (int64_t c = 0; c < axes; ++c, sums += c) {
        int64_t b = 0;
        for (; b + 4 <= c + 1; b += 4) add_pairs<4>(s, scaled, first, last, b, c, sums + b);
        if (c + 1 - b >= 2) add_pairs<2>(s, scaled, first, last, b, c, sums + b), b += 2;
        if (b < c + 1) add_pairs<1>(s, scaled, first, last, b, c, sums + b);
    }
}

FMNES_INLINE int64_t pairs(int64_t axes) { return axes * (axes + 1) / 2; }

// The totals that follow those of add_gram().
template <class T>
const double* after_gram(const AutoSearch<T>& s, int64_t axes) {
    return &s.totals[pairs(axes)];
}

// The symmetric matrix of the totals of add_gram().
template <class T>
void read_gram(const AutoSearch<T>& s, int64_t axes, const Small& out) {
    for (int64_t c = 0, i = 0; c < axes; ++c)
        for (int64_t b = 0; b <= c; ++b) out[b][c] = out[c][b] = s.totals[i++];
}

// out[n] = sum_b V_b of_V[b][c + n] + sum_b U_b of_Y[b][c + n] for a group, 16 numbers each;
// without the second sum if `axes_only`.
template <int N, class T>
FMNES_INLINE void combine(AutoSearch<T>& s, int64_t group, bool axes_only, int64_t c, double* out) {
    f64 total[N][2];
    for (int n = 0; n < N; ++n) total[n][0] = total[n][1] = f64(0);
    const auto add_column = [&](const T* x, const double* factors) FMNES_LAMBDA {
        const f64 x0 = load(x), x1 = load(x + LANES);
        FMNES_UNROLL for (int n = 0; n < N; ++n) {
            const f64 factor(factors[c + n]);
            total[n][0] = total[n][0] + factor * x0, total[n][1] = total[n][1] + factor * x1;
        }
    };
    const int64_t j = group * GROUP;
    for (int64_t b = 0; b < s.k; ++b) {
        add_column(s.axis(b, j), s.of_V[b]);
        if (!axes_only) add_column(s.slot(ALONG + SCOUTS + b, j), s.of_Y[b]);
    }
    for (int n = 0; n < N; ++n)
        store(out + n * GROUP, total[n][0]), store(out + n * GROUP + LANES, total[n][1]);
}

template <class T>
void combine_all(AutoSearch<T>& s, int64_t group, bool axes_only, int64_t count, double* out) {
    int64_t c = 0;
    for (; c + 4 <= count; c += 4) combine<4>(s, group, axes_only, c, out + c * GROUP);
    if (count - c >= 2) combine<2>(s, group, axes_only, c, out + c * GROUP), c += 2;
    if (c < count) combine<1>(s, group, axes_only, c, out + c * GROUP);
}

}  // namespace fmnes::FMNES_LEVEL
