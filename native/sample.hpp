// CR-FM-NES: ask (Algorithm 1, lines 3 to 7). The draws, their products with the direction of v,
// and the candidates. With vbar = v/|v|, a = <z, vbar> and r = sqrt(1 + |v|^2):
//
//     z ~ N(0, I), and the mirrored -z               (line 4)
//     y = z + (r - 1) a vbar = (I + v v^T)^(1/2) z   (line 5)
//     x = m + sigma D y                              (line 6)
#pragma once

#include "cr_fm_nes.hpp"
#include "draws.hpp"
#include "sweep.hpp"

namespace fmnes::FMNES_LEVEL {

// 1/|v|, and r - 1.
template <class T>
FMNES_INLINE double inverse_norm(const CrFmNes<T>& s) {
    return 1 / std::sqrt(s.norm_v2);
}

template <class T>
FMNES_INLINE double stretch_less_one(const CrFmNes<T>& s) {
    return std::sqrt(1 + s.norm_v2) - 1;
}

// The draws of some rows in one group (line 4), rounded to T; zeros behind the last coordinate.
template <int ROWS, template <class> class Search, class T>
FMNES_INLINE void draw_group(const Search<T>& s, const Group& from, int64_t row, int64_t group,
                             f64 (&a)[ROWS], f64 (&b)[ROWS]) {
    draw<ROWS>(from, row, a, b);
    const int64_t left = s.dim - group * GROUP;
    for (int i = 0; i < ROWS; ++i) {
        a[i] = rounded<T>(a[i]), b[i] = rounded<T>(b[i]);
        if (left < GROUP) {
            a[i] = select(first_lanes(left), a[i], f64(0));
            b[i] = select(first_lanes(left - LANES), b[i], f64(0));
        }
    }
}

constexpr int64_t ROWS_AT_ONCE = 32;  // rows whose sums stay in registers and the first cache

// The <z, vbar> of all rows in one block, and the |z|^2.
template <class T>
FMNES_INLINE double* along_of(CrFmNes<T>& s, int64_t block) {
    return s.partial_of(block);
}

template <class T>
FMNES_INLINE double* norm2_of(CrFmNes<T>& s, int64_t block) {
    return s.partial_of(block) + s.half;
}

// Draw some rows of a block, store them if draws are kept, and add up <z, vbar> and |z|^2.
template <class T>
void draw_rows(CrFmNes<T>& s, int64_t block, int64_t low, int64_t high) {
    const int64_t first = block * BLOCK;
    const int64_t last = first + BLOCK < s.groups ? first + BLOCK : s.groups;
    const f64 scale(inverse_norm(s));
    const Keys keys(s.address.seed);
    f64 along[ROWS_AT_ONCE], norm2[ROWS_AT_ONCE];
    for (int64_t i = 0; i < high - low; ++i) along[i] = norm2[i] = f64(0);
    for (int64_t group = first; group < last; ++group) {
        const f64 vbar0 = load(&s.v[group * GROUP]) * scale;
        const f64 vbar1 = load(&s.v[group * GROUP + LANES]) * scale;
        const Group from(keys, s.address, group);
        in_lockstep(low, high, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
            f64 z0[ROWS], z1[ROWS];
            draw_group<ROWS>(s, from, row, group, z0, z1);
            for (int i = 0; i < ROWS; ++i) {
                if (s.store_draws) {
                    store(s.z_at(group, row + i), z0[i]);
                    store(s.z_at(group, row + i) + LANES, z1[i]);
                }
                const int64_t k = row - low + i;
                along[k] = along[k] + (z0[i] * vbar0 + z1[i] * vbar1);
                norm2[k] = norm2[k] + (z0[i] * z0[i] + z1[i] * z1[i]);
            }
        });
    }
    for (int64_t row = low; row < high; ++row) {
        along_of(s, block)[row] = sum(along[row - low]);
        norm2_of(s, block)[row] = sum(norm2[row - low]);
    }
}

// Draw all rows, with a = <z, vbar> and |z|^2 of each: the blocks are added in order.
template <class T>
void draw_all(CrFmNes<T>& s) {
    const double work = DRAW_NS * static_cast<double>(s.half * s.groups * GROUP);
    parallel_for(s.blocks, threads_for(work), [&s](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block)
            for (int64_t row = 0; row < s.half; row += ROWS_AT_ONCE) {
                const int64_t end = row + ROWS_AT_ONCE;
                draw_rows(s, block, row, end < s.half ? end : s.half);
            }
    });
    for (int64_t row = 0; row < s.half; ++row) {
        s.along[row] = s.norm2[row] = 0;
        for (int64_t block = 0; block < s.blocks; ++block) {
            s.along[row] += along_of(s, block)[row];
            s.norm2[row] += norm2_of(s, block)[row];
        }
    }
    s.drawn = true;
}

// Where candidates first to last - 1 go: `stride` numbers apart.
template <class T>
struct Rows {
    T* data;
    int64_t stride, first, last;

    // The row of a candidate; null if the candidate is not asked for.
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
          dim_(s.dim) {
        const f64 sigma(s.sigma), scale(inverse_norm(s));
        for (int64_t i = 0; i < 2 * (last - first); ++i) {
            const int64_t j = first * GROUP + i * LANES;
            mean_[i] = load(&s.mean[j]);
            sigma_D_[i] = sigma * load(&s.D[j]);
            vbar_[i] = load(&s.v[j]) * scale;
        }
    }

    // Lines 5 and 6 for a pair of candidates in a group; `along` is (r - 1) <z, vbar>.
    FMNES_INLINE void write(int64_t group, f64 z0, f64 z1, f64 along, T* up, T* down) const {
        write_half(2 * (group - first), group * GROUP, z0, along, up, down);
        write_half(2 * (group - first) + 1, group * GROUP + LANES, z1, along, up, down);
    }

    const int64_t first, last;  // groups

  private:
    FMNES_INLINE void write_half(int64_t i, int64_t j, f64 z, f64 along, T* up, T* down) const {
        const f64 step = sigma_D_[i] * (z + along * vbar_[i]);
        const int64_t left = dim_ - j;
        if (left >= LANES) {
            if (up != nullptr) store(up + j, mean_[i] + step);
            if (down != nullptr) store(down + j, mean_[i] - step);
        } else if (left > 0) {
            if (up != nullptr) store_first(up + j, mean_[i] + step, left);
            if (down != nullptr) store_first(down + j, mean_[i] - step, left);
        }
    }

    int64_t dim_;
    f64 mean_[2 * TILE], sigma_D_[2 * TILE], vbar_[2 * TILE];
};

template <class T>
void write_tile(const CrFmNes<T>& s, const Tile<T>& tile, const Rows<T>& out) {
    const double factor = stretch_less_one(s);
    for (int64_t row = 0; row < s.half; ++row) {
        T *up = out.at(row), *down = out.at(s.half + row);
        if (up == nullptr && down == nullptr) continue;
        for (int64_t group = tile.first; group < tile.last; ++group) {
            const T* z = s.z_at(group, row);
            tile.write(group, load(z), load(z + LANES), f64(factor * s.along[row]), up, down);
        }
    }
}

// The same if draws are not kept: the rows that are asked for are drawn again.
template <class T>
void draw_and_write_tile(const CrFmNes<T>& s, const Tile<T>& tile, const Rows<T>& out) {
    const bool only_up = out.last <= s.half, only_down = out.first >= s.half;
    const int64_t low = only_up ? out.first : only_down ? out.first - s.half : 0;
    const int64_t high = only_up ? out.last : only_down ? out.last - s.half : s.half;
    const double factor = stretch_less_one(s);
    const Keys keys(s.address.seed);
    for (int64_t group = tile.first; group < tile.last; ++group) {
        const Group from(keys, s.address, group);
        in_lockstep(low, high, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
            f64 z0[ROWS], z1[ROWS];
            draw_group<ROWS>(s, from, row, group, z0, z1);
            for (int i = 0; i < ROWS; ++i)
                tile.write(group, z0[i], z1[i], f64(factor * s.along[row + i]), out.at(row + i),
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
    const double ns = s.store_draws ? WRITE_NS : WRITE_NS + DRAW_NS;
    const double work = ns * static_cast<double>((last - first) * s.dim);
    parallel_for(tiles, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
            const Tile<T> tile(s, i);
            if (s.store_draws)
                write_tile(s, tile, out);
            else
                draw_and_write_tile(s, tile, out);
        }
    });
}

}  // namespace fmnes::FMNES_LEVEL
