// The passes of the linear-time methods over a matrix of draws z: products of its rows, candidates,
// weighted sums. fmnes/kernels/agnostic.py has the same functions in array operations. The bits of
// a row do not depend on the other rows, and no bit depends on the number of threads.
#pragma once

#include "rows.hpp"

namespace fmnes::FMNES_LEVEL {

enum Product { NORM2, ALONG };
constexpr int PRODUCTS = ALONG + 1;

// a[row] = <z, vbar> unless vbar is null, and norm2[row] = |z|^2.
template <class T>
void row_products(const Matrix<T>& z, const T* vbar, double* partial, T* a, T* norm2) {
    if (vbar == nullptr) {
        sum_rows<1>(
            z.rows, z.dim, SUM_NS, partial,
            [&](int64_t row, int64_t j, auto lanes) {
                const f64 at = load(z.data + row * z.dim + j, lanes);
                return Terms<1>{{at * at}};
            },
            [&](int64_t row, const double* totals) {
                norm2[row] = static_cast<T>(totals[NORM2]);
            });
        return;
    }
    sum_rows<PRODUCTS>(
        z.rows, z.dim, SUM_NS, partial,
        [&](int64_t row, int64_t j, auto lanes) {
            const f64 at = load(z.data + row * z.dim + j, lanes);
            return Terms<PRODUCTS>{{at * at, at * load(vbar + j, lanes)}};
        },
        [&](int64_t row, const double* totals) {
            norm2[row] = static_cast<T>(totals[NORM2]);
            a[row] = static_cast<T>(totals[ALONG]);
        });
}

// out[row] = mean + scale (z + c[row] vbar), and if `mirrored` out[rows + row] = mean - the same.
// Without c and vbar: mean + scale z. Without a mean: the step alone. The step is rounded to T
// before the mean is added, so that a step computed alone leads to the same candidate.
template <class T>
void candidates(const Matrix<T>& z, const T* mean, const T* scale, const T* c, const T* vbar,
                bool mirrored, T* out) {
    each_piece(z.rows, z.dim, WRITE_NS, [&](int64_t row, int64_t begin, int64_t end) {
        const T* from = z.data + row * z.dim;
        T *up = out + row * z.dim, *down = up + z.rows * z.dim;
        const f64 along(vbar == nullptr ? 0 : c[row]);
        each_eight(begin, end, [&](int64_t j, auto lanes) {
            f64 y = load(from + j, lanes);
            if (vbar != nullptr) y = y + along * load(vbar + j, lanes);
            const f64 step = rounded<T>(load(scale + j, lanes) * y);
            if (mean == nullptr) return store(up + j, step, lanes);
            const f64 m = load(mean + j, lanes);
            store(up + j, m + step, lanes);
            if (mirrored) store(down + j, m - step, lanes);
        });
    });
}

// Coordinates whose sums stay in the first cache, and rows that are added in one go.
constexpr int64_t COLUMNS = 512, TOGETHER = 4;

// Four rows with their weights.
template <class T>
struct Batch {
    const T* z[TOGETHER];
    double w[MOMENTS][TOGETHER];
};

// The next four rows with a weight other than 0, from `row` on; filled up with rows of weight 0.
template <class T>
FMNES_INLINE Batch<T> next_batch(const Matrix<T>& z, const T* const (&w)[MOMENTS], int64_t& row) {
    Batch<T> batch;
    int64_t count = 0;
    for (; row < z.rows && count < TOGETHER; ++row) {
        bool counts = false;
        for (int64_t k = 0; k < MOMENTS; ++k) {
            batch.w[k][count] = w[k] == nullptr ? 0 : w[k][row];
            counts = counts || batch.w[k][count] != 0;
        }
        batch.z[count] = z.data + row * z.dim;
        if (counts) ++count;
    }
    for (; count < TOGETHER; ++count) {
        batch.z[count] = z.data;
        for (int64_t k = 0; k < MOMENTS; ++k) batch.w[k][count] = 0;
    }
    return batch;
}

// The moments (see matrix.hpp), each added in the order of the rows. Those whose weights are null
// are left out.
template <class T>
void moments(const Matrix<T>& z, const T* const (&w)[MOMENTS], T* const (&sums)[MOMENTS]) {
    const int64_t tiles = (z.dim + COLUMNS - 1) / COLUMNS;
    const int threads = threads_for(SUM_NS * static_cast<double>(z.rows * z.dim));
    parallel_for(tiles, threads, [&](int64_t from, int64_t to) {
        for (int64_t tile = from; tile < to; ++tile) {
            const int64_t begin = tile * COLUMNS;
            const int64_t end = begin + COLUMNS < z.dim ? begin + COLUMNS : z.dim;
            double totals[MOMENTS][COLUMNS] = {};
            for (int64_t row = 0; row < z.rows;) {
                const Batch<T> batch = next_batch(z, w, row);
                each_eight(begin, end, [&](int64_t j, auto lanes) {
                    f64 at[TOGETHER];
                    FMNES_UNROLL for (int i = 0; i < TOGETHER; ++i)
                        at[i] = load(batch.z[i] + j, lanes);
                    for (int64_t k = 0; k < MOMENTS; ++k) {
                        if (w[k] == nullptr) continue;
                        f64 total = load(totals[k] + j - begin);
                        FMNES_UNROLL for (int i = 0; i < TOGETHER; ++i) {
                            const f64 term = k == SQUARES ? at[i] * at[i] : at[i];
                            total = total + f64(batch.w[k][i]) * term;
                        }
                        store(totals[k] + j - begin, total);
                    }
                });
            }
            for (int64_t k = 0; k < MOMENTS; ++k) {
                if (w[k] == nullptr) continue;
                each_eight(begin, end, [&](int64_t j, auto lanes) {
                    store(sums[k] + j, load(totals[k] + j - begin), lanes);
                });
            }
        }
    });
}

}  // namespace fmnes::FMNES_LEVEL
