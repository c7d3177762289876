// The method auto: tell, from the parts in auto_sums.hpp, auto_step.hpp and auto_scouts.hpp, and
// what a generation shows.
#pragma once

#include "auto_scouts.hpp"

namespace fmnes::FMNES_LEVEL {

// How fast D learns (h), and the evidence for axes (i), from the scouts before they turn.
template <class T>
void judge(AutoSearch<T>& s, AutoNow& now, const AutoSums& sums) {
    const AutoConstants& constant = s.constants;
    const double d = static_cast<double>(s.dim), window = constant.D_window;
    const double least = constant.least_D_rate;
    s.D_signal = rounded1<T>(s.D_signal + window * (sums.signal.total - s.D_signal));
    s.D_noise = rounded1<T>(s.D_noise + window * (sums.noise.total - s.D_noise));
    const double clear = (d * s.D_signal / s.D_noise - constant.quiet) / constant.clear;
    now.r_D = within(clear, least, 1);
    now.q_norm2 = sums.path2.total;
    for (int64_t i = 0; i < SCOUTS; ++i)
        s.q_along[i] = (1 - constant.c_c) * s.path_along[i] + constant.scale_c * s.gz_along[i];
    double shorter = 0;
    for (int64_t row = 0; row < s.half; ++row) {
        const double along = s.along[row * s.directions() + 1];
        shorter -= s.w[row] * along * along;
    }
    const double before = s.path_along[0], sign = before > 0 ? 1 : before < 0 ? -1 : 0;
    const double noise2 = larger(2 * now.w_norm2, std::numeric_limits<T>::min());
    const double found[SCOUTS] = {sign * std::sqrt(constant.mu_eff) * s.gz_along[0],
                                  shorter / std::sqrt(noise2)};
    const double busy = within((now.r_D - least) / (1 - least), 0, 1);
    for (int64_t i = 0; i < SCOUTS; ++i) {
        const double evidence = s.evidence[i] + (1 - busy) * found[i] - constant.drift;
        s.evidence[i] = rounded1<T>(evidence > 0 ? evidence : 0);
    }
}

struct ScoutTotals {
    Largest W2[SCOUTS];

    template <class F>
    FMNES_INLINE void each(F f) {
        f(W2[0]), f(W2[1]);
    }
};

// A scout with enough evidence becomes an axis: one at a time, as they are not at right angles to
// each other. One long axis is always there. Returns whether it was so; then the scouts that have
// to start again have done so.
template <class T>
bool wake(AutoSearch<T>& s) {
    const AutoConstants& constant = s.constants;
    const double scale[SCOUTS] = {scale_of_scout(s, 0), scale_of_scout(s, 1)};
    const bool alone = s.k == 0 || !(s.S[0] > 1);
    const bool is_long = (s.evidence[0] > constant.wake || alone) && scale[0] > 0;
    const bool is_short = !is_long && s.evidence[1] > constant.wake && scale[1] > 0;
    if (!is_long && !is_short) return false;
    const auto found = each_part<ScoutTotals>(s, 0, 0, [&](int64_t first, int64_t last,
                                                               Part<ScoutTotals>& part) {
        each_eight(s, first, last, [&](int64_t j, u64) {
            f64 W[SCOUTS];
            straighten(s, j, scale, W);
            for (int64_t i = 0; i < SCOUTS; ++i) part.totals.W2[i].take(W[i] * W[i]);
        });
    });
    const int64_t who = is_long ? 0 : 1;
    if (s.k < s.room) {
        const double S = is_long ? constant.new_S : 1 / constant.new_S;
        int64_t at = 0;
        while (at < s.k && s.S[at] >= S) ++at;
        for (int64_t c = s.k; c > at; --c) s.S[c] = s.S[c - 1];
        s.S[at] = S;
        for (int64_t c = 0; c <= s.k; ++c)
            s.sources[c] = c < at ? SCOUTS + c : c == at ? who : SCOUTS + c - 1;
        rearrange(s, s.sources.data(), s.k + 1);
    }
    for (int64_t i = 0; i < SCOUTS; ++i)
        if (i == who || found.W2[i].total > constant.aligned || scale[i] == 0) restart_scout(s, i);
    look_at_scouts(s);
    return true;
}

struct AutoShown {
    Sum not_finite;  // 0, or NaN if a number of the mean or of the deviations is not finite
    Largest D_max;
    Smallest D_min;
    Largest deviation_max;
    Smallest deviation_min;
    Largest mean_max, excess_max;  // excess: of a deviation over what counts as converged
    ScoutTotals scouts;

    template <class F>
    FMNES_INLINE void each(F f) {
        f(not_finite), f(D_max), f(D_min), f(deviation_max), f(deviation_min);
        f(mean_max), f(excess_max), scouts.each(f);
    }
};

template <class T>
FMNES_INLINE f64 deviation_at(const AutoSearch<T>& s, int64_t j, f64 D) {
    f64 R(1);
    for (int64_t c = 0; c < s.k; ++c) {
        const f64 V = load(s.direction(SCOUTS + c, j));
        R = R + f64(s.S[c] - 1) * (V * V);
    }
    return f64(s.sigma) * D * sqrt(R);
}

// Divide D, straighten the scouts, and look at the state: the fields of `shown` that it determines,
// and the products of the path with the directions. With divisor 0 nothing is written.
template <class T>
AutoShown finish(AutoSearch<T>& s, double divisor) {
    const bool write = divisor != 0;
    const f64 inverse(1 / divisor), tolx(s.tolx), eps(std::numeric_limits<T>::epsilon());
    const double scale[SCOUTS] = {scale_of_scout(s, 0), scale_of_scout(s, 1)};
    const f64 initial_value(s.initial_value);
    const T* initial = s.alike ? nullptr : s.initial.data();
    const auto body = [&](int64_t first, int64_t last, Part<AutoShown>& part) {
        AutoShown& totals = part.totals;
        for (int64_t i = 0; i < (last - first) * GROUP; ++i) part.group[i] = 0;
        each_eight(s, first, last, [&](int64_t j, u64 live) {
            f64 D = load(&s.D[j]), W[SCOUTS] = {};
            if (write) {
                store(&s.D[j], D = select(live, rounded<T>(D * inverse), f64(1)));
                straighten(s, j, scale, W);
                for (int64_t i = 0; i < SCOUTS; ++i) totals.scouts.W2[i].take(W[i] * W[i]);
            }
            store(part.group + (j - first * GROUP), load(&s.p_c[j]) / D);
            const f64 deviation = deviation_at(s, j, D), m = abs(load(&s.mean[j]));
            const f64 least = tolx * (initial ? load(initial + j) : initial_value);
            totals.not_finite.add(m - m), totals.not_finite.add(deviation - deviation);
            totals.D_max.take(D, live), totals.D_min.take(D, live);
            totals.deviation_max.take(deviation, live), totals.deviation_min.take(deviation, live);
            totals.mean_max.take(m, live);
            totals.excess_max.take(deviation - max(least, eps * m), live);
        });
        const auto path = [&](int64_t j) { return load(part.group + (j - first * GROUP)); };
        for (int64_t c = 0; c < s.directions(); ++c) {
            const auto direction = [&](int64_t j) { return load(s.direction(c, j)); };
            part.sums[c] += sum_over(first, last, path, direction);
        }
    };
    const auto found = each_part<AutoShown>(s, s.directions(), 0, body);
    for (int64_t c = 0; c < s.directions(); ++c) s.path_along[c] = s.totals[c];
    constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
    const double spoilt = found.not_finite.total == 0 ? 0 : NaN;
    double longest = s.k > 0 ? s.S[0] : 1, shortest = s.k > 0 ? s.S[s.k - 1] : 1;
    if (s.k < s.room) longest = larger(longest, 1), shortest = shortest < 1 ? shortest : 1;
    s.shown.sigma = s.sigma;
    s.shown.axis_ratio = found.D_max.total / found.D_min.total * std::sqrt(longest / shortest);
    s.shown.norm_v = NaN;
    s.shown.phase = s.phase;
    s.shown.deviation_min = found.deviation_min.total;
    s.shown.deviation_max = found.deviation_max.total + spoilt;
    s.shown.mean_max = found.mean_max.total + spoilt;
    s.shown.shrunk = found.excess_max.total <= 0;
    return found;
}

// The state after the generation, from ranked values.
template <class T>
void move(AutoSearch<T>& s, const double* f) {
    rank_weights(s, f);
    AutoNow now{.rates = s.rates[s.shown.feasible]};
    const AutoSums sums = sum_for_phase(s, now);
    judge(s, now, sums);
    const RateFactors factors =
        next_rates(s, sums.of_mean.total, sums.of_mean2.total, now.G_sigma);
    now.of_mean = factors.mean;
    const double a_max = step_of_D(s, now);
    turn(s, now, step_within(s, now, a_max));
    set_axes(s, step_out(s));
    hand_over(s, now);
    drop_axes(s);
    const bool woken = wake(s);

    const double eta_sigma = s.phase == MOVEMENT     ? now.rates.eta_movement
                             : s.phase == STAGNATION ? now.rates.eta_stagnation
                                                     : now.rates.eta_convergence;
    s.sigma = rounded1<T>(s.sigma * exp1(factors.sigma * eta_sigma * now.G_sigma / 2) *
                              factors.widening);
    double ln_det = now.sum_ln_D;
    for (int64_t c = 0; c < s.k; ++c) ln_det += log1(s.S[c]) / 2;
    const AutoShown found = finish(s, exp1(ln_det / static_cast<double>(s.dim)));
    bool again = false;
    for (int64_t i = 0; i < SCOUTS && !woken; ++i) {
        const double W2 = found.scouts.W2[i].total;
        if (W2 > 0 && !(W2 > s.constants.aligned)) continue;
        restart_scout(s, i);
        again = true;
    }
    if (again) look_at_scouts(s), finish(s, 1);
}

// The whole of tell: the values of all candidates move everything on by one generation.
template <class T>
void tell(AutoSearch<T>& s, const double* f, double best_so_far) {
    if (!s.drawn) draw_all(s);
    rank(s, f);
    if (s.shown.least < best_so_far) ask(s, s.best.data(), 0, s.order[0], s.order[0] + 1);
    if (!s.shown.flat) move(s, f);  // equal values carry no information
    s.drawn = false, ++s.address.generation;
}

// After a new state: its phase, and what it shows.
template <class T>
void look(AutoSearch<T>& s) {
    const auto found = sweep<LengthTotals>(s, [&](int64_t j, auto, LengthTotals& p_sigma) {
        const f64 p = load(&s.p_sigma[j]);
        p_sigma.norm2.add(p * p);
    });
    s.phase = phase_of(s, std::sqrt(found.norm2.total));
    finish(s, 0);
}

// The standard deviation of each coordinate, `groups` whole groups of them.
template <class T>
void deviations(AutoSearch<T>& s, T* out) {
    sweep<Nothing>(s, [&](int64_t j, auto, Nothing&) {
        store(out + j, deviation_at(s, j, load(&s.D[j])));
    });
}

}  // namespace fmnes::FMNES_LEVEL
