// CR-FM-NES: ask. Draws, their products with the direction of v, and the candidates.
#pragma once

#include "cr_fm_nes.hpp"
#include "draws.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

// 1/|v|. With vbar = v/|v|, a = <z, vbar> and r = sqrt(1 + |v|^2) a candidate is
// m + sigma D (z + (r - 1) a vbar).
template <class T>
FMNES_INLINE double inverse_norm(const CrFmNes<T>& s) {
    return 1 / std::sqrt(s.norm_v2);
}

// The draws of some rows in one group, rounded to T; zeros behind the last coordinate.
template <int ROWS, class T>
FMNES_INLINE void draw_group(const CrFmNes<T>& s, const Group& from, int64_t row, int64_t group,
                             f64 (&a)[ROWS], f64 (&b)[ROWS]) {
    draw<ROWS>(from, row, a, b);
    const int64_t left = s.is.dim - group * GROUP;
    for (int i = 0; i < ROWS; ++i) {
        a[i] = rounded<T>(a[i]), b[i] = rounded<T>(b[i]);
        if (left < GROUP) {
            a[i] = select(first_lanes(left), a[i], f64(0));
            b[i] = select(first_lanes(left - LANES), b[i], f64(0));
        }
    }
}

constexpr int64_t ROWS_AT_HAND = 32;  // whose sums are taken at a time: most populations have less

// Draw some rows of a block, keep them if they are to be kept, and add up <z, vbar> and |z|^2.
template <class T>
void draw_rows(CrFmNes<T>& s, int64_t block, int64_t low, int64_t high) {
    const int64_t first = block * BLOCK;
    const int64_t last = first + BLOCK < s.groups ? first + BLOCK : s.groups;
    const f64 scale(inverse_norm(s));
    const Keys keys(s.at.seed);
    f64 a[ROWS_AT_HAND], n2[ROWS_AT_HAND];
    for (int64_t i = 0; i < high - low; ++i) a[i] = n2[i] = f64(0);
    for (int64_t group = first; group < last; ++group) {
        const f64 v0 = load(s.v + group * GROUP) * scale;
        const f64 v1 = load(s.v + group * GROUP + LANES) * scale;
        T* z = s.z + (s.is.store_draws ? group * s.half * GROUP : 0);
        const Group from(keys, s.at, group);
        in_lockstep(low, high, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
            f64 z0[ROWS], z1[ROWS];
            draw_group<ROWS>(s, from, row, group, z0, z1);
            for (int i = 0; i < ROWS; ++i) {
                if (s.is.store_draws) {
                    store(z + (row + i) * GROUP, z0[i]);
                    store(z + (row + i) * GROUP + LANES, z1[i]);
                }
                f64 &sum_a = a[row - low + i], &sum_n2 = n2[row - low + i];
                sum_a = sum_a + (z0[i] * v0 + z1[i] * v1);
                sum_n2 = sum_n2 + (z0[i] * z0[i] + z1[i] * z1[i]);
            }
        });
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
            for (int64_t row = 0; row < s.half; row += ROWS_AT_HAND) {
                const int64_t end = row + ROWS_AT_HAND;
                draw_rows(s, block, row, end < s.half ? end : s.half);
            }
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

// A tile of coordinates: mean, sigma D and vbar, read once for all candidates.
template <class T>
class Tile {
  public:
    FMNES_INLINE Tile(const CrFmNes<T>& s, int64_t tile)
        : first(tile * TILE),
          last(first + TILE < s.groups ? first + TILE : s.groups),
          dim_(s.is.dim) {
        const f64 sigma(s.sigma), scale(inverse_norm(s));
        for (int64_t i = 0; i < 2 * (last - first); ++i) {
            const int64_t j = first * GROUP + i * LANES;
            m_[i] = load(s.mean + j);
            sd_[i] = sigma * load(s.D + j);
            vbar_[i] = load(s.v + j) * scale;
        }
    }

    // The candidates of a pair in a group; `along` is (r - 1) <z, vbar>.
    FMNES_INLINE void write(int64_t group, f64 z0, f64 z1, f64 along, T* up, T* down) const {
        write_half(2 * (group - first), group * GROUP, z0, along, up, down);
        write_half(2 * (group - first) + 1, group * GROUP + LANES, z1, along, up, down);
    }

    const int64_t first, last;  // groups

  private:
    FMNES_INLINE void write_half(int64_t i, int64_t j, f64 z, f64 along, T* up, T* down) const {
        const f64 step = sd_[i] * (z + along * vbar_[i]);
        const int64_t left = dim_ - j;
        if (left >= LANES) {
            if (up != nullptr) store(up + j, m_[i] + step);
            if (down != nullptr) store(down + j, m_[i] - step);
        } else if (left > 0) {
            if (up != nullptr) store_first(up + j, m_[i] + step, left);
            if (down != nullptr) store_first(down + j, m_[i] - step, left);
        }
    }

    int64_t dim_;
    f64 m_[2 * TILE], sd_[2 * TILE], vbar_[2 * TILE];
};

template <class T>
void write_tile(const CrFmNes<T>& s, const Tile<T>& tile, const Rows<T>& out) {
    const double r1 = std::sqrt(1 + s.norm_v2) - 1;
    for (int64_t row = 0; row < s.half; ++row) {
        T *up = out.at(row), *down = out.at(s.half + row);
        if (up == nullptr && down == nullptr) continue;
        for (int64_t group = tile.first; group < tile.last; ++group) {
            const T* z = s.z + (group * s.half + row) * GROUP;
            tile.write(group, load(z), load(z + LANES), f64(r1 * s.along[row]), up, down);
        }
    }
}

// The same where no draws are kept: those of the rows that are asked for are made again.
template <class T>
void draw_and_write_tile(const CrFmNes<T>& s, const Tile<T>& tile, const Rows<T>& out) {
    const bool is_up = out.last <= s.half, is_down = out.first >= s.half;
    const int64_t low = is_up ? out.first : is_down ? out.first - s.half : 0;
    const int64_t high = is_up ? out.last : is_down ? out.last - s.half : s.half;
    const double r1 = std::sqrt(1 + s.norm_v2) - 1;
    const Keys keys(s.at.seed);
    for (int64_t group = tile.first; group < tile.last; ++group) {
        const Group from(keys, s.at, group);
        in_lockstep(low, high, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
            f64 z0[ROWS], z1[ROWS];
            draw_group<ROWS>(s, from, row, group, z0, z1);
            for (int i = 0; i < ROWS; ++i)
                tile.write(group, z0[i], z1[i], f64(r1 * s.along[row + i]), out.at(row + i),
                           out.at(s.half + row + i));
        });
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
        for (int64_t i = from; i < to; ++i) {
            const Tile<T> tile(s, i);
            if (s.is.store_draws)
                write_tile(s, tile, out);
            else
                draw_and_write_tile(s, tile, out);
        }
    });
}

}  // namespace fmnes::FMNES_LEVEL
