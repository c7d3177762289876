// CR-FM-NES: the rest of tell. The natural-gradient step of D and v (Algorithm 1, lines 14 to 17),
// sigma (lines 18 and 19), and what a generation shows.
//
// "Step 1" to "step 5" are those of section III-B, in the form of natural_gradient() in
// fmnes/algorithms/_vd_gaussian.py; one sweep computes each sum that they need.
#pragma once

#include "update.hpp"

namespace fmnes::FMNES_LEVEL {

// Constants of the Fisher matrix (steps 3 and 4). They depend on |v| and on the largest entry of
// vv = vbar*vbar.
struct Fisher {
    double alpha;        // alpha_vd
    double rest;         // 1 - alpha^2
    double kappa;        // b + 2 alpha^2: H = 2 - kappa vv
    double b;
    double largest;      // of vv
    double H_min;
};

template <class T>
Fisher fisher_matrix(const CrFmNes<T>& s, const Scalars& now) {
    Fisher F;
    F.largest = s.largest_v2 / s.norm_v2;
    F.kappa = (2 - 1 / now.r) / F.largest;
    if (!(F.kappa < 4)) F.kappa = 4;
    F.rest = (4 - F.kappa) / (now.g + 1) * (now.g / (now.g + 1));
    F.alpha = std::sqrt(1 - F.rest);
    F.b = F.kappa - 2 + 2 * F.rest;
    F.H_min = 2 - 4 * F.largest > 1 / now.r ? 2 - 4 * F.largest : 1 / now.r;
    return F;
}

// 1 / H, in a form in which rounding cannot make H zero.
FMNES_INLINE f64 inverse_H(const Fisher& F, f64 vv) {
    const f64 share = vv * f64(1 / F.largest);
    return f64(1) / (f64(2) * (f64(1) - share) + share * f64(F.H_min));
}

// The path p_c as one more sample, of weight c_1 (lines 14 and 15).
struct PathSample {
    double c_1;  // the weights of the candidates sum to 0, so that c_1 is the sum of all weights
    double a;    // <z, vbar>
    double aa;   // sum(w a^2) with the path
};

struct GradientTotals {
    Sum vv_s;              // sum(vv s / H)
    Sum half_denominator;  // of Sherman and Morrison: half of 1 + b <vv, vv / H>

    template <class F>
    FMNES_INLINE void each(F f) {
        f(vv_s), f(half_denominator);
    }
};

// Steps 1 to 3 summed over the samples: s before step 4 replaces sum(w z*z), and sum(w a z_perp),
// z_perp = z - a vbar, replaces sum(w a z).
template <class T>
GradientTotals gradient_of_D(CrFmNes<T>& s, const Scalars& now, const Fisher& F,
                             const PathSample& path) {
    const double factor = (4 - F.kappa) * now.r / ((now.g + 1) * (1 + F.alpha)) - 2;
    const f64 unit(1 / now.norm_v), stretched((now.r - 1) * path.a);
    const f64 a(path.a), c_1(path.c_1), c_1_a(path.c_1 * path.a), aa(now.aa), with_az(factor);
    const f64 with_vv(F.alpha * (path.aa - path.c_1)), rest(F.rest);
    return sweep<GradientTotals>(s, [&](int64_t j, auto, GradientTotals& totals) {
        const f64 vbar = load(&s.v[j]) * unit, vv = vbar * vbar;
        const f64 z = load(&s.p_c[j]) / load(&s.D[j]) - stretched * vbar;
        const f64 z_perp = z - a * vbar;
        const f64 az = (load(s.sum_at(FOR_V, j)) - aa * vbar) + c_1_a * z_perp;
        const f64 zz = load(s.sum_at(FOR_D, j)) + c_1 * z * z;
        const f64 step = (zz - c_1) + with_az * vbar * az - with_vv * vv;
        const f64 vv_H = vv * inverse_H(F, vv);
        totals.vv_s.add(vv_H * step);
        totals.half_denominator.add(vv_H * (max(f64(1) - vv, f64(0)) + rest * vv));
        store(s.sum_at(FOR_V, j), az);
        store(s.sum_at(FOR_D, j), step);
    });
}

struct StepTotals {
    Sum vv_s;         // <vv, s>
    Largest s_max;    // largest |s_j|

    template <class F>
    FMNES_INLINE void each(F f) {
        f(vv_s), f(s_max);
    }
};

// Step 4: s <- (diag(H) + b vv vv^T)^(-1) s, by Sherman and Morrison. Eq. 26: D changes by D s.
template <class T>
StepTotals solve_D(CrFmNes<T>& s, const Scalars& now, const Fisher& F,
                   const GradientTotals& sums) {
    const f64 unit(1 / now.norm_v);
    const f64 common(F.b / (2 * sums.half_denominator.total) * sums.vv_s.total);
    return sweep<StepTotals>(s, [&](int64_t j, auto live, StepTotals& totals) {
        const f64 vbar = load(&s.v[j]) * unit, vv = vbar * vbar, inverse = inverse_H(F, vv);
        f64 step = load(s.sum_at(FOR_D, j)) * inverse - common * (vv * inverse);
        step = select(live, step, f64(0));
        totals.vv_s.add(vv * step);
        totals.s_max.take(abs(step));
        store(s.sum_at(FOR_D, j), step);
    });
}

// Steps 2 and 5, and eq. 25: the step t / |v| of v (paper), or that of u = D v divided by D (safe).
// Returns its squared length.
template <class T>
double gradient_of_v(CrFmNes<T>& s, const Scalars& now, const Fisher& F, const PathSample& path,
                     double vv_s) {
    const double with_s = s.safe ? F.kappa * (now.g / (s.norm_v2 + F.alpha * (now.g + 1)))
                                 : F.alpha * (now.g + 1);
    const f64 unit(1 / now.norm_v), r(now.r), twist(with_s);
    const f64 along(0.5 * now.g * (path.aa - path.c_1) + F.alpha * vv_s);
    const auto totals = sweep<LengthTotals>(s, [&](int64_t j, auto, LengthTotals& length) {
        const f64 vbar = load(&s.v[j]) * unit;
        const f64 az = load(s.sum_at(FOR_V, j)), step = load(s.sum_at(FOR_D, j));
        const f64 t = ((r * az + along * vbar) - twist * vbar * step) * unit;
        length.norm2.add(t * t);
        store(s.sum_at(FOR_V, j), t);
    });
    return totals.norm2.total;
}

// ln D = exponent ln 2 + ln mantissa: exponents are added, mantissas multiplied.
struct ShapeTotals {
    Sum norm_v2;          // |v|^2
    Sum exponents_D;
    SumOfLogs mantissas_D;

    template <class F>
    FMNES_INLINE void each(F f) {
        f(norm_v2), f(exponents_D), f(mantissas_D);
    }

    double sum_ln_D() const { return mantissas_D.total + exponents_D.total * LN2; }
};

// D and v after a fraction of the step (lines 14 and 15, eqs. 23 and 24).
template <class T>
ShapeTotals step(CrFmNes<T>& s, double fraction) {
    const f64 share(fraction), D_max(s.constants.D_limit), D_min(1 / s.constants.D_limit);
    const f64 nan(std::numeric_limits<double>::quiet_NaN());
    const bool safe = s.safe;
    return sweep<ShapeTotals>(s, [&](int64_t j, auto, ShapeTotals& totals) {
        const f64 growth = f64(1) + share * load(s.sum_at(FOR_D, j));
        f64 D = load(&s.D[j]) * growth, v = load(&s.v[j]) + share * load(s.sum_at(FOR_V, j));
        if (safe) D = min(max(D, D_min), D_max), v = v / growth;
        store(&s.D[j], D);
        store(&s.v[j], v);
        totals.norm_v2.add(v * v);
        totals.exponents_D.add(select(f64(0) < D, exponent(D), nan));  // no ln D for D <= 0
        totals.mantissas_D.add_log_of(mantissa(D));
    });
}

// What keeps det(D (I + v v^T) D) = 1, and the length of v in its limits.
struct Rescale {
    double D_divisor = 1, v_factor = 1;
};

// Lines 14 to 17, except for the rescaling.
template <class T>
Rescale move_shape(CrFmNes<T>& s, const Scalars& now, double path_a) {
    const double c_1 = now.rates.c_1;
    const PathSample path{c_1, path_a, now.aa + c_1 * path_a * path_a};
    const Fisher F = fisher_matrix(s, now);
    const GradientTotals sums = gradient_of_D(s, now, F, path);
    const StepTotals solved = solve_D(s, now, F, sums);
    const double norm2 = gradient_of_v(s, now, F, path, solved.vv_s.total);
    double fraction = 1;
    if (s.safe) {  // a step takes away at most `largest_step` of any D_j, or of |v|
        const double of_v = std::sqrt(norm2) / now.norm_v, of_D = solved.s_max.total;
        const double size = (of_v > of_D ? of_v : of_D) / s.constants.largest_step;
        fraction = size > 1 ? 1 / size : 1;
    }
    const ShapeTotals moved = step(s, fraction);
    const double norm_v = std::sqrt(moved.norm_v2.total);
    Rescale rescale;
    if (s.safe && norm_v < s.constants.v_min) rescale.v_factor = s.constants.v_min / norm_v;
    if (s.safe && norm_v > s.constants.v_max) rescale.v_factor = s.constants.v_max / norm_v;
    const double norm_v2 = moved.norm_v2.total * (rescale.v_factor * rescale.v_factor);
    const double d = static_cast<double>(s.dim);  // line 16: det(...)^(1/2d), by logarithms
    rescale.D_divisor = exp1(moved.sum_ln_D() / d + log1(1 + norm_v2) / (2 * d));
    return rescale;
}

struct ShownTotals {
    Sum not_finite;  // 0, or NaN if a number of the mean or of the deviations is not finite
    Sum norm_v2;
    Largest v2_max, D_max;
    Smallest D_min;
    Largest deviation_max;
    Smallest deviation_min;
    Largest mean_max, excess_max;  // excess: of a deviation over what counts as converged

    template <class F>
    FMNES_INLINE void each(F f) {
        f(not_finite), f(norm_v2), f(v2_max), f(D_max), f(D_min);
        f(deviation_max), f(deviation_min), f(mean_max), f(excess_max);
    }
};

// Rescale D and v (line 17), and fill the fields of `shown` that the state determines.
template <class T>
void finish(CrFmNes<T>& s, const Rescale& rescale) {
    const bool write = rescale.D_divisor != 1 || rescale.v_factor != 1;
    const f64 inverse(1 / rescale.D_divisor), factor(rescale.v_factor), sigma(s.sigma);
    const f64 tolx(s.tolx), eps(std::numeric_limits<T>::epsilon());
    const f64 initial_value(s.initial_value);
    const T* initial = s.alike ? nullptr : s.initial.data();
    const auto found = sweep<ShownTotals>(s, [&](int64_t j, auto live, ShownTotals& totals) {
        f64 D = load(&s.D[j]), v = load(&s.v[j]);
        if (write) {
            D = select(live, rounded<T>(D * inverse), f64(1)), v = rounded<T>(v * factor);
            store(&s.D[j], D), store(&s.v[j], v);
        }
        const f64 deviation = sigma * D * sqrt(f64(1) + v * v), m = abs(load(&s.mean[j]));
        const f64 converged = max(tolx * (initial ? load(initial + j) : initial_value), eps * m);
        totals.not_finite.add(m - m), totals.not_finite.add(deviation - deviation);
        totals.norm_v2.add(v * v);
        totals.v2_max.take(v * v);
        totals.D_max.take(D, live);
        totals.D_min.take(D, live);
        totals.deviation_max.take(deviation, live);
        totals.deviation_min.take(deviation, live);
        totals.mean_max.take(m, live);
        totals.excess_max.take(deviation - converged, live);
    });
    s.norm_v2 = found.norm_v2.total, s.largest_v2 = found.v2_max.total;
    constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
    const double spoilt = found.not_finite.total == 0 ? 0 : NaN;
    s.shown.sigma = s.sigma;
    s.shown.axis_ratio = found.D_max.total / found.D_min.total * std::sqrt(1 + s.norm_v2);
    s.shown.norm_v = std::sqrt(s.norm_v2);
    s.shown.phase = s.phase;
    s.shown.deviation_min = found.deviation_min.total;
    s.shown.deviation_max = found.deviation_max.total + spoilt;
    s.shown.mean_max = found.mean_max.total + spoilt;
    s.shown.shrunk = found.excess_max.total <= 0;
}

// Lines 9 to 19: the state after the generation, from ranked values.
template <class T>
void move(CrFmNes<T>& s, const double* f) {
    rank_weights(s, f);
    Scalars now{.norm_v = std::sqrt(s.norm_v2),
                .g = 1 + s.norm_v2,
                .r = std::sqrt(1 + s.norm_v2),
                .aa = 0,
                .G_sigma = 0,
                .rates = s.rates[s.shown.feasible]};
    // The weights depend on the phase, which is known only after the pass over the draws. The phase
    // rarely changes: compute the sums for the previous one, and again if it was another.
    const int guess = s.phase;
    weigh(s, guess, now);
    DrawTotals sums = sum_draws(s, guess, false);
    s.phase = phase_of(s, std::sqrt(sums.p_sigma2.total));
    if ((s.phase == MOVEMENT) != (guess == MOVEMENT)) {
        weigh(s, s.phase, now);
        sums = sum_draws(s, s.phase, true);
    }

    const double path_a = move_mean(s, now, sums.gz_v.total);
    const Rescale rescale = move_shape(s, now, path_a);
    const double eta_sigma = s.phase == MOVEMENT     ? now.rates.eta_movement  // line 11
                             : s.phase == STAGNATION ? now.rates.eta_stagnation
                                                     : now.rates.eta_convergence;
    s.sigma = static_cast<T>(s.sigma * exp1(eta_sigma * now.G_sigma / 2));  // line 19, eq. 27
    finish(s, rescale);
}

// The whole of tell: the values of all candidates move everything on by one generation.
template <class T>
void tell(CrFmNes<T>& s, const double* f, double best_so_far) {
    if (!s.drawn) draw_all(s);
    rank(s, f);  // line 8
    if (s.shown.least < best_so_far) ask(s, s.best.data(), 0, s.order[0], s.order[0] + 1);
    if (!(s.shown.flat && s.safe)) move(s, f);  // equal values carry no information
    s.drawn = false, ++s.address.generation;
}

// After a new state: its phase, and what it shows.
template <class T>
void look(CrFmNes<T>& s) {
    const auto found = sweep<LengthTotals>(s, [&](int64_t j, auto, LengthTotals& p_sigma) {
        const f64 p = load(&s.p_sigma[j]);
        p_sigma.norm2.add(p * p);
    });
    s.phase = phase_of(s, std::sqrt(found.norm2.total));
    finish(s, Rescale{});
}

// The standard deviation of each coordinate, `groups` whole groups of them.
template <class T>
void deviations(CrFmNes<T>& s, T* out) {
    const f64 sigma(s.sigma);
    sweep<Nothing>(s, [&](int64_t j, auto, Nothing&) {
        const f64 v = load(&s.v[j]);
        store(out + j, sigma * load(&s.D[j]) * sqrt(f64(1) + v * v));
    });
}

}  // namespace fmnes::FMNES_LEVEL
