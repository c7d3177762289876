// The method auto: the first part of tell. The weights (b), and the pass over the draws, which
// gives the sums of (c), the path and the figures of (h).
#pragma once

#include "auto_rates.hpp"
#include "auto_sweep.hpp"
#include "update.hpp"

namespace fmnes::FMNES_LEVEL {

// Scalars of one generation that the formulas share.
struct AutoNow {
    const Rates& rates;  // for the number of feasible candidates
    double G_sigma = 0;
    double mean_g = 0;   // of the gradient g of log D
    double w_norm2 = 0;  // sum(w^2)
    double q_norm2 = 0;  // |q|^2 of the path
    double r_D = 0;      // (h)
    double of_mean = 1;  // the learning rate of the mean (l)
    double fraction = 1;
    double sum_ln_D = 0;
};

// The weights of CR-FM-NES for a phase (see weigh() in update.hpp), the weights w of the shape and
// those of the mean (b), and all products of sums with directions: those of draws are known.
template <class T>
void weigh(AutoSearch<T>& s, int phase, AutoNow& now) {
    const int64_t half = s.half, all = s.directions(), width = OF_ALONG + all;
    const double d = static_cast<double>(s.dim), lambda = static_cast<double>(s.popsize);
    double farthest = 0, sum_w = 1;
    if (phase == MOVEMENT) {
        for (const double norm2 : s.norm2) farthest = norm2 > farthest ? norm2 : farthest;
        sum_w = 0;
        for (int64_t i = 0; i < half; ++i) {
            s.w[i] = exp1(now.rates.alpha * (std::sqrt(s.norm2[i]) - std::sqrt(farthest)));
            sum_w += (s.weights[i] + s.weights[half + i]) * s.w[i];
        }
    }
    // A pair at opposite ends has the weight 0, and not what rounding leaves of it with ties.
    const double rounding =
        4 * std::sqrt(lambda) * std::numeric_limits<T>::epsilon() * s.scores[0];
    constexpr double TINY = std::numeric_limits<T>::min();
    now.G_sigma = now.mean_g = now.w_norm2 = 0;
    for (int64_t c = 0; c < all; ++c) s.gz_along[c] = s.gm_along[c] = 0;
    for (int64_t i = 0; i < half; ++i) {
        const double factor = phase == MOVEMENT ? s.w[i] / sum_w : 1;
        const double up = s.weights[i], down = s.weights[half + i];
        const double even = (up + down) * factor - 2 / lambda;
        now.G_sigma += even * s.norm2[i];
        double w = s.by_score[i] + s.by_score[half + i];
        w = (w < 0 ? -w : w) > rounding ? w : 0;
        s.w[i] = w = w * d / (s.norm2[i] > TINY ? s.norm2[i] : TINY);
        now.w_norm2 += w * w;
        double* row = &s.by_row[i * width];
        row[OF_HAT] = up - down;
        row[OF_GZ] = (up - down) * factor;
        row[OF_GM] = (s.by_score[i] - s.by_score[half + i]) + (row[OF_GZ] - row[OF_HAT]);
        row[OF_FRESH] = w * row[OF_GZ];
        double beside = s.norm2[i];
        for (int64_t c = 0; c < all; ++c) {
            const double along = s.along[i * all + c];
            row[OF_ALONG + c] = w * along;
            s.gz_along[c] += row[OF_GZ] * along;
            s.gm_along[c] += row[OF_GM] * along;
            if (c >= SCOUTS) beside -= along * along;
        }
        now.mean_g += w * beside / d;
    }
    now.G_sigma /= d;
    for (int64_t b = 0; b < all; ++b) {  // M = V^T G V (c), and the same for scouts
        double* out = b < SCOUTS ? s.V_scouts[b] : s.M[b - SCOUTS];
        for (int64_t c = SCOUTS; c < all; ++c) {
            double total = 0;
            for (int64_t i = 0; i < half; ++i)
                total += s.by_row[i * width + OF_ALONG + b] * s.along[i * all + c];
            out[c - SCOUTS] = total;
        }
    }
}

// Sums over the draws of a group by N weights from `from` on, and of z*z by w: two times eight
// lanes each. The first `count` rows are in `drawn`, as sums have been written over them.
template <int N, bool SQUARES, class T>
FMNES_INLINE void sum_rows(const AutoSearch<T>& s, const double* drawn, int64_t count,
                           int64_t group, int64_t from, double* out, double* squares) {
    const int64_t width = OF_ALONG + s.directions();
    f64 sums[N][2], zz[2] = {0, 0};
    for (int n = 0; n < N; ++n) sums[n][0] = sums[n][1] = f64(0);
    const auto add = [&](int64_t row, f64 z0, f64 z1) FMNES_LAMBDA {
        const double* by_row = &s.by_row[row * width + from];
        FMNES_UNROLL for (int n = 0; n < N; ++n) {
            const f64 weight(by_row[n]);
            sums[n][0] = sums[n][0] + weight * z0, sums[n][1] = sums[n][1] + weight * z1;
        }
        if constexpr (SQUARES) {
            const f64 weight(s.w[row]);
            zz[0] = zz[0] + weight * (z0 * z0), zz[1] = zz[1] + weight * (z1 * z1);
        }
    };
    for (int64_t row = 0; row < count; ++row)
        add(row, load(drawn + row * GROUP), load(drawn + row * GROUP + LANES));
    for (int64_t row = count; row < s.half; ++row)
        add(row, load(s.z_at(group, row)), load(s.z_at(group, row) + LANES));
    for (int n = 0; n < N; ++n)
        store(out + n * GROUP, sums[n][0]), store(out + n * GROUP + LANES, sums[n][1]);
    if constexpr (SQUARES) store(squares, zz[0]), store(squares + LANES, zz[1]);
}

// All sums of a group, into `out`: those by weight number n at n * GROUP, then those of z*z.
template <bool DISTANCE, class T>
FMNES_INLINE void sum_group(const AutoSearch<T>& s, const Keys& keys, bool again, int64_t group,
                            double* out) {
    const int64_t width = OF_ALONG + s.directions();
    double* squares = out + width * GROUP;
    double* drawn = squares + GROUP;  // rows that an earlier pass has overwritten
    int64_t count = 0;
    if (again) {
        count = slots(s.k) < s.half ? slots(s.k) : s.half;
        const Group from(keys, s.address, group);
        for (int64_t row = 0; row < count; ++row) {
            f64 z0[1], z1[1];
            draw_group<1>(s, from, row, group, z0, z1);
            store(drawn + row * GROUP, z0[0]), store(drawn + row * GROUP + LANES, z1[0]);
        }
    }
    constexpr int64_t FIRST = DISTANCE ? OF_GZ : OF_HAT;
    sum_rows<4, true>(s, drawn, count, group, FIRST, out + FIRST * GROUP, squares);
    int64_t n = FIRST + 4;
    for (; n + 4 <= width; n += 4)
        sum_rows<4, false>(s, drawn, count, group, n, out + n * GROUP, squares);
    double* rest = out + n * GROUP;
    if (width - n == 3) sum_rows<3, false>(s, drawn, count, group, n, rest, squares);
    if (width - n == 2) sum_rows<2, false>(s, drawn, count, group, n, rest, squares);
    if (width - n == 1) sum_rows<1, false>(s, drawn, count, group, n, rest, squares);
    if constexpr (!DISTANCE)
        for (int64_t i = 0; i < GROUP; ++i) out[i] = out[OF_HAT * GROUP + i];
}

struct AutoSums {
    Sum p_sigma2, path2;    // |p_sigma|^2, |q|^2
    Sum signal, noise;      // <h, E> and |h|^2 (h)
    Sum of_mean, of_mean2;  // <g, E_m> and |g|^2 (k)

    template <class F>
    FMNES_INLINE void each(F f) {
        f(p_sigma2), f(path2), f(signal), f(noise), f(of_mean), f(of_mean2);
    }
};

// The gradient g = diag(Q G Q) of log D (c), from sum(w z*z) and the sums A_c = sum(w <z, V_c> z):
// g = zz - sum_c V_c (2 A_c - (V M)_c).
template <class T>
FMNES_INLINE f64 gradient_of_log_D(AutoSearch<T>& s, int64_t j, f64 g, const double* A) {
    for (int64_t c = 0; c < s.k; ++c) {
        const f64 V = load(s.axis(c, j));
        f64 t = f64(2) * load(A + c * GROUP) - f64(s.M[c][c]) * V;
        for (int64_t b = 0; b < c; ++b) t = t - f64(2 * s.M[c][b]) * load(s.axis(b, j));
        g = g - V * t;
    }
    return g;
}

// The only pass over the draws: p_sigma, the sums, the gradient of log D, and the path as a sample,
// q = (1 - c_c) R^(-1/2) p_c / D + scale_c sum(w z), for which D R^(1/2) cancels.
template <bool DISTANCE, class T>
AutoSums sum_draws(AutoSearch<T>& s, const AutoNow& now, bool again) {
    const AutoConstants& constant = s.constants;
    const f64 keep(1 - constant.c_sigma), scale(constant.scale_sigma);
    const f64 keep_c(1 - constant.c_c), scale_c(constant.scale_c), mean_g(now.mean_g);
    const f64 b(m_window(s));
    const Keys keys(s.address.seed);
    const int64_t width = OF_ALONG + s.directions();
    const double ns = SUM_NS + 0.1 * static_cast<double>(width);
    parallel_for(s.blocks, threads_for(ns * static_cast<double>(s.half * s.dim)),
                 [&](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block) {
            const int64_t first = block * BLOCK;
            const int64_t last = first + BLOCK < s.groups ? first + BLOCK : s.groups;
            double* out = s.group_of(block);
            AutoSums totals;
            for (int64_t group = first; group < last; ++group) {
                sum_group<DISTANCE>(s, keys, again, group, out);
                for (int64_t h = 0; h < GROUP; h += LANES) {
                    const int64_t j = group * GROUP + h;
                    const u64 live = live_at(s, j);
                    const auto of = [&](int64_t n) { return load(out + n * GROUP + h); };
                    f64 y = load(&s.p_c[j]) / load(&s.D[j]);
                    for (int64_t c = 0; c < s.k; ++c)
                        y = y + f64(s.tilt[c]) * load(s.axis(c, j));
                    const f64 q = keep_c * y + scale_c * of(OF_GZ);
                    totals.path2.add(q * q);
                    const f64 g =
                        gradient_of_log_D(s, j, of(width), out + (OF_ALONG + SCOUTS) * GROUP + h);
                    const f64 steady = select(live, g - mean_g, f64(0));
                    totals.signal.add(steady * load(&s.D_gradient[j]));
                    totals.noise.add(steady * steady);
                    f64 p = load(&s.p_sigma[j]);
                    if (!again) {
                        store(&s.p_sigma[j], p = rounded<T>(keep * p + scale * of(OF_HAT)));
                        f64 m = of(OF_GM);  // less what distance weights add
                        if constexpr (DISTANCE) m = m - (of(OF_GZ) - of(OF_HAT));
                        const f64 E = load(&s.m_gradient[j]);
                        totals.of_mean.add(m * E), totals.of_mean2.add(m * m);
                        store(&s.m_gradient[j], E + b * (m - E));
                    }
                    totals.p_sigma2.add(p * p);
                    store(s.slot(GZ, j), of(OF_GZ));
                    store(s.slot(GM, j), of(OF_GM));
                    store(s.slot(FRESH, j), of(OF_FRESH));
                    store(s.slot(PATH, j), q);
                    store(s.slot(LOG_D, j), g);
                    for (int64_t c = 0; c < s.directions(); ++c)
                        store(s.slot(ALONG + c, j), of(OF_ALONG + c));
                }
            }
            keep_block(s, block, totals);
        }
    });
    return all_blocks<AutoSums>(s);
}

// The phase, and all sums for it. As in CR-FM-NES: they are computed for the previous phase, and
// again if it was another.
template <class T>
AutoSums sum_for_phase(AutoSearch<T>& s, AutoNow& now) {
    for (int64_t c = 0; c < s.k; ++c)  // R^(-1/2) - I
        s.tilt[c] = (1 / std::sqrt(s.S[c]) - 1) * s.path_along[SCOUTS + c];
    const auto sums_for = [&](int phase, bool again) {
        weigh(s, phase, now);
        return phase == MOVEMENT ? sum_draws<true>(s, now, again) : sum_draws<false>(s, now, again);
    };
    const int guess = s.phase;
    AutoSums sums = sums_for(guess, false);
    s.phase = phase_of(s, std::sqrt(sums.p_sigma2.total));
    if ((s.phase == MOVEMENT) != (guess == MOVEMENT)) {
        const AutoSums first = sums;
        sums = sums_for(s.phase, true);
        sums.of_mean = first.of_mean, sums.of_mean2 = first.of_mean2;  // the same in all phases
    }
    return sums;
}

}  // namespace fmnes::FMNES_LEVEL
