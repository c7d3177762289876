// CR-FM-NES: tell. Step and equation numbers are those of the paper; the forms are those of
// fmnes/algorithms/cr_fm_nes.py and _vd_gaussian.py, which say why they are written so.
#pragma once

#include "sample.hpp"

namespace fmnes::FMNES_LEVEL {

constexpr int MOVEMENT = 1, STAGNATION = 2, CONVERGENCE = 3;

// Of one number, with what exp() leaves out: overflow, underflow and NaN.
FMNES_INLINE double exp1(double x) {
    if (!(x < 700)) return x * std::numeric_limits<double>::infinity();  // inf, or NaN
    double lanes[LANES];
    store(lanes, exp(f64(x < -700 ? -700 : x)));
    return lanes[0];
}

FMNES_INLINE double log1(double x) {
    double lanes[LANES];
    store(lanes, log(f64(x)));
    return lanes[0];
}

// What a pass over the draws multiplies them by, one number per pair.
struct Coefficients {
    double *odd_hat, *odd;      // of z in p_sigma, and in the mean
    double *even, *even_along;  // of z*z, and of z <z, vbar>: eta_B is in them
};

// Scalars that the formulas share.
struct Scalars {
    double norm_v, g, r;  // |v|, 1 + |v|^2, its root
    double aa;            // sum w a^2
    double total;         // sum w
    double G_sigma;
    const Rates* rates;   // for the number of feasible candidates
};

template <class T>
FMNES_INLINE T* sums_at(const CrFmNes<T>& s, int k, int64_t j) {
    return s.sums + j / GROUP * s.sums_stride + k * GROUP + j % GROUP;
}

template <class T>
int phase_of(const CrFmNes<T>& s, double norm_p_sigma) {
    return norm_p_sigma >= s.is.chi_n         ? MOVEMENT
           : norm_p_sigma >= 0.1 * s.is.chi_n ? STAGNATION
                                              : CONVERGENCE;
}

// Steps 3 to 6 for a given phase: distance weights in the movement phase, then -1/lambda.
template <class T>
Coefficients weigh(CrFmNes<T>& s, int phase, Scalars& now) {
    const int64_t half = s.half, lambda = s.is.popsize;
    double* c = s.coefficients;
    const Coefficients of{c, c + half, c + 2 * half, c + 3 * half};
    double farthest = 0, sum_w = 1;
    if (phase == MOVEMENT) {  // w_hat exp(alpha |z|), normalised; |z| less its largest
        for (int64_t i = 0; i < half; ++i)
            farthest = s.norm2[i] > farthest ? s.norm2[i] : farthest;
        sum_w = 0;
        for (int64_t i = 0; i < half; ++i) {
            const double far = std::sqrt(s.norm2[i]) - std::sqrt(farthest);
            of.odd[i] = exp1(now.rates->alpha * far);
            sum_w += (s.weights[i] + s.weights[i + half]) * of.odd[i];
        }
    }
    double eta_B = now.rates->eta_B;
    if (s.is.safe && phase != MOVEMENT && now.norm_v > s.is.long_v)
        eta_B *= s.is.long_v / now.norm_v;
    now.aa = now.G_sigma = 0;
    for (int64_t i = 0; i < half; ++i) {
        const double factor = phase == MOVEMENT ? of.odd[i] / sum_w : 1;
        const double up = s.weights[i], down = s.weights[i + half];
        of.odd_hat[i] = up - down;
        of.odd[i] = (up - down) * factor;
        const double even = (up + down) * factor - 2.0 / static_cast<double>(lambda);
        of.even[i] = eta_B * even;
        of.even_along[i] = of.even[i] * s.along[i];
        now.aa += of.even_along[i] * s.along[i];
        now.G_sigma += even * s.norm2[i];
    }
    now.G_sigma /= static_cast<double>(s.is.dim);
    return of;
}

// Sums over the draws of a group of coordinates: sum(odd_hat z), sum(odd z), sum(even a z) and
// sum(even z*z), two times eight lanes each. Without DISTANCE weights odd is odd_hat.
template <bool DISTANCE>
struct GroupSums {
    f64 hat[2] = {0, 0}, gz[2] = {0, 0}, az[2] = {0, 0}, zz[2] = {0, 0};

    FMNES_INLINE void add(const Coefficients& of, int64_t row, f64 z0, f64 z1) {
        const f64 odd_hat(of.odd_hat[row]), even(of.even[row]), even_along(of.even_along[row]);
        const f64 z[2] = {z0, z1};
        FMNES_UNROLL for (int part = 0; part < 2; ++part) {
            hat[part] = hat[part] + odd_hat * z[part];
            if constexpr (DISTANCE) gz[part] = gz[part] + f64(of.odd[row]) * z[part];
            az[part] = az[part] + even_along * z[part];
            zz[part] = zz[part] + even * (z[part] * z[part]);
        }
    }
};

// The first `made` rows, drawn again.
template <bool DISTANCE, class T>
GroupSums<DISTANCE> sum_made(const CrFmNes<T>& s, const Keys& keys, const Coefficients& of,
                             int64_t made, int64_t group) {
    GroupSums<DISTANCE> sums;
    const Group from(keys, s.at, group);
    in_lockstep(0, made, [&]<int ROWS>(int64_t row) FMNES_LAMBDA {
        f64 z0[ROWS], z1[ROWS];
        draw_group<ROWS>(s, from, row, group, z0, z1);
        for (int i = 0; i < ROWS; ++i) sums.add(of, row + i, z0[i], z1[i]);
    });
    return sums;
}

// The only pass over the draws. Draws that are not kept are made again; so are the first rows where
// an earlier pass has put its sums (`again`).
template <bool DISTANCE, class T>
FMNES_INLINE GroupSums<DISTANCE> sum_group(const CrFmNes<T>& s, const Keys& keys,
                                           const Coefficients& of, bool again, int64_t group) {
    const int64_t made = !s.is.store_draws ? s.half : again && s.overlaid ? SUMS : 0;
    GroupSums<DISTANCE> sums;
    if (made > 0) sums = sum_made<DISTANCE>(s, keys, of, made, group);
    for (int64_t row = made; row < s.half; ++row) {
        const T* z = s.z + (group * s.half + row) * GROUP;
        sums.add(of, row, load(z), load(z + LANES));
    }
    if constexpr (!DISTANCE) sums.gz[0] = sums.hat[0], sums.gz[1] = sums.hat[1];
    return sums;
}

// Returns |p_sigma|^2 and <sum(odd z), v>.
template <bool DISTANCE, class T>
Totals<2> sum_draws(CrFmNes<T>& s, const Coefficients& of, bool again) {
    const f64 keep(1 - s.is.c_sigma), scale(s.is.scale_sigma);
    const Keys keys(s.at.seed);
    const double ns = s.is.store_draws ? SUM_NS : SUM_NS + DRAW_NS;
    const double work = ns * static_cast<double>(s.half * s.is.dim);
    parallel_for(s.blocks, threads_for(work), [&](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block) {
            const int64_t first = block * BLOCK;
            const int64_t last = first + BLOCK < s.groups ? first + BLOCK : s.groups;
            f64 p2(0), gv(0);
            for (int64_t group = first; group < last; ++group) {
                const auto [hat, gz, az, zz] = sum_group<DISTANCE>(s, keys, of, again, group);
                for (int part = 0; part < 2; ++part) {
                    const int64_t j = group * GROUP + part * LANES;
                    store(sums_at(s, 0, j), gz[part]);
                    store(sums_at(s, 1, j), az[part]);
                    store(sums_at(s, 2, j), zz[part]);
                    f64 p = load(s.p_sigma + j);
                    if (!again) store(s.p_sigma + j, p = rounded<T>(keep * p + scale * hat[part]));
                    p2 = p2 + p * p;
                    gv = gv + gz[part] * load(s.v + j);
                }
            }
            s.partial[block * s.partial_width] = sum(p2);
            s.partial[block * s.partial_width + 1] = sum(gv);
        }
    });
    Totals<2> all{{0, 0}};
    for (int64_t block = 0; block < s.blocks; ++block)
        for (int k = 0; k < 2; ++k) all.of[k] += s.partial[block * s.partial_width + k];
    return all;
}

template <class T>
Totals<2> sum_draws(CrFmNes<T>& s, int phase, const Coefficients& of, bool again) {
    return phase == MOVEMENT ? sum_draws<true>(s, of, again) : sum_draws<false>(s, of, again);
}

// Steps 7 and 8: the mean, the path p_c, and the path as a sample: returns its a = <z, vbar>.
template <class T>
double move_mean(CrFmNes<T>& s, const Scalars& now, double gz_v) {
    const f64 along((now.r - 1) * (gz_v / now.norm_v) / now.norm_v);  // times v
    const f64 sigma(s.sigma), keep(1 - s.is.c_c), scale(s.is.scale_c);
    const auto y_v = sweep<1, 0, 0>(s, [&](int64_t j, auto, f64* acc) {
        const f64 D = load(s.D + j), v = load(s.v + j);
        const f64 gy = D * (load(sums_at(s, 0, j)) + along * v);
        store(s.mean + j, load(s.mean + j) + sigma * gy);
        const f64 p_c = keep * load(s.p_c + j) + scale * gy;
        store(s.p_c + j, p_c);
        acc[0] = acc[0] + p_c / D * v;
    });
    return y_v.of[0] / now.norm_v / now.r;
}

}  // namespace fmnes::FMNES_LEVEL
