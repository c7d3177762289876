// Matrices as the kernels take them, row after row.
#pragma once

#include <cstdint>

namespace fmnes {

// Numbers of a row that one thread adds up; the sums of a longer row are put together in order.
constexpr int64_t PIECE = 2048;

// The room that sums over rows need: one number for each piece of each row.
constexpr int64_t pieces(int64_t rows, int64_t dim) { return rows * (dim / PIECE + 1); }

// The weighted sums over the rows of a matrix z: of w[0] z, of w[1] z, of w[2] z*z.
enum Moment : int64_t { FIRST, SECOND, SQUARES };
constexpr int64_t MOMENTS = SQUARES + 1;

template <class T>
struct Matrix {
    const T* data;
    int64_t rows, dim;
};

}  // namespace fmnes
