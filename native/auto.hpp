// The method "auto": what a search holds. The kernels that work on it are in auto_sample.hpp (ask),
// auto_sums.hpp, auto_step.hpp, auto_scouts.hpp and auto_tell.hpp (tell).
//
// Letters in parentheses are the equations of docs/methods/auto.md; fmnes/algorithms/auto.py and
// _axes_gaussian.py have the same steps on whole arrays.
#pragma once

#include <cstdint>

#include "address.hpp"
#include "array.hpp"
#include "cr_fm_nes.hpp"
#include "ranking.hpp"
#include "records.hpp"

namespace fmnes {

// Directions are the two scouts, the long one first, and then the axes, longest first.
constexpr int64_t SCOUTS = 2;
// The averages that learning rates are found from, in their order; see fmnes/algorithms/_rates.py.
enum MeanAverage { SIGNAL, NOISE, SEEN, MEAN_AVERAGES };
enum SigmaAverage { GRADIENT, SQUARE, SIGMA_AVERAGES };

// The vectors of a generation. They lie where the draws were, which have been read: the sums of z
// by the weights of CR-FM-NES, by those of the mean, by those of a fresh scout; the path q; the
// gradient of log D, later its step a; and the sums of z by w <z, direction>.
enum Slot : int64_t { GZ, GM, FRESH, PATH, LOG_D, ALONG };
constexpr int64_t slots(int64_t axes) { return ALONG + SCOUTS + axes; }

// The weights of a draw in sums of z. Without distance weights the first two are the same.
enum Weight : int64_t { OF_GZ, OF_HAT, OF_GM, OF_FRESH, OF_ALONG };

// Groups of which draws and directions stay in the first cache.
constexpr int64_t PART = 16;

constexpr int64_t padded(int64_t count) { return (count + 7) / 8 * 8; }

// A small matrix, row after row, each row padded with zeros to whole registers.
struct Small {
    double* data = nullptr;
    int64_t stride = 0;
    FMNES_INLINE double* operator[](int64_t row) const { return data + row * stride; }
};

template <class T>
class AutoSearch {
  public:
    // w_hat, scores: popsize weights, best first; rates: popsize + 1 entries.
    AutoSearch(int64_t dim, int64_t popsize, const AutoConstants& constants,
               const NoiseConstants& noise, const double* w_hat, const double* scores,
               const Rates* rates, const DrawAddress& address);

    // Memory for as many axes. There are none at first.
    void make_room(int64_t axes);

    const int64_t dim, popsize;
    const AutoConstants constants;
    const NoiseConstants noise;
    DrawAddress address;
    const int64_t half, groups, blocks;
    Array<double> w_hat, scores;
    Array<Rates> rates;

    // === State; vectors have `groups` whole groups, with D = 1 and zeros behind the last ===
    double sigma = 1;
    Array<T> mean, D, p_sigma, p_c, D_gradient, m_gradient;
    double eta = 1, m_averages[MEAN_AVERAGES] = {}, sigma_averages[SIGMA_AVERAGES] = {};
    double D_signal = 0, D_noise = 1, evidence[SCOUTS] = {}, scout_norm2[SCOUTS] = {};
    int64_t room = 0, k = 0;  // axes that there is memory for, and axes
    Array<T> frame;           // (groups, SCOUTS + room, GROUP): the directions
    Array<double> S;          // room
    int phase = 3;
    Array<double> path_along;  // <p_c / D, direction>

    // See CrFmNes.
    Array<T> initial;
    bool alike = true;
    T initial_value = 0;
    double tolx = 0;

    // === The generation ===
    bool drawn = false;
    Array<T> z;                  // (groups, max(half, slots), GROUP): draws, then sums
    Array<double> along, norm2;  // <z, direction> and |z|^2 of each row
    Array<T> best;
    Generation shown{};

    // === Scratch ===
    int64_t partial_width = 0;
    Array<double> partial;                      // of each block: totals, sums, lanes, a group
    Array<double> weights, by_score, w;         // popsize, popsize, half
    Array<double> by_row;                       // (half, OF_ALONG + directions): see Weight
    Array<int64_t> order;                       // popsize
    Array<double> totals;                       // sums of all blocks
    Array<double> gz_along, gm_along, q_along;  // products of sums and the path with directions
    Array<double> tilt, S_new, lengths, norms;  // room each
    Array<int64_t> sources;                     // directions
    Array<double> memory;                       // of the small matrices
    Small M, N, H, Z, P, of_V, of_Y, U, W, V_scouts;  // see auto_step.hpp

    FMNES_INLINE int64_t directions() const { return SCOUTS + k; }
    FMNES_INLINE int64_t z_rows() const { return half < slots(room) ? slots(room) : half; }
    FMNES_INLINE T* z_at(int64_t group, int64_t row) {
        return z.data() + (group * z_rows() + row) * GROUP;
    }
    FMNES_INLINE const T* z_at(int64_t group, int64_t row) const {
        return z.data() + (group * z_rows() + row) * GROUP;
    }
    // A vector of the generation, or a direction, from coordinate j on.
    FMNES_INLINE T* slot(int64_t which, int64_t j) {
        return z_at(j / GROUP, which) + j % GROUP;
    }
    FMNES_INLINE T* direction(int64_t which, int64_t j) {
        return frame.data() + (j / GROUP * (SCOUTS + room) + which) * GROUP + j % GROUP;
    }
    FMNES_INLINE const T* direction(int64_t which, int64_t j) const {
        return frame.data() + (j / GROUP * (SCOUTS + room) + which) * GROUP + j % GROUP;
    }
    FMNES_INLINE T* axis(int64_t which, int64_t j) { return direction(SCOUTS + which, j); }

    // The parts of a block's scratch.
    FMNES_INLINE double* partial_of(int64_t block) { return &partial[block * partial_width]; }
    FMNES_INLINE double* sums_of(int64_t block) { return partial_of(block) + padded(COLLECTED); }
    FMNES_INLINE double* lanes_of(int64_t block) { return sums_of(block) + sums_width(); }
    FMNES_INLINE double* group_of(int64_t block) { return lanes_of(block) + 8 * lanes(); }

    FMNES_INLINE int64_t sums_width() const {
        const int64_t rows = half * (SCOUTS + room + 1), pairs = room * (room + 1) / 2 + 8 * room;
        return padded((rows < pairs ? pairs : rows) + 16);
    }
    FMNES_INLINE int64_t lanes() const { return room; }
};

// Fill `order`, and the fields of `shown` that the values determine.
template <class T>
void rank(AutoSearch<T>& s, const double* f);

// weights <- w_hat by candidate, by_score <- scores by candidate; equal candidates share theirs.
template <class T>
void rank_weights(AutoSearch<T>& s, const double* f);

}  // namespace fmnes
