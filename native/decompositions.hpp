// Decompositions of small matrices, with the same bits at every level.
#pragma once

#include "auto.hpp"
#include "simd.hpp"

namespace fmnes::FMNES_LEVEL {

FMNES_INLINE double dot(const double* a, const double* b, int64_t length) {
    f64 total(0);
    for (int64_t i = 0; i < length; i += LANES) total = total + load(a + i) * load(b + i);
    return sum(total);
}

// Rotate rows among themselves until their first `length` numbers are at right angles (Hestenes
// 1958, one-sided Jacobi). `length` and `width` are multiples of LANES, with zeros as padding.
//
// With the rows [F | I] of a matrix F = P Sigma Q^T they become [Sigma Q^T | P^T]: their lengths
// are the singular values and the right half holds the left singular vectors. Small singular values
// are as accurate as large ones if F is a matrix with a good condition whose rows are scaled.
//
// `norm2` is room for the squared lengths. Within a round they are carried along.
inline void orthogonalise(const Small& rows, int64_t count, int64_t length, int64_t width,
                          double* norm2) {
    for (int round = 0; round < 30; ++round) {
        bool turned = false;
        for (int64_t p = 0; p < count; ++p) norm2[p] = dot(rows[p], rows[p], length);
        for (int64_t p = 0; p + 1 < count; ++p) {
            for (int64_t q = p + 1; q < count; ++q) {
                double *x = rows[p], *y = rows[q];
                const double xy = dot(x, y, length);
                if (!(xy * xy > 1e-30 * norm2[p] * norm2[q])) continue;
                const double zeta = (norm2[q] - norm2[p]) / (2 * xy);
                const double size = (zeta < 0 ? -zeta : zeta) + std::sqrt(1 + zeta * zeta);
                const double tangent = (zeta < 0 ? -1 : 1) / size;
                const double cosine = 1 / std::sqrt(1 + tangent * tangent);
                const f64 c(cosine), s(cosine * tangent);
                for (int64_t i = 0; i < width; i += LANES) {
                    const f64 a = load(x + i), b = load(y + i);
                    store(x + i, c * a - s * b), store(y + i, s * a + c * b);
                }
                norm2[p] -= tangent * xy, norm2[q] += tangent * xy;
                turned = true;
            }
        }
        if (!turned) return;
    }
}

// For a positive definite matrix A: root <- R with A = R^T R, upper triangular; inverse <- R^-1.
inline void invert_root(const Small& A, int64_t size, const Small& root, const Small& inverse) {
    for (int64_t b = 0; b < size; ++b) {
        for (int64_t c = b; c < size; ++c) {
            double rest = A[b][c];
            for (int64_t e = 0; e < b; ++e) rest -= root[e][b] * root[e][c];
            root[b][c] = b == c ? std::sqrt(rest) : rest / root[b][b];
        }
    }
    for (int64_t c = 0; c < size; ++c) {
        inverse[c][c] = 1 / root[c][c];
        for (int64_t b = c - 1; b >= 0; --b) {
            double rest = 0;
            for (int64_t e = b + 1; e <= c; ++e) rest -= root[b][e] * inverse[e][c];
            inverse[b][c] = rest / root[b][b];
        }
    }
}

// The order of numbers, largest first.
inline void sort_down(const double* numbers, int64_t count, int64_t* order) {
    for (int64_t i = 0; i < count; ++i) {
        int64_t at = i;
        for (; at > 0 && numbers[order[at - 1]] < numbers[i]; --at) order[at] = order[at - 1];
        order[at] = i;
    }
}

}  // namespace fmnes::FMNES_LEVEL
