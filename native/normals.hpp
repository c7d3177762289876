// Draws as arrays: for the methods that work on whole matrices, for users, and for tests.
#pragma once

#include "draws.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

template <class T>
void normals(const Address& at, int64_t first, int64_t last, int64_t dim, T* out) {
    const int64_t groups = (dim + GROUP - 1) / GROUP, rows = last - first;
    const double work = DRAW_NS * static_cast<double>(rows * groups * GROUP);
    parallel_for(rows * groups, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
            const int64_t row = i / groups, group = i % groups, j = group * GROUP;
            f64 z[2];
            draw(at, static_cast<uint64_t>(first + row), static_cast<uint64_t>(group), z[0], z[1]);
            T* to_row = out + row * dim + j;
            for (int part = 0; part < 2; ++part) {
                const int64_t left = dim - j - part * LANES;
                if (left >= LANES)
                    store(to_row + part * LANES, z[part]);
                else if (left > 0)
                    store_first(to_row + part * LANES, z[part], static_cast<int>(left));
            }
        }
    });
}

// `blocks` is a multiple of eight in both.
inline void words(const Address& at, int64_t row, int64_t blocks, uint32_t* out) {
    for (int64_t group = 0; group < blocks / LANES; ++group) {
        const Words made =
            philox(at, static_cast<uint64_t>(row), static_cast<uint64_t>(group));
        for (int k = 0; k < 4; ++k) {
            uint64_t lanes[LANES];
            std::memcpy(lanes, &made.word[k], sizeof lanes);
            for (int lane = 0; lane < LANES; ++lane)
                out[(group * LANES + lane) * 4 + k] = static_cast<uint32_t>(lanes[lane]);
        }
    }
}

inline void normals_of_words(const uint32_t* words, int64_t blocks, double* first, double* second) {
    for (int64_t i = 0; i < blocks; i += LANES) {
        Words of;
        for (int k = 0; k < 4; ++k) {
            uint64_t lanes[LANES];
            for (int lane = 0; lane < LANES; ++lane) lanes[lane] = words[(i + lane) * 4 + k];
            of.word[k] = load_u64(lanes);
        }
        f64 a, b;
        box_muller(of, a, b);
        store(first + i, a);
        store(second + i, b);
    }
}

}  // namespace fmnes::FMNES_LEVEL
