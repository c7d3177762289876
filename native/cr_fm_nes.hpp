// CR-FM-NES: what a search holds, and its weights. The kernels that work on it are in sample.hpp
// (ask) and update.hpp (tell); the equations stand in fmnes/algorithms/cr_fm_nes.py.
#pragma once

#include <cstdint>

#include "address.hpp"
#include "array.hpp"
#include "ranking.hpp"

namespace fmnes {

constexpr int64_t GROUP = 16;       // coordinates that are drawn together
constexpr int64_t BLOCK = 256;      // groups whose sums are taken together, by one thread
constexpr int64_t SUMS = 3;         // vectors of weighted sums that tell() takes of the draws
constexpr int64_t COLLECTED = 9;    // numbers that one sweep collects of a block, at most

// What depends on the number of feasible candidates.
struct Rates {
    double alpha;  // strength of the distance weights
    double eta_B;
    double eta_movement, eta_stagnation, eta_convergence;  // eta_sigma in each phase
    double c_1;
};

struct Constants {
    int64_t dim, popsize;
    bool safe;          // the default variant; else the paper's
    bool store_draws;   // keep z from ask to tell; else make it again
    double chi_n;
    double c_sigma, scale_sigma;  // p_sigma <- (1 - c_sigma) p_sigma + scale_sigma sum(w z)
    double c_c, scale_c;
    double long_v, largest_step, D_limit, v_least, v_most;  // of the safe step
};

// What the history and the stopping rules look at.
struct Figures {
    double sigma, axis_ratio, norm_v, deviation_least, deviation_most, mean_most;
    int phase;
    bool shrunk;
};

template <class T>
class CrFmNes {
  public:
    // w_hat: popsize weights, best first; rates: popsize + 1 entries.
    CrFmNes(const Constants& constants, const double* w_hat, const Rates* rates,
            const Address& address);

    Constants is;
    Address at;
    int64_t half, groups, blocks;
    Array<double> w_hat;
    Array<Rates> rates;

    // === State; vectors have `groups` whole groups, with D = 1 and zeros behind the last ===
    double sigma = 1;
    Array<T> mean, D, v, p_sigma, p_c;
    double norm_v2 = 0, largest_v2 = 0;  // |v|^2 and the largest v_j^2
    int phase = 3;

    // A deviation counts as converged below the larger of tolx times its initial value and the
    // resolution of the mean. Where all initial values agree there is no vector of them.
    Array<T> initial;
    bool alike = true;
    T initial_value = 0;
    double tolx = 0;

    // === The generation ===
    bool drawn = false;
    Array<T> z;        // (groups, half, GROUP): what is read together lies together; may be empty
    Array<double> along, norm2;  // <z, vbar> and |z|^2 of each row
    Array<T> best;     // the best candidate so far, in search coordinates
    Survey survey{};
    Figures figures{};

    // === Scratch ===
    bool overlaid;     // the sums overwrite the first rows of the draws, which have been read
    Array<T> room;     // else they have room of their own
    T* sums;           // SUMS groups of 16 for each group of coordinates, sums_stride apart
    int64_t sums_stride;
    Array<double> partial;  // one row of numbers per block
    int64_t partial_width;
    Array<double> weights, coefficients;  // popsize; 4 * half
    Array<int64_t> order;                 // popsize
};

// Fill survey and order (best first: feasible ones by value, then infeasible ones by |z|).
template <class T>
void rank(CrFmNes<T>& s, const double* f);

// weights <- w_hat by candidate; in the safe variant equal candidates share theirs.
template <class T>
void rank_weights(CrFmNes<T>& s, const double* f);

}  // namespace fmnes
