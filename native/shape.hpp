// CR-FM-NES: the natural-gradient step of D and v (steps 9 and 10), and the figures of a state.
// The formulas are those of fmnes/algorithms/_vd_gaussian.py, one sweep for each sum they need.
#pragma once

#include "update.hpp"

namespace fmnes::FMNES_LEVEL {

// The constants of the Fisher matrix; they depend on |v| and on the largest share of it.
struct Fisher {
    double kappa, rest, alpha, b, largest, least_H;
};

template <class T>
Fisher fisher(const CrFmNes<T>& s, const Scalars& now) {
    Fisher of;
    of.largest = s.largest_v2 / s.norm_v2;
    of.kappa = (2 - 1 / now.r) / of.largest;
    if (!(of.kappa < 4)) of.kappa = 4;
    of.rest = (4 - of.kappa) / (now.g + 1) * (now.g / (now.g + 1));  // 1 - alpha^2
    of.alpha = std::sqrt(1 - of.rest);
    of.b = of.kappa - 2 + 2 * of.rest;
    of.least_H = 2 - 4 * of.largest > 1 / now.r ? 2 - 4 * of.largest : 1 / now.r;
    return of;
}

FMNES_INLINE f64 inverse_H(const Fisher& of, f64 vv) {
    const f64 share = vv * f64(1 / of.largest);
    return f64(1) / (f64(2) * (f64(1) - share) + share * f64(of.least_H));
}

// s before the inverse of (diag(H) + b vv vv^T), with the path p_c as one more sample of weight
// c_1; and sum(w a z_perp). Returns sum(vv s / H) and half the denominator of Sherman and Morrison.
template <class T>
Totals<2> gradient_of_D(CrFmNes<T>& s, const Scalars& now, const Fisher& of, double aa, double a) {
    const double c_1 = now.total;
    const double factor = (4 - of.kappa) * now.r / ((now.g + 1) * (1 + of.alpha)) - 2;
    const f64 unit(1 / now.norm_v), path((now.r - 1) * a);
    const f64 along(a), weight(c_1), weight_along(c_1 * a), samples(now.aa), with_az(factor);
    const f64 with_vv(of.alpha * (aa - c_1)), rest(of.rest);
    return sweep<2, 0, 0>(s, [&](int64_t j, auto, f64* acc) {
        const f64 vbar = load(s.v + j) * unit, vv = vbar * vbar;
        const f64 z = load(s.p_c + j) / load(s.D + j) - path * vbar;
        const f64 a_perp = z - along * vbar;
        const f64 az = (load(sums_at(s, 1, j)) - samples * vbar) + weight_along * a_perp;
        const f64 zz = load(sums_at(s, 2, j)) + weight * z * z;
        const f64 first = (zz - weight) + with_az * vbar * az - with_vv * vv;
        const f64 vv_H = vv * inverse_H(of, vv);
        acc[0] = acc[0] + vv_H * first;
        acc[1] = acc[1] + vv_H * (max(f64(1) - vv, f64(0)) + rest * vv);
        store(sums_at(s, 1, j), az);
        store(sums_at(s, 2, j), first);
    });
}

// s itself; returns sum(vv s) and the largest |s|.
template <class T>
Totals<2> solve_D(CrFmNes<T>& s, const Scalars& now, const Fisher& of, const Totals<2>& sums) {
    const f64 unit(1 / now.norm_v), common(of.b / (2 * sums.of[1]) * sums.of[0]);
    return sweep<1, 1, 0>(s, [&](int64_t j, auto live, f64* acc) {
        const f64 vbar = load(s.v + j) * unit, vv = vbar * vbar, inverse = inverse_H(of, vv);
        f64 step = load(sums_at(s, 2, j)) * inverse - common * (vv * inverse);
        step = select(live, step, f64(0));
        acc[0] = acc[0] + vv * step;
        acc[1] = max(acc[1], abs(step));
        store(sums_at(s, 2, j), step);
    });
}

// The step of v (paper), or of u = D v divided by D (safe); returns its |.|^2.
template <class T>
double gradient_of_v(CrFmNes<T>& s, const Scalars& now, const Fisher& of, double aa, double vv_s) {
    const double c_1 = now.total, n2 = s.norm_v2;
    const double twist = s.is.safe ? of.kappa * (now.g / (n2 + of.alpha * (now.g + 1)))
                                   : of.alpha * (now.g + 1);
    const f64 unit(1 / now.norm_v), straight(now.r), with_vs(twist);
    const f64 along(0.5 * now.g * (aa - c_1) + of.alpha * vv_s);
    const auto size = sweep<1, 0, 0>(s, [&](int64_t j, auto, f64* acc) {
        const f64 vbar = load(s.v + j) * unit;
        const f64 az = load(sums_at(s, 1, j)), step = load(sums_at(s, 2, j));
        const f64 t = ((straight * az + along * vbar) - with_vs * vbar * step) * unit;
        acc[0] = acc[0] + t * t;
        store(sums_at(s, 1, j), t);
    });
    return size.of[0];
}

// D and v after the step; returns |v|^2 and sum(ln D).
template <class T>
Totals<2> step(CrFmNes<T>& s, double fraction) {
    const f64 share(fraction), most(s.is.D_limit), least(1 / s.is.D_limit);
    const f64 nan(std::numeric_limits<double>::quiet_NaN());
    const bool safe = s.is.safe;
    const auto of = sweep<2, 0, 1>(s, [&](int64_t j, auto, f64* acc) {
        const f64 growth = f64(1) + share * load(sums_at(s, 2, j));
        f64 D = load(s.D + j) * growth, v = load(s.v + j) + share * load(sums_at(s, 1, j));
        if (safe) D = min(max(D, least), most), v = v / growth;
        store(s.D + j, D);
        store(s.v + j, v);
        acc[0] = acc[0] + v * v;
        // ln D in pieces: exponents are added, mantissas multiplied. There is none of D <= 0.
        acc[1] = acc[1] + select(f64(0) < D, exponent(D), nan);
        acc[2] = acc[2] * mantissa(D);
    });
    return {{of.of[0], of.of[2] + of.of[1] * LN2}};
}

// D over `volume` and v times `length`, written back if either is not 1; and the figures.
template <class T>
void finish(CrFmNes<T>& s, double volume, double length) {
    const bool write = volume != 1 || length != 1;
    const f64 inverse(1 / volume), factor(length), sigma(s.sigma);
    const f64 tolx(s.tolx), eps(std::numeric_limits<T>::epsilon());
    const f64 everywhere(s.initial_value);
    const T* initial = s.alike ? nullptr : +s.initial;
    const f64 low(-std::numeric_limits<double>::infinity());
    const auto of = sweep<2, 7, 0>(s, [&](int64_t j, auto live, f64* acc) {
        f64 D = load(s.D + j), v = load(s.v + j);
        if (write) {
            D = select(live, rounded<T>(D * inverse), f64(1)), v = rounded<T>(v * factor);
            store(s.D + j, D), store(s.v + j, v);
        }
        const f64 deviation = sigma * D * sqrt(f64(1) + v * v), m = abs(load(s.mean + j));
        const f64 resolved = max(tolx * (initial ? load(initial + j) : everywhere), eps * m);
        acc[0] = acc[0] + (m - m) + (deviation - deviation);  // 0, or NaN if either is not finite
        acc[1] = acc[1] + v * v;
        acc[2] = max(acc[2], v * v);
        acc[3] = max(acc[3], select(live, D, low));
        acc[4] = max(acc[4], select(live, f64(0) - D, low));
        acc[5] = max(acc[5], select(live, deviation, low));
        acc[6] = max(acc[6], select(live, f64(0) - deviation, low));
        acc[7] = max(acc[7], select(live, m, low));
        acc[8] = max(acc[8], select(live, deviation - resolved, low));
    });
    s.norm_v2 = of.of[1], s.largest_v2 = of.of[2];
    const double spoilt = of.of[0] == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
    s.figures = {.sigma = s.sigma,
                 .axis_ratio = of.of[3] / -of.of[4] * std::sqrt(1 + s.norm_v2),
                 .norm_v = std::sqrt(s.norm_v2),
                 .deviation_least = -of.of[6],
                 .deviation_most = of.of[5] + spoilt,
                 .mean_most = of.of[7] + spoilt,
                 .phase = s.phase,
                 .shrunk = of.of[8] <= 0};
}

// Steps 9 and 10; `a` belongs to the path as a sample.
template <class T>
double move_shape(CrFmNes<T>& s, const Scalars& now, double a, double& length) {
    const Fisher of = fisher(s, now);
    const double aa = now.aa + now.total * a * a;
    const Totals<2> sums = gradient_of_D(s, now, of, aa, a);
    const Totals<2> solved = solve_D(s, now, of, sums);
    const double size2 = gradient_of_v(s, now, of, aa, solved.of[0]);
    double fraction = 1;
    if (s.is.safe) {
        const double of_v = std::sqrt(size2) / now.norm_v;
        const double size = (of_v > solved.of[1] ? of_v : solved.of[1]) / s.is.largest_step;
        fraction = size > 1 ? 1 / size : 1;
    }
    const Totals<2> moved = step(s, fraction);
    const double norm = std::sqrt(moved.of[0]);
    length = 1;
    if (s.is.safe && norm < s.is.v_least) length = s.is.v_least / norm;
    if (s.is.safe && norm > s.is.v_most) length = s.is.v_most / norm;
    const double norm2 = moved.of[0] * (length * length);
    const double d = static_cast<double>(s.is.dim);  // det(D (I + v v^T) D) = 1
    return exp1(moved.of[1] / d + log1(1 + norm2) / (2 * d));
}

// Everything but the values' survey: the state moves on.
template <class T>
void move(CrFmNes<T>& s, const double* f) {
    rank_weights(s, f);
    Scalars now{};
    now.norm_v = std::sqrt(s.norm_v2), now.g = 1 + s.norm_v2, now.r = std::sqrt(now.g);
    now.rates = s.rates + s.survey.feasible;
    now.total = now.rates->c_1;  // the other weights sum to 0
    // The phase is known only after the pass over the draws, but it seldom changes: guess that it
    // has not, and take the sums again where it has.
    Coefficients of = weigh(s, s.phase, now);
    Totals<2> sums = sum_draws(s, s.phase, of, false);
    const int guess = s.phase, phase = s.phase = phase_of(s, std::sqrt(sums.of[0]));
    if ((phase == MOVEMENT) != (guess == MOVEMENT)) {
        of = weigh(s, phase, now);
        sums = sum_draws(s, phase, of, true);
    }

    const double a = move_mean(s, now, sums.of[1]);
    double length;
    const double volume = move_shape(s, now, a, length);
    const double rate = phase == MOVEMENT     ? now.rates->eta_movement
                        : phase == STAGNATION ? now.rates->eta_stagnation
                                              : now.rates->eta_convergence;
    s.sigma = static_cast<T>(s.sigma * exp1(rate * now.G_sigma / 2));
    finish(s, volume, length);
}

// The whole of tell: values of popsize candidates in, everything else on by one generation.
template <class T>
void tell(CrFmNes<T>& s, const double* f, double best_so_far) {
    if (!s.drawn) draw_all(s);
    rank(s, f);
    if (s.survey.least < best_so_far) ask(s, +s.best, 0, s.survey.best, s.survey.best + 1);
    if (!(s.survey.flat && s.is.safe)) move(s, f);  // equal values say nothing
    s.drawn = false, ++s.at.generation;
}

// The figures of a state that was just set.
template <class T>
void look(CrFmNes<T>& s) {
    const auto of = sweep<1, 0, 0>(s, [&](int64_t j, auto, f64* acc) {
        const f64 p = load(s.p_sigma + j);
        acc[0] = acc[0] + p * p;
    });
    s.phase = phase_of(s, std::sqrt(of.of[0]));
    finish(s, 1, 1);
}

// The deviations of the state, `groups` whole groups of them.
template <class T>
void deviations(CrFmNes<T>& s, T* out) {
    const f64 sigma(s.sigma);
    sweep<0, 0, 0>(s, [&](int64_t j, auto, f64*) {
        const f64 v = load(s.v + j);
        store(out + j, sigma * load(s.D + j) * sqrt(f64(1) + v * v));
    });
}

}  // namespace fmnes::FMNES_LEVEL
