// CR-FM-NES: tell, up to the mean (Algorithm 1, lines 8 to 13). The forms are those of
// fmnes/algorithms/cr_fm_nes.py and _vd_gaussian.py, which explain them.
#pragma once

#include "sample.hpp"

namespace fmnes::FMNES_LEVEL {

constexpr int MOVEMENT = 1, STAGNATION = 2, CONVERGENCE = 3;

// exp of one number, with what exp() of eight lanes leaves out: overflow, underflow and NaN.
FMNES_INLINE double exp1(double x) {
    if (!(x < 700)) return x * INF;  // inf, or NaN
    double lanes[LANES];
    store(lanes, exp(f64(x < -700 ? -700 : x)));
    return lanes[0];
}

FMNES_INLINE double log1(double x) {
    double lanes[LANES];
    store(lanes, log(f64(x)));
    return lanes[0];
}

// Scalars of one generation that the formulas share.
struct Scalars {
    double norm_v, g, r;  // |v|, 1 + |v|^2 (the paper's gamma_v), its square root
    double aa;            // sum(even a^2), with eta_B
    double G_sigma;
    const Rates& rates;   // for the number of feasible candidates
};

// The search phase (lines 10 and 11).
template <class Search>
int phase_of(const Search& s, double norm_p_sigma) {
    const double chi_n = s.constants.chi_n;
    return norm_p_sigma >= chi_n         ? MOVEMENT
           : norm_p_sigma >= 0.1 * chi_n ? STAGNATION
                                         : CONVERGENCE;
}

// The weights of line 10 for a given phase: w^rank (eq. 3), or w^dist (eqs. 6 and 7). Candidates
// i and half + i are mirrored, so that sums over both need the difference or the sum of their
// weights. For each pair:
//
//     odd_hat     w^rank_i - w^rank_(half + i), of z in p_sigma
//     odd         w_i - w_(half + i), of z in the mean
//     even        eta_B (w_i + w_(half + i)), of z*z
//     even_along  even a, of z
//
// and with them sum(even a^2) and G_sigma (line 18, eq. 28).
template <class T>
void weigh(CrFmNes<T>& s, int phase, Scalars& now) {
    const int64_t half = s.half;
    double farthest = 0, sum_w = 1;
    if (phase == MOVEMENT) {  // |z| less its largest: the same weights, and no overflow
        for (const double norm2 : s.norm2) farthest = norm2 > farthest ? norm2 : farthest;
        sum_w = 0;
        for (int64_t i = 0; i < half; ++i) {
            const double far = std::sqrt(s.norm2[i]) - std::sqrt(farthest);
            s.odd[i] = exp1(now.rates.alpha * far);  // eq. 7
            sum_w += (s.weights[i] + s.weights[half + i]) * s.odd[i];
        }
    }
    const double long_v = s.constants.long_v;
    double eta_B = now.rates.eta_B;
    if (s.safe && phase != MOVEMENT && now.norm_v > long_v) eta_B *= long_v / now.norm_v;
    now.aa = now.G_sigma = 0;
    for (int64_t i = 0; i < half; ++i) {
        const double factor = phase == MOVEMENT ? s.odd[i] / sum_w : 1;
        const double up = s.weights[i], down = s.weights[half + i];
        s.odd_hat[i] = up - down;         // eq. 3: -1/lambda cancels
        s.odd[i] = (up - down) * factor;  // eq. 6
        const double even = (up + down) * factor - 2.0 / static_cast<double>(s.popsize);
        s.even[i] = eta_B * even;
        s.even_along[i] = s.even[i] * s.along[i];
        now.aa += s.even_along[i] * s.along[i];
        now.G_sigma += even * s.norm2[i];  // the identity in eq. 28 cancels: the weights sum to 0
    }
    now.G_sigma /= static_cast<double>(s.dim);
}

// Sums over the draws of a group of coordinates: sum(odd_hat z), sum(odd z), sum(even a z) and
// sum(even z*z), two times eight lanes each. Without DISTANCE weights odd equals odd_hat.
template <bool DISTANCE>
struct GroupSums {
    f64 hat[2] = {0, 0}, gz[2] = {0, 0}, az[2] = {0, 0}, zz[2] = {0, 0};

    template <class T>
    FMNES_INLINE void add(const CrFmNes<T>& s, int64_t row, f64 z0, f64 z1) {
        const f64 odd_hat(s.odd_hat[row]), even(s.even[row]), even_along(s.even_along[row]);
        const f64 z[2] = {z0, z1};
        FMNES_UNROLL for (int part = 0; part < 2; ++part) {
            hat[part] = hat[part] + odd_hat * z[part];
            if constexpr (DISTANCE) gz[part] = gz[part] + f64(s.odd[row]) * z[part];
            az[part] = az[part] + even_along * z[part];
            zz[part] = zz[part] + even * (z[part] * z[part]);
        }
    }
};

// The sums over the first `count` rows, which are drawn again.
template <bool DISTANCE, class T>
GroupSums<DISTANCE> sum_drawn_again(const CrFmNes<T>& s, const Keys& keys, int64_t count,
                                    int64_t group) {
    GroupSums<DISTANCE> sums;
    const Group from(keys, s.address, group);
    in_lockstep(0, count, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
        f64 z0[ROWS], z1[ROWS];
        draw_group<ROWS>(s, from, row, group, z0, z1);
        for (int i = 0; i < ROWS; ++i) sums.add(s, row + i, z0[i], z1[i]);
    });
    return sums;
}

// The sums over all rows. Draws that are not kept are made again, and so are the first rows if an
// earlier pass has stored its sums in their place (`again`).
template <bool DISTANCE, class T>
FMNES_INLINE GroupSums<DISTANCE> sum_group(const CrFmNes<T>& s, const Keys& keys, bool again,
                                           int64_t group) {
    const int64_t count = !s.store_draws ? s.half : again && s.overlaid ? SUMS : 0;
    GroupSums<DISTANCE> sums;
    if (count > 0) sums = sum_drawn_again<DISTANCE>(s, keys, count, group);
    for (int64_t row = count; row < s.half; ++row) {
        const T* z = s.z_at(group, row);
        sums.add(s, row, load(z), load(z + LANES));
    }
    if constexpr (!DISTANCE) sums.gz[0] = sums.hat[0], sums.gz[1] = sums.hat[1];
    return sums;
}

struct DrawTotals {
    Sum p_sigma2;  // |p_sigma|^2
    Sum gz_v;      // <sum(odd z), v>

    template <class F>
    FMNES_INLINE void each(F f) {
        f(p_sigma2), f(gz_v);
    }
};

// The only pass over the draws: p_sigma (line 9, eq. 1), and the sums for the mean, v and D.
template <bool DISTANCE, class T>
DrawTotals sum_draws(CrFmNes<T>& s, bool again) {
    const f64 keep(1 - s.constants.c_sigma), scale(s.constants.scale_sigma);
    const Keys keys(s.address.seed);
    const double ns = s.store_draws ? SUM_NS : SUM_NS + DRAW_NS;
    const double work = ns * static_cast<double>(s.half * s.dim);
    parallel_for(s.blocks, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block) {
            const int64_t first = block * BLOCK;
            const int64_t last = first + BLOCK < s.groups ? first + BLOCK : s.groups;
            DrawTotals totals;
            for (int64_t group = first; group < last; ++group) {
                const auto [hat, gz, az, zz] = sum_group<DISTANCE>(s, keys, again, group);
                for (int part = 0; part < 2; ++part) {
                    const int64_t j = group * GROUP + part * LANES;
                    store(s.sum_at(FOR_MEAN, j), gz[part]);
                    store(s.sum_at(FOR_V, j), az[part]);
                    store(s.sum_at(FOR_D, j), zz[part]);
                    f64 p = load(&s.p_sigma[j]);
                    if (!again) store(&s.p_sigma[j], p = rounded<T>(keep * p + scale * hat[part]));
                    totals.p_sigma2.add(p * p);
                    totals.gz_v.add(gz[part] * load(&s.v[j]));
                }
            }
            keep_block(s, block, totals);
        }
    });
    return all_blocks<DrawTotals>(s);
}

template <class T>
DrawTotals sum_draws(CrFmNes<T>& s, int phase, bool again) {
    return phase == MOVEMENT ? sum_draws<true>(s, again) : sum_draws<false>(s, again);
}

struct PathTotals {
    Sum y_v;  // <p_c / D, v>

    template <class F>
    FMNES_INLINE void each(F f) {
        f(y_v);
    }
};

// The path p_c and the mean (lines 12 and 13). Returns the a = <z, vbar> of the path as a sample,
// p_c = D (I + v v^T)^(1/2) z.
template <class T>
double move_mean(CrFmNes<T>& s, const Scalars& now, double gz_v) {
    const f64 along((now.r - 1) * (gz_v / now.norm_v) / now.norm_v);  // times v
    const f64 sigma(s.sigma), keep(1 - s.constants.c_c), scale(s.constants.scale_c);
    const auto totals = sweep<PathTotals>(s, [&](int64_t j, auto, PathTotals& path) {
        const f64 D = load(&s.D[j]), v = load(&s.v[j]);
        const f64 gy = D * (load(s.sum_at(FOR_MEAN, j)) + along * v);  // sum w (x - m) / sigma
        store(&s.mean[j], load(&s.mean[j]) + sigma * gy);              // line 13, eta_m = 1
        const f64 p_c = keep * load(&s.p_c[j]) + scale * gy;           // line 12
        store(&s.p_c[j], p_c);
        path.y_v.add(p_c / D * v);
    });
    return totals.y_v.total / now.norm_v / now.r;
}

}  // namespace fmnes::FMNES_LEVEL
