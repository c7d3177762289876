// CR-FM-NES: ask. Draws, their products with the direction of v, and the candidates.
#pragma once

#include "cr_fm_nes.hpp"
#include "draws.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

// z_perp and a of the papers: vbar = v/|v|, r = sqrt(1 + |v|^2); a candidate is
// m + sigma D (z + (r - 1) a vbar) with a = <z, vbar>.
template <class T>
FMNES_INLINE double inverse_norm(const CrFmNes<T>& s) {
    return 1 / std::sqrt(s.norm_v2);
}

// The draws of one row in one group; zeros behind the last coordinate.
template <class T>
FMNES_INLINE void draw_group(const CrFmNes<T>& s, int64_t row, int64_t group, f64& a, f64& b) {
    draw(s.at, static_cast<uint64_t>(row), static_cast<uint64_t>(group), a, b);
    if constexpr (sizeof(T) == sizeof(float)) a = rounded<T>(a), b = rounded<T>(b);
    const int64_t left = s.is.dim - group * GROUP;
    if (left < GROUP) {
        a = select(first_lanes(left), a, f64(0));
        b = select(first_lanes(left - LANES), b, f64(0));
    }
}

constexpr int64_t ROWS = 32;  // rows whose sums are kept at hand: all of them but in large populations

// Draw some rows of a block, keep them if they are to be kept, and add up <z, vbar> and |z|^2.
template <class T>
void draw_rows(CrFmNes<T>& s, int64_t block, int64_t low, int64_t high) {
    const int64_t first = block * BLOCK;
    const int64_t last = first + BLOCK < s.groups ? first + BLOCK : s.groups;
    const f64 scale(inverse_norm(s));
    f64 a[ROWS], n2[ROWS];
    for (int64_t i = 0; i < ROWS; ++i) a[i] = n2[i] = f64(0);
    for (int64_t group = first; group < last; ++group) {
        const f64 v0 = load(s.v + group * GROUP) * scale;
        const f64 v1 = load(s.v + group * GROUP + LANES) * scale;
        T* z = s.z + (s.is.store_draws ? group * s.half * GROUP : 0);
        for (int64_t row = low; row < high; ++row) {
            f64 z0, z1;
            draw_group(s, row, group, z0, z1);
            if (s.is.store_draws) store(z + row * GROUP, z0), store(z + row * GROUP + LANES, z1);
            a[row - low] = a[row - low] + z0 * v0 + z1 * v1;
            n2[row - low] = n2[row - low] + z0 * z0 + z1 * z1;
        }
    }
    double* partial = s.partial + block * s.partial_width;
    for (int64_t row = low; row < high; ++row) {
        partial[row] = sum(a[row - low]);
        partial[s.half + row] = sum(n2[row - low]);
    }
}

template <class T>
void draw_all(CrFmNes<T>& s) {
    const double work = DRAW_NS * static_cast<double>(s.half * s.groups * GROUP);
    parallel_for(s.blocks, threads_for(work), [&s](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block)
            for (int64_t row = 0; row < s.half; row += ROWS)
                draw_rows(s, block, row, row + ROWS < s.half ? row + ROWS : s.half);
    });
    for (int64_t row = 0; row < s.half; ++row) {
        s.along[row] = s.norm2[row] = 0;
        for (int64_t block = 0; block < s.blocks; ++block) {
            s.along[row] += s.partial[block * s.partial_width + row];
            s.norm2[row] += s.partial[block * s.partial_width + s.half + row];
        }
    }
    s.drawn = true;
}

// Where the rows of candidates go: row i at data + i * stride.
template <class T>
struct Rows {
    T* data;
    int64_t stride, first, last;  // candidates first to last - 1
    FMNES_INLINE T* at(int64_t candidate) const {
        return first <= candidate && candidate < last ? data + (candidate - first) * stride
                                                      : nullptr;
    }
};

constexpr int64_t TILE = 32;  // groups whose mean, D and v stay in the first cache

// The candidates of the pairs, in one tile of coordinates.
template <class T>
void write_tile(const CrFmNes<T>& s, int64_t tile, const Rows<T>& out) {
    const int64_t half = s.half, first = tile * TILE;
    const int64_t last = first + TILE < s.groups ? first + TILE : s.groups;
    const double r1 = std::sqrt(1 + s.norm_v2) - 1;
    const f64 sigma(s.sigma), scale(inverse_norm(s));
    f64 m[2 * TILE], sd[2 * TILE], vbar[2 * TILE];
    for (int64_t i = 0; i < 2 * (last - first); ++i) {
        const int64_t j = first * GROUP + i * LANES;
        m[i] = load(s.mean + j), sd[i] = sigma * load(s.D + j), vbar[i] = load(s.v + j) * scale;
    }
    for (int64_t row = 0; row < half; ++row) {
        T *up = out.at(row), *down = out.at(half + row);
        if (up == nullptr && down == nullptr) continue;
        const f64 c(r1 * s.along[row]);
        for (int64_t group = first; group < last; ++group) {
            f64 z[2];
            if (s.is.store_draws) {
                const T* kept = s.z + (group * half + row) * GROUP;
                z[0] = load(kept), z[1] = load(kept + LANES);
            } else {
                draw_group(s, row, group, z[0], z[1]);
            }
            for (int part = 0; part < 2; ++part) {
                const int64_t i = 2 * (group - first) + part, j = group * GROUP + part * LANES;
                const f64 step = sd[i] * (z[part] + c * vbar[i]);
                const int64_t left = s.is.dim - j;
                if (left >= LANES) {
                    if (up != nullptr) store(up + j, m[i] + step);
                    if (down != nullptr) store(down + j, m[i] - step);
                } else if (left > 0) {
                    if (up != nullptr) store_first(up + j, m[i] + step, static_cast<int>(left));
                    if (down != nullptr) store_first(down + j, m[i] - step, static_cast<int>(left));
                }
            }
        }
    }
}

// The whole of ask: candidates first to last - 1, in search coordinates.
template <class T>
void ask(CrFmNes<T>& s, T* data, int64_t stride, int64_t first, int64_t last) {
    if (!s.drawn) draw_all(s);
    const Rows<T> out{data, stride, first, last};
    const int64_t tiles = (s.groups + TILE - 1) / TILE;
    const double ns = s.is.store_draws ? WRITE_NS : WRITE_NS + DRAW_NS;
    const double work = ns * static_cast<double>((last - first) * s.is.dim);
    parallel_for(tiles, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t tile = from; tile < to; ++tile) write_tile(s, tile, out);
    });
}

}  // namespace fmnes::FMNES_LEVEL
