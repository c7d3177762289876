// The method auto: the passes that turn axes and scouts, and how axes come and go (i).
#pragma once

#include "auto_step.hpp"

namespace fmnes::FMNES_LEVEL {

// ln D = exponent ln 2 + ln mantissa: exponents are added, mantissas multiplied.
struct LogTotals {
    Sum exponents;
    SumOfLogs mantissas;

    template <class F>
    FMNES_INLINE void each(F f) {
        f(exponents), f(mantissas);
    }
};

// D grows by exp(fraction a), and the axes follow: column c of V becomes u_c exp(-+fraction a), of
// `axes` ones. The scouts turn too. Totals: the products of these columns, and |u_c|^2.
template <class T>
void turn(AutoSearch<T>& s, AutoNow& now, int64_t axes) {
    const AutoConstants& constant = s.constants;
    const double scout_rate = constant.scout_rate * now.rates.eta_B, path = now.rates.c_1;
    const double turn = turn_of(constant.new_S);
    double q[SCOUTS], stay[SCOUTS];  // s^T q, and s^T X
    for (int64_t i = 0; i < SCOUTS; ++i) {
        double ww = 0;
        for (int64_t row = 0; row < s.half; ++row) {
            const double along = s.along[row * s.directions() + i];
            ww += s.w[row] * along * along;
        }
        q[i] = s.q_along[i], stay[i] = scout_rate * ww + path * q[i] * q[i];
    }
    const f64 fraction(now.fraction);
    const auto body = [&](int64_t first, int64_t last, Part<LogTotals>& part) {
        for (int64_t group = first; group < last; ++group) {
            combine_all(s, group, false, axes, part.group);
            each_eight(s, group, group + 1, [&](int64_t j, u64) {
                const f64 growth = exp(fraction * load(s.slot(LOG_D, j)));
                const f64 shrinking = f64(1) / growth;
                const f64 D = rounded<T>(load(&s.D[j]) * growth);
                store(&s.D[j], D);
                part.totals.exponents.add(exponent(D));
                part.totals.mantissas.add_log_of(mantissa(D));
                f64 beside = load(s.slot(PATH, j));
                f64 X[SCOUTS] = {load(s.slot(ALONG, j)), load(s.slot(ALONG + 1, j))};
                for (int64_t c = 0; c < s.k; ++c) {
                    const f64 V = load(s.axis(c, j));
                    beside = beside - f64(s.q_along[SCOUTS + c]) * V;
                    X[0] = X[0] - f64(s.V_scouts[0][c]) * V;
                    X[1] = X[1] - f64(s.V_scouts[1][c]) * V;
                }
                for (int64_t i = 0; i < SCOUTS; ++i) {
                    const f64 W = load(s.direction(i, j));
                    const f64 all = f64(scout_rate) * X[i] + f64(path * q[i]) * beside;
                    const f64 step = f64(i == 0 ? turn : -turn) * (all - f64(stay[i]) * W);
                    store(s.direction(i, j), (W + step) * (i == 0 ? shrinking : growth));
                }
                const int64_t h = j % GROUP;
                for (int64_t c = 0; c < axes; ++c) {
                    const f64 u = load(part.group + c * GROUP + h);
                    add(part.lanes, c, u * u);
                    store(s.axis(c, j), u * (s.S_new[c] > 1 ? shrinking : growth));
                }
            });
        }
        add_gram(s, false, axes, first, last, part.sums);
    };
    const auto found = each_part<LogTotals>(s, pairs(axes), axes, body);
    now.sum_ln_D = found.mantissas.total + found.exponents.total * LN2;
    s.k = axes;
    for (int64_t c = 0; c < axes; ++c) s.S[c] = s.S_new[c];
}

// Where the sums of scout i begin: its products with the axes, then its length squared. Those of
// scout number SCOUTS, which does not exist, begin after all of them.
FMNES_INLINE int64_t sums_of_scout(int64_t i, int64_t axes) { return i * (axes + 1); }

// The products of scouts and axes, and of scouts with themselves, in some groups.
template <class T>
void add_scouts(AutoSearch<T>& s, int64_t first, int64_t last, int64_t axes, double* sums) {
    for (int64_t i = 0; i < SCOUTS; ++i) {
        const auto W = [&](int64_t j) { return load(s.direction(i, j)); };
        for (int64_t c = 0; c < axes; ++c) {
            const auto V = [&](int64_t j) { return load(s.axis(c, j)); };
            *sums++ += sum_over(first, last, W, V);
        }
        *sums++ += sum_over(first, last, W, W);
    }
}

// What the scouts share with the axes, and their lengths squared.
template <class T>
void read_scouts(AutoSearch<T>& s) {
    for (int64_t i = 0; i < SCOUTS; ++i) {
        const double* sums = &s.totals[sums_of_scout(i, s.k)];
        for (int64_t c = 0; c < s.k; ++c) s.V_scouts[i][c] = sums[c];
        s.scout_norm2[i] = sums[s.k];
    }
}

// V <- V of_V, with `axes` columns. Their sums of fourth powers are left in `lengths`.
template <class T>
void set_axes(AutoSearch<T>& s, int64_t axes) {
    const int64_t fourth_powers = sums_of_scout(SCOUTS, axes);
    const auto body = [&](int64_t first, int64_t last, Part<Nothing>& part) {
        for (int64_t group = first; group < last; ++group) {
            combine_all(s, group, true, axes, part.group);
            for (int64_t c = 0; c < axes; ++c)
                for (int64_t h = 0; h < GROUP; h += LANES)
                    store(s.axis(c, group * GROUP + h), load(part.group + c * GROUP + h));
        }
        add_scouts(s, first, last, axes, part.sums);
        for (int64_t c = 0; c < axes; ++c) {
            const auto V2 = [&](int64_t j) {
                const f64 V = load(s.axis(c, j));
                return V * V;
            };
            part.sums[fourth_powers + c] += sum_over(first, last, V2, V2);
        }
    };
    each_part<Nothing>(s, fourth_powers + axes, 0, body);
    s.k = axes;
    read_scouts(s);
    for (int64_t c = 0; c < axes; ++c) {
        s.S[c] = rounded1<T>(s.S_new[c]);
        s.lengths[c] = s.totals[fourth_powers + c];
    }
}

template <class T>
void look_at_scouts(AutoSearch<T>& s) {
    const auto body = [&](int64_t first, int64_t last, Part<Nothing>& part) {
        add_scouts(s, first, last, s.k, part.sums);
    };
    each_part<Nothing>(s, sums_of_scout(SCOUTS, s.k), 0, body);
    read_scouts(s);
}

// Axis c becomes direction from[c], for `axes` axes.
template <class T>
void rearrange(AutoSearch<T>& s, const int64_t* from, int64_t axes) {
    each_part<Nothing>(s, 0, 0, [&](int64_t first, int64_t last, auto& part) {
        for (int64_t group = first; group < last; ++group) {
            const int64_t j = group * GROUP;
            for (int64_t c = 0; c < axes; ++c)
                for (int64_t i = 0; i < GROUP; ++i)
                    part.group[c * GROUP + i] = s.direction(from[c], j)[i];
            for (int64_t c = 0; c < axes; ++c)
                for (int64_t i = 0; i < GROUP; ++i)
                    s.axis(c, j)[i] = static_cast<T>(part.group[c * GROUP + i]);
        }
    });
    s.k = axes;
}

// The coordinate in which an axis has most of its length; dim if there is none.
template <class T>
int64_t coordinate_of(AutoSearch<T>& s, int64_t axis) {
    const double aligned = s.constants.aligned;
    if (s.lengths[axis] < 0.99 * aligned * aligned) return s.dim;  // no V_j^2 is above it
    for (int64_t j = 0; j < s.dim; ++j) {
        const double V = *s.axis(axis, j);
        if (V * V > aligned) return j;
    }
    return s.dim;
}

// An axis along a coordinate becomes a scale of D there. The other axes and the scouts stay where
// they are in space, as in (g).
template <class T>
void hand_over(AutoSearch<T>& s, AutoNow& now) {
    int64_t kept = 0;
    for (int64_t c = 0; c < s.k; ++c)
        if (coordinate_of(s, c) == s.dim) s.sources[kept++] = SCOUTS + c;
    if (kept == s.k) return;
    for (int64_t c = 0; c < s.k; ++c) {
        const int64_t j = coordinate_of(s, c);
        if (j == s.dim) continue;
        const double root = std::sqrt(s.S[c]);
        s.D[j] = static_cast<T>(s.D[j] * root);
        now.sum_ln_D += log1(root);
        const auto move = [&](int64_t direction, bool is_long) {
            T& x = *s.direction(direction, j);
            x = static_cast<T>(is_long ? x / root : x * root);
        };
        move(0, true), move(1, false);
        for (int64_t i = 0; i < kept; ++i) move(s.sources[i], s.S[s.sources[i] - SCOUTS] > 1);
    }
    for (int64_t i = 0; i < kept; ++i) s.S[i] = s.S[s.sources[i] - SCOUTS];
    rearrange(s, s.sources.data(), kept);
    each_part<Nothing>(s, pairs(kept), 0, [&](int64_t first, int64_t last, auto& part) {
        add_gram(s, false, kept, first, last, part.sums);
    });
    for (int64_t c = 0; c < kept; ++c) s.totals[pairs(kept) + c] = 1;  // |V_c|^2 before
    set_axes(s, step_out(s));
}

// Axes that are hardly longer or shorter than 1 are dropped, except the longest one.
template <class T>
void drop_axes(AutoSearch<T>& s) {
    const double asleep = s.constants.asleep;
    int64_t kept = 0;
    for (int64_t c = 0; c < s.k; ++c) {
        const double S = s.S[c];
        const bool longest = kept == 0 && S > 1;
        if (!longest && (S > 1 ? S : 1 / S) < asleep) continue;
        s.S[kept] = longest && S < asleep ? rounded1<T>(asleep) : S;
        s.sources[kept++] = SCOUTS + c;
    }
    if (kept == s.k) return;
    rearrange(s, s.sources.data(), kept);
    look_at_scouts(s);
}

// One over the length of what a scout has beside the axes; 0 if only rounding is left.
template <class T>
double scale_of_scout(const AutoSearch<T>& s, int64_t i) {
    double beside = s.scout_norm2[i];
    for (int64_t c = 0; c < s.k; ++c) beside -= s.V_scouts[i][c] * s.V_scouts[i][c];
    const double share = s.constants.least_share;
    return beside > share * share * s.scout_norm2[i] ? 1 / std::sqrt(beside) : 0;
}

// The scouts at right angles to the axes, eight coordinates of them.
template <class T>
FMNES_INLINE void straighten(AutoSearch<T>& s, int64_t j, const double (&scale)[SCOUTS],
                             f64 (&W)[SCOUTS]) {
    for (int64_t i = 0; i < SCOUTS; ++i) {
        f64 x = load(s.direction(i, j));
        for (int64_t c = 0; c < s.k; ++c) x = x - f64(s.V_scouts[i][c]) * load(s.axis(c, j));
        store(s.direction(i, j), W[i] = rounded<T>(x * f64(scale[i])));
    }
}

// A scout starts again from a fresh direction.
template <class T>
void restart_scout(AutoSearch<T>& s, int64_t i) {
    each_part<Nothing>(s, 0, 0, [&](int64_t first, int64_t last, auto&) {
        each_eight(s, first, last, [&](int64_t j, u64) {
            store(s.direction(i, j), load(s.slot(i == 0 ? GZ : FRESH, j)));
        });
    });
    s.evidence[i] = 0;
}

}  // namespace fmnes::FMNES_LEVEL
