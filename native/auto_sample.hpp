// The method auto: ask. The draws, their products with the directions, and the candidates
// x = m + sigma D (z + sum_c (sqrt(S_c) - 1) <z, V_c> V_c) and their mirror images (a).
#pragma once

#include "auto.hpp"
#include "sample.hpp"

namespace fmnes::FMNES_LEVEL {

constexpr int64_t AT_ONCE = 8;  // directions whose products with some rows are kept in lanes

// out[i][c] += <z_(row + i), direction c> over some groups, in lanes.
template <int ROWS, int DIRECTIONS, class T>
FMNES_INLINE void add_products(const AutoSearch<T>& s, int64_t first, int64_t last, int64_t row,
                               int64_t c, f64* out) {
    f64 sums[ROWS][DIRECTIONS];
    for (int i = 0; i < ROWS; ++i)
        for (int n = 0; n < DIRECTIONS; ++n) sums[i][n] = out[i * AT_ONCE + n];
    for (int64_t group = first; group < last; ++group) {
        f64 z0[ROWS], z1[ROWS];
        for (int i = 0; i < ROWS; ++i) {
            const T* z = s.z_at(group, row + i);
            z0[i] = load(z), z1[i] = load(z + LANES);
        }
        FMNES_UNROLL for (int n = 0; n < DIRECTIONS; ++n) {
            const T* v = s.direction(c + n, group * GROUP);
            const f64 v0 = load(v), v1 = load(v + LANES);
            FMNES_UNROLL for (int i = 0; i < ROWS; ++i)
                sums[i][n] = sums[i][n] + (z0[i] * v0 + z1[i] * v1);
        }
    }
    for (int i = 0; i < ROWS; ++i)
        for (int n = 0; n < DIRECTIONS; ++n) out[i * AT_ONCE + n] = sums[i][n];
}

// The same for some rows and at most AT_ONCE directions from c on.
template <class T>
void add_products(const AutoSearch<T>& s, int64_t first, int64_t last, int64_t low, int64_t high,
                  int64_t c, int64_t count, f64* out) {
    constexpr int MANY = PARTS == 1 ? 4 : 2;
    for (int64_t row = low; row < high; row += 2) {
        f64* sums = out + (row - low) * AT_ONCE;
        const bool pair = row + 1 < high;
        int64_t n = 0;
        for (; n + MANY <= count; n += MANY) {
            if (pair) add_products<2, MANY>(s, first, last, row, c + n, sums + n);
            else add_products<1, MANY>(s, first, last, row, c + n, sums + n);
        }
        for (; n < count; ++n) {
            if (pair) add_products<2, 1>(s, first, last, row, c + n, sums + n);
            else add_products<1, 1>(s, first, last, row, c + n, sums + n);
        }
    }
}

// Draw some rows of a block, with their |z|^2 and their products with all directions.
template <class T>
void draw_rows(AutoSearch<T>& s, int64_t block, int64_t low, int64_t high) {
    const int64_t begin = block * BLOCK;
    const int64_t end = begin + BLOCK < s.groups ? begin + BLOCK : s.groups;
    const Keys keys(s.address.seed);
    const int64_t all = s.directions();
    double* products = s.sums_of(block);
    double* norms = products + s.half * all;
    f64 norm2[ROWS_AT_ONCE], sums[ROWS_AT_ONCE * AT_ONCE];
    for (f64& one : norm2) one = f64(0);
    for (int64_t c = 0; c < all; c += AT_ONCE) {
        const int64_t count = all - c < AT_ONCE ? all - c : AT_ONCE;
        for (f64& one : sums) one = f64(0);
        for (int64_t first = begin; first < end; first += PART) {
            const int64_t last = first + PART < end ? first + PART : end;
            for (int64_t group = first; c == 0 && group < last; ++group) {
                const Group from(keys, s.address, group);
                in_lockstep(low, high, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
                    f64 z0[ROWS], z1[ROWS];
                    draw_group<ROWS>(s, from, row, group, z0, z1);
                    for (int i = 0; i < ROWS; ++i) {
                        store(s.z_at(group, row + i), z0[i]);
                        store(s.z_at(group, row + i) + LANES, z1[i]);
                        f64& norm = norm2[row - low + i];
                        norm = norm + (z0[i] * z0[i] + z1[i] * z1[i]);
                    }
                });
            }
            add_products(s, first, last, low, high, c, count, sums);
        }
        for (int64_t row = low; row < high; ++row)
            for (int64_t n = 0; n < count; ++n)
                products[row * all + c + n] = sum(sums[(row - low) * AT_ONCE + n]);
    }
    for (int64_t row = low; row < high; ++row) norms[row] = sum(norm2[row - low]);
}

// Draw all rows; the blocks are added in order.
template <class T>
void draw_all(AutoSearch<T>& s) {
    const double ns = DRAW_NS + 0.1 * static_cast<double>(s.directions());
    const double work = ns * static_cast<double>(s.half * s.groups * GROUP);
    parallel_for(s.blocks, threads_for(work), [&s](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block)
            for (int64_t row = 0; row < s.half; row += ROWS_AT_ONCE)
                draw_rows(s, block, row, row + ROWS_AT_ONCE < s.half ? row + ROWS_AT_ONCE : s.half);
    });
    const int64_t products = s.half * s.directions();
    for (int64_t i = 0; i < products + s.half; ++i) {
        double total = 0;
        for (int64_t block = 0; block < s.blocks; ++block) total += s.sums_of(block)[i];
        (i < products ? s.along[i] : s.norm2[i - products]) = total;
    }
    s.drawn = true;
}

// The candidates of ROWS rows and their mirror images, in some groups. `factors` has
// (sqrt(S_c) - 1) <z, V_c> of each row.
template <int ROWS, class T>
void write_rows(const AutoSearch<T>& s, int64_t first, int64_t last, int64_t row,
                const Rows<T>& out) {
    const int64_t all = s.directions();
    const double* factors = &s.by_row[0];
    const f64 sigma(s.sigma);
    for (int64_t group = first; group < last; ++group) {
        f64 y[ROWS][2];
        for (int i = 0; i < ROWS; ++i)
            for (int h = 0; h < 2; ++h) y[i][h] = load(s.z_at(group, row + i) + h * LANES);
        for (int64_t c = SCOUTS; c < all; ++c) {
            const T* v = s.direction(c, group * GROUP);
            const f64 v0 = load(v), v1 = load(v + LANES);
            FMNES_UNROLL for (int i = 0; i < ROWS; ++i) {
                const f64 factor(factors[(row + i) * all + c]);
                y[i][0] = y[i][0] + factor * v0, y[i][1] = y[i][1] + factor * v1;
            }
        }
        FMNES_UNROLL for (int h = 0; h < 2; ++h) {
            const int64_t j = group * GROUP + h * LANES, left = s.dim - j;
            if (left <= 0) break;
            const f64 m = load(&s.mean[j]), scale = sigma * load(&s.D[j]);
            for (int i = 0; i < ROWS; ++i) {
                const f64 step = scale * y[i][h];
                T *up = out.at(row + i), *down = out.at(s.half + row + i);
                if (left >= LANES) {
                    if (up != nullptr) store(up + j, m + step);
                    if (down != nullptr) store(down + j, m - step);
                } else {
                    if (up != nullptr) store_first(up + j, m + step, left);
                    if (down != nullptr) store_first(down + j, m - step, left);
                }
            }
        }
    }
}

// The whole of ask: candidates first to last - 1, in search coordinates.
template <class T>
void ask(AutoSearch<T>& s, T* data, int64_t stride, int64_t first, int64_t last) {
    if (!s.drawn) draw_all(s);
    const Rows<T> out{data, stride, first, last};
    const int64_t all = s.directions(), tiles = (s.groups + TILE - 1) / TILE;
    for (int64_t row = 0; row < s.half; ++row)
        for (int64_t c = SCOUTS; c < all; ++c)
            s.by_row[row * all + c] = (std::sqrt(s.S[c - SCOUTS]) - 1) * s.along[row * all + c];
    const double ns = WRITE_NS + 0.05 * static_cast<double>(s.k);
    parallel_for(tiles, threads_for(ns * static_cast<double>((last - first) * s.dim)),
                 [&](int64_t from, int64_t to) {
        for (int64_t tile = from; tile < to; ++tile) {
            const int64_t begin = tile * TILE;
            const int64_t end = begin + TILE < s.groups ? begin + TILE : s.groups;
            const auto asked = [&](int64_t row) {
                return out.at(row) != nullptr || out.at(s.half + row) != nullptr;
            };
            for (int64_t row = 0; row < s.half;) {
                if (row + 4 <= s.half && asked(row) && asked(row + 1) && asked(row + 2) &&
                    asked(row + 3)) {
                    write_rows<4>(s, begin, end, row, out);
                    row += 4;
                } else {
                    if (asked(row)) write_rows<1>(s, begin, end, row, out);
                    ++row;
                }
            }
        }
    });
}

}  // namespace fmnes::FMNES_LEVEL
