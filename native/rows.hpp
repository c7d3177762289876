// Sums over the rows of a matrix: eight lanes at a time, in pieces of a fixed length, so that
// neither the number of threads nor the number of rows changes a bit.
#pragma once

#include "matrix.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

// The last numbers of a row: fewer than eight. `All` stands for eight of them.
struct First {
    int64_t count;
};

template <class T>
FMNES_INLINE f64 load(const T* p, All) {
    return load(p);
}

template <class T>
FMNES_INLINE f64 load(const T* p, First first) {
    T padded[LANES] = {};
    for (int64_t i = 0; i < first.count; ++i) padded[i] = p[i];
    return load(padded);
}

FMNES_INLINE f64 kept(f64 a, All) { return a; }
FMNES_INLINE f64 kept(f64 a, First first) { return select(first_lanes(first.count), a, f64(0)); }

template <class T>
FMNES_INLINE void store(T* p, f64 a, All) {
    store(p, a);
}

template <class T>
FMNES_INLINE void store(T* p, f64 a, First first) {
    store_first(p, a, first.count);
}

// Call body(j, lanes) for the coordinates j to j + 7 of every eight in [begin, end).
template <class Body>
FMNES_INLINE void each_eight(int64_t begin, int64_t end, Body body) {
    int64_t j = begin;
    for (; j + LANES <= end; j += LANES) body(j, All{});
    if (j < end) body(j, First{end - j});
}

// Call body(row, begin, end) for every piece of every row, on threads if the work is worth it: `ns`
// is the time that one number takes. The same piece of every row comes before the next piece, so
// that what the rows share stays in the cache.
template <class Body>
void each_piece(int64_t rows, int64_t length, double ns, Body body) {
    const int64_t pieces = (length + PIECE - 1) / PIECE;
    const int threads = threads_for(ns * static_cast<double>(rows * length));
    parallel_for(rows * pieces, threads, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
            const int64_t begin = i / rows * PIECE;
            body(i % rows, begin, begin + PIECE < length ? begin + PIECE : length);
        }
    });
}

// N sums over each row. term(row, j, lanes) gives eight terms of each, for the coordinates j to
// j + 7; take(row, totals) receives the sums over j in [0, length). `partial` has room for N
// numbers for each piece of each row.
template <int N>
struct Terms {
    f64 term[N];
};

template <int N, class Term, class Take>
void sum_rows(int64_t rows, int64_t length, double ns, double* partial, Term term, Take take) {
    const auto sums_of = [&](int64_t piece, int64_t row) {
        return partial + (piece * rows + row) * N;
    };
    each_piece(rows, length, ns, [&](int64_t row, int64_t begin, int64_t end) {
        f64 even[N], odd[N];
        for (int k = 0; k < N; ++k) even[k] = odd[k] = f64(0);
        int64_t j = begin;
        for (; j + 2 * LANES <= end; j += 2 * LANES) {
            const Terms<N> first = term(row, j, All{}), second = term(row, j + LANES, All{});
            for (int k = 0; k < N; ++k) even[k] = even[k] + first.term[k];
            for (int k = 0; k < N; ++k) odd[k] = odd[k] + second.term[k];
        }
        each_eight(j, end, [&](int64_t at, auto lanes) {  // the rest: at most two
            const Terms<N> last = term(row, at, lanes);
            for (int k = 0; k < N; ++k) even[k] = even[k] + kept(last.term[k], lanes);
        });
        double* sums = sums_of(begin / PIECE, row);
        for (int k = 0; k < N; ++k) sums[k] = sum(even[k] + odd[k]);
    });
    for (int64_t row = 0; row < rows; ++row) {
        double totals[N] = {};
        for (int64_t piece = 0; piece * PIECE < length; ++piece)
            for (int k = 0; k < N; ++k) totals[k] += sums_of(piece, row)[k];
        take(row, totals);
    }
}

// One sum: out[row] = the sum of term(row, j, lanes).
template <class Term>
void sum_rows(int64_t rows, int64_t length, double ns, double* partial, double* out, Term term) {
    sum_rows<1>(
        rows, length, ns, partial,
        [&](int64_t row, int64_t j, auto lanes) { return Terms<1>{{term(row, j, lanes)}}; },
        [&](int64_t row, const double* total) { out[row] = total[0]; });
}

}  // namespace fmnes::FMNES_LEVEL
