// Draws as arrays: for the methods that work on whole matrices, and for tests.
#pragma once

#include "draws.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

// Rows first to last - 1 of the draws of an address, as a matrix of `dim` columns.
template <class T>
void normals(const DrawAddress& at, int64_t first, int64_t last, int64_t dim, T* out) {
    const int64_t groups = (dim + GROUP - 1) / GROUP, rows = last - first;
    const double work = DRAW_NS * static_cast<double>(rows * groups * GROUP);
    const Keys keys(at.seed);
    parallel_for(groups, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t group = from; group < to; ++group) {
            const Group start(keys, at, group);
            in_lockstep(0, rows, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
                f64 z[2][ROWS];
                draw<ROWS>(start, first + row, z[0], z[1]);
                for (int i = 0; i < 2 * ROWS; ++i) {
                    const int64_t j = group * GROUP + i % 2 * LANES, left = dim - j;
                    T* to_row = out + (row + i / 2) * dim + j;
                    if (left >= LANES)
                        store(to_row, z[i % 2][i / 2]);
                    else if (left > 0)
                        store_first(to_row, z[i % 2][i / 2], left);
                }
            });
        }
    });
}

// The Philox words of a row, four for each block; `blocks` is a multiple of eight.
inline void words(const DrawAddress& at, int64_t row, int64_t blocks, uint32_t* out) {
    const Keys keys(at.seed);
    for (int64_t group = 0; group < blocks / LANES; ++group) {
        const Words<PARTS> made = Group(keys, at, group).words<1>(row);
        for (int k = 0; k < 4; ++k) {
            uint64_t lanes[LANES];
            std::memcpy(lanes, &made.word[k], sizeof lanes);
            for (int lane = 0; lane < LANES; ++lane)
                out[(group * LANES + lane) * 4 + k] = static_cast<uint32_t>(lanes[lane]);
        }
    }
}

// Box-Muller of given words; `blocks` is a multiple of eight.
inline void normals_of_words(const uint32_t* words, int64_t blocks, double* first, double* second) {
    for (int64_t i = 0; i < blocks; i += LANES) {
        Words<PARTS> eight;
        for (int k = 0; k < 4; ++k) {
            uint64_t lanes[LANES];
            for (int lane = 0; lane < LANES; ++lane) lanes[lane] = words[(i + lane) * 4 + k];
            eight.word[k] = load_u64(lanes);
        }
        f64 a, b;
        box_muller(eight, a, b);
        store(first + i, a);
        store(second + i, b);
    }
}

// ln and exp of x; `count` is a multiple of eight.
inline void log_and_exp(const double* x, int64_t count, double* logs, double* exps) {
    for (int64_t i = 0; i < count; i += LANES) {
        store(logs + i, log(load(x + i)));
        store(exps + i, exp(load(x + i)));
    }
}

}  // namespace fmnes::FMNES_LEVEL
