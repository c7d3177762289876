// Rows of numbers, as the kernels that work on whole matrices take them.
#pragma once

#include <cstdint>

namespace fmnes {

// What one thread adds up of a row; the sums of a longer row are put together in order.
constexpr int64_t PIECE = 2048;

template <class T>
struct Matrix {
    const T* data;  // row after row
    int64_t rows, dim;
};

}  // namespace fmnes
