// CR-FM-NES: what a search holds, and its weights. The kernels that work on it are in sample.hpp
// (ask), update.hpp and shape.hpp (tell).
//
// Line numbers are those of Algorithm 1 of the paper (M. Nomura, I. Ono: "Fast moving natural
// evolution strategy for high-dimensional problems", CEC 2022, arXiv 2201.11422), equation numbers
// those of its text. fmnes/algorithms/cr_fm_nes.py explains the forms in which they are computed.
#pragma once

#include <cstdint>

#include "address.hpp"
#include "array.hpp"
#include "ranking.hpp"
#include "records.hpp"

namespace fmnes {

constexpr int64_t GROUP = 16;     // coordinates that are drawn together
constexpr int64_t BLOCK = 256;    // groups whose sums are taken together, by one thread
constexpr int64_t COLLECTED = 9;  // totals that one sweep collects of a block, at most

// The vectors of weighted sums that tell() takes of the draws, by what they move. Later steps
// overwrite the last two: with the step of v, and with s, the relative step of D.
enum SumFor : int64_t { FOR_MEAN, FOR_V, FOR_D };
constexpr int64_t SUMS = FOR_D + 1;

struct Setup {
    int64_t dim, popsize;
    bool safe;         // the default variant; else the paper's
    bool store_draws;  // keep z from ask to tell; else make it again
};

template <class T>
class CrFmNes {
  public:
    // w_hat: popsize weights, best first; rates: popsize + 1 entries, by feasible candidates.
    CrFmNes(const Setup& setup, const Constants& constants, const double* w_hat, const Rates* rates,
            const DrawAddress& address);

    const int64_t dim, popsize;
    const bool safe, store_draws;
    const Constants constants;
    DrawAddress address;
    const int64_t half, groups, blocks;
    Array<double> w_hat;
    Array<Rates> rates;

    // === State; vectors have `groups` whole groups, with D = 1 and zeros behind the last ===
    double sigma = 1;
    Array<T> mean, D, v, p_sigma, p_c;
    double norm_v2 = 0, largest_v2 = 0;  // |v|^2 and the largest v_j^2
    int phase = 3;

    // A deviation has converged below the larger of tolx times its initial value and the
    // resolution of the mean. If all initial values agree, there is one number instead of a vector.
    Array<T> initial;
    bool alike = true;
    T initial_value = 0;
    double tolx = 0;

    // === The generation ===
    bool drawn = false;
    Array<T> z;  // (groups, half, GROUP): what is read together lies together; may be empty
    Array<double> along, norm2;  // <z, vbar> and |z|^2 of each row
    Array<T> best;               // the best candidate so far, in search coordinates
    Generation shown{};

    // === Scratch ===
    const bool overlaid;  // the sums overwrite the first rows of the draws, which have been read
    Array<T> room;        // else the sums have memory of their own
    T* const sums;        // SUMS times GROUP numbers for each group, sums_stride apart
    const int64_t sums_stride;
    const int64_t partial_width;
    Array<double> partial;  // totals of each block, partial_width apart
    Array<double> weights;  // popsize
    Array<double> odd_hat, odd, even, even_along;  // half each: see weigh() in update.hpp
    Array<int64_t> order;                          // popsize

    // The draws of a row in a group, if they are kept.
    FMNES_INLINE T* z_at(int64_t group, int64_t row) {
        return z.data() + (group * half + row) * GROUP;
    }
    FMNES_INLINE const T* z_at(int64_t group, int64_t row) const {
        return z.data() + (group * half + row) * GROUP;
    }

    // One of the sums, from coordinate j on.
    FMNES_INLINE T* sum_at(SumFor which, int64_t j) {
        return sums + j / GROUP * sums_stride + which * GROUP + j % GROUP;
    }

    FMNES_INLINE double* partial_of(int64_t block) { return &partial[block * partial_width]; }
};

// Fill `order` (best first: feasible ones by value, then infeasible ones by |z|), and the fields of
// `shown` that the values determine.
template <class T>
void rank(CrFmNes<T>& s, const double* f);

// weights <- w_hat by candidate; in the safe variant equal candidates share theirs.
template <class T>
void rank_weights(CrFmNes<T>& s, const double* f);

}  // namespace fmnes
