// Sums over the rows of a matrix: eight lanes at a time, in pieces of a fixed length, so that
// neither the number of threads nor the number of rows changes a bit.
#pragma once

#include "matrix.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

// The last numbers of a row: fewer than eight of them. `All` stands for a whole eight.
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

// The sum of term(j, lanes) for j in [begin, end), where term gives eight of them at a time.
template <class Term>
FMNES_INLINE double sum_piece(int64_t begin, int64_t end, Term term) {
    f64 even(0), odd(0);
    int64_t j = begin;
    for (; j + 2 * LANES <= end; j += 2 * LANES) {
        even = even + term(j, All{});
        odd = odd + term(j + LANES, All{});
    }
    if (j + LANES <= end) {
        even = even + term(j, All{});
        j += LANES;
    }
    if (j < end) odd = odd + select(first_lanes(end - j), term(j, First{end - j}), f64(0));
    return sum(even + odd);
}

// out[row] = the sum of term(row, j, lanes) for j in [0, length). `ns` is the time that one term
// takes; `partial` has room for a number for each piece of each row.
template <class Term>
void sum_rows(int64_t rows, int64_t length, double ns, double* partial, double* out, Term term) {
    const int64_t pieces = (length + PIECE - 1) / PIECE;
    const double work = ns * static_cast<double>(rows * length);
    parallel_for(rows * pieces, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
            // The same piece of every row, then the next: what the rows share stays in the cache.
            const int64_t row = i % rows, begin = i / rows * PIECE;
            const int64_t end = begin + PIECE < length ? begin + PIECE : length;
            partial[i] = sum_piece(begin, end, [&](int64_t j, auto lanes) {
                return term(row, j, lanes);
            });
        }
    });
    for (int64_t row = 0; row < rows; ++row) {
        out[row] = 0;
        for (int64_t piece = 0; piece < pieces; ++piece) out[row] += partial[piece * rows + row];
    }
}

}  // namespace fmnes::FMNES_LEVEL
