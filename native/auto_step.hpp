// The method auto: the step of D, S and V (d) to (g).
#pragma once

#include "auto_sums.hpp"
#include "decompositions.hpp"

namespace fmnes::FMNES_LEVEL {

// S^(-1/2) of long axes, S^(1/2) of short ones.
FMNES_INLINE double inverse_length(double S) { return std::sqrt(S > 1 ? 1 / S : S); }

// sqrt(S) / (S - 1) makes a change of V of a natural gradient.
FMNES_INLINE double turn_of(double S) { return std::sqrt(S) / (S - 1); }

struct StepOfD {
    Largest a_max;

    template <class F>
    FMNES_INLINE void each(F f) {
        f(a_max);
    }
};

// The mean, the path p_c and the average gradient of D; the step a of log D (d), H = V^T diag(a) V,
// and U = turn_rate eta_B A + c_1 q (V^T q)^T - 2 diag(a) V diag(c) in place of A, of which
// Y = U + V Z with Z = -V^T U (e). Returns the largest |a|; totals: H and |U_c|^2.
template <class T>
double step_of_D(AutoSearch<T>& s, const AutoNow& now) {
    const AutoConstants& constant = s.constants;
    const double d = static_cast<double>(s.dim), eta_B = now.rates.eta_B, path = now.rates.c_1;
    for (int64_t c = 0; c < s.k; ++c) {
        const double root = std::sqrt(s.S[c]);
        double& gz = s.gz_along[SCOUTS + c];
        s.q_along[SCOUTS + c] =
            (1 - constant.c_c) * s.path_along[SCOUTS + c] / root + constant.scale_c * gz;
        gz *= root - 1, s.gm_along[SCOUTS + c] *= root - 1;
        s.lengths[c] = 2 * inverse_length(s.S[c]), s.norms[c] = path * s.q_along[SCOUTS + c];
    }
    const f64 keep_c(1 - constant.c_c), scale_c(constant.scale_c), one(1);
    const f64 sigma(now.of_mean * s.sigma);
    const f64 c_1(path), trace(path * now.q_norm2 / d), mean_g(now.mean_g), window(1 / d);
    const f64 by_g(constant.D_rate * eta_B), rate(now.r_D / 2), turn(constant.turn_rate * eta_B);
    const auto found = each_part<StepOfD>(
        s, pairs(s.k) + s.k, 0, [&](int64_t first, int64_t last, Part<StepOfD>& part) {
            each_eight(s, first, last, [&](int64_t j, u64 live) {
                const f64 D = load(&s.D[j]), gz = load(s.slot(GZ, j)), p_c = load(&s.p_c[j]);
                f64 gy = gz, gm = load(s.slot(GM, j)), p(0), beside = load(s.slot(PATH, j));
                for (int64_t c = 0; c < s.k; ++c) {
                    const f64 V = load(s.axis(c, j));
                    gy = gy + f64(s.gz_along[SCOUTS + c]) * V;
                    gm = gm + f64(s.gm_along[SCOUTS + c]) * V;
                    beside = beside - f64(s.q_along[SCOUTS + c]) * V;
                    p = p + V * V;
                }
                store(&s.mean[j], load(&s.mean[j]) + sigma * (D * gm));
                store(&s.p_c[j], keep_c * p_c + scale_c * (D * gy));
                const f64 q = load(s.slot(PATH, j)), g = load(s.slot(LOG_D, j));
                const f64 E = load(&s.D_gradient[j]);
                store(&s.D_gradient[j], select(live, E + (g - mean_g - E) * window, f64(0)));
                const f64 of_path = c_1 * (beside * beside) - trace * (one - p);
                f64 a = rate * (by_g * g + of_path) / (one - p + p * p);
                a = select(live, a, f64(0));
                store(s.slot(LOG_D, j), a);
                part.totals.a_max.take(abs(a));
                for (int64_t c = 0; c < s.k; ++c) {
                    T* A = s.slot(ALONG + SCOUTS + c, j);
                    const f64 V = load(s.axis(c, j));
                    const f64 U =
                        turn * load(A) + f64(s.norms[c]) * q - f64(s.lengths[c]) * (a * V);
                    store(A, U);
                }
            });
            add_gram(s, true, s.k, first, last, part.sums);
            for (int64_t c = 0; c < s.k; ++c) {
                const auto U = [&](int64_t j) { return load(s.slot(ALONG + SCOUTS + c, j)); };
                part.sums[pairs(s.k) + c] += sum_over(first, last, U, U);
            }
        });
    return found.a_max.total;
}

// Singular values and left singular vectors from the rows [. | P^T] that orthogonalise() leaves:
// S_new <- their squares, longest first, and column c of `out` <- its vector, which points the way
// that axis c did. Axes that are nearly 1 are left out. Returns how many there are.
template <class T>
int64_t read_axes(AutoSearch<T>& s, const Small& rows, int64_t count, int64_t length,
                  const Small& out) {
    for (int64_t i = 0; i < count; ++i) s.lengths[i] = dot(rows[i], rows[i], length);
    sort_down(s.lengths.data(), count, s.sources.data());
    const double limit = s.constants.S_limit;
    int64_t kept = 0;
    for (int64_t c = 0; c < count; ++c) {
        const double* vector = rows[s.sources[c]] + length;
        const double S = s.lengths[s.sources[c]];
        if (!(magnitude(S - 1) > s.constants.S_near_1)) continue;
        const double sign = vector[c] < 0 ? -1 : 1;
        for (int64_t b = 0; b < count; ++b) out[b][kept] = sign * vector[b];
        s.S_new[kept++] = S < 1 / limit ? 1 / limit : S > limit ? limit : S;
    }
    return kept;
}

// The step within the axes (f). of_V and of_Y <- the matrices that make V + turn Y of V and U, for
// the new axes. Returns how many there are.
template <class T>
int64_t step_within(AutoSearch<T>& s, AutoNow& now, double a_max) {
    const AutoConstants& constant = s.constants;
    const int64_t k = s.k, wide = padded(s.k);
    const double eta_B = now.rates.eta_B, c_1 = now.rates.c_1;
    const double trace = c_1 * now.q_norm2 / static_cast<double>(s.dim);
    const double* q = &s.q_along[SCOUTS];
    const Small &M = s.M, &N = s.N, &H = s.H, &Z = s.Z, &P = s.P;
    read_gram(s, k, H);
    const double* U2 = after_gram(s, k);
    double size = a_max;
    const auto slow = [&](int64_t c) {
        const double root = std::sqrt(s.S[c]);
        return s.phase != MOVEMENT && root > constant.longest ? constant.longest / root : 1.0;
    };
    const auto rate = [&](int64_t c) { return s.S[c] > 1 ? 1.0 : std::sqrt(constant.short_rate); };
    for (int64_t c = 0; c < k; ++c) {
        double Z2 = 0;
        const double c_c = inverse_length(s.S[c]);
        for (int64_t b = 0; b < k; ++b) {
            const double of_path = c_1 * q[b] * q[c];
            N[b][c] = eta_B * M[b][c] * rate(b) * rate(c) + of_path - (b == c ? trace : 0) -
                      2 * inverse_length(s.S[b]) * H[b][c] * c_c;
            Z[b][c] = 2 * H[b][c] * c_c - constant.turn_rate * eta_B * M[b][c] - of_path;
            Z2 += Z[b][c] * Z[b][c];
            size = larger(size, magnitude(N[b][c]));
        }
        const double turn = slow(c) * magnitude(turn_of(s.S[c]));
        size = larger(size, turn * std::sqrt(larger(U2[c] - Z2, 0)));
    }
    now.fraction = 1 / larger(size / constant.largest_step, 1);
    for (int64_t b = 0; b < k; ++b) {
        const double root = std::sqrt(s.S[b]);
        double* row = s.U[b];
        for (int64_t c = 0; c < 2 * wide; ++c) row[c] = 0;
        for (int64_t c = 0; c < k; ++c) {
            double step = now.fraction * N[b][c];
            if (b == c) {  // an axis may not pass to the other side of 1
                const bool is_long = s.S[c] > 1;
                const double S = constant.least_S;
                const double limit = 2 * (std::sqrt(is_long ? S / s.S[c] : 1 / (S * s.S[c])) - 1);
                if (is_long ? step < limit : step > limit) step = limit;
            }
            row[c] = root * ((b == c ? 1 : 0) + step / 2);
        }
        row[wide + b] = 1;
    }
    orthogonalise(s.U, k, wide, 2 * wide, s.norms.data());
    const int64_t kept = read_axes(s, s.U, k, wide, P);
    for (int64_t c = 0; c < kept; ++c) {
        for (int64_t b = 0; b < k; ++b)
            s.of_Y[b][c] = now.fraction * slow(b) * P[b][c] * turn_of(s.S_new[c]);
        for (int64_t b = 0; b < k; ++b) {
            double total = P[b][c];
            for (int64_t e = 0; e < k; ++e) total += Z[b][e] * s.of_Y[e][c];
            s.of_V[b][c] = total;
        }
    }
    return kept;
}

// The step out of the span of the axes (g), for axes whose columns are now u before and u exp(-+a)
// after the growth of D: of_V <- the matrix that makes V of the latter. Returns how many there are.
template <class T>
int64_t step_out(AutoSearch<T>& s) {
    const int64_t k = s.k, wide = padded(s.k);
    const Small &gram = s.M, &root = s.N, &inverse = s.H, &stretch = s.Z, &U = s.U;
    read_gram(s, k, gram);
    const double* before = after_gram(s, k);
    for (int64_t c = 0; c < k; ++c) {
        const double S = s.S[c] > 1 ? s.S[c] : 1 / s.S[c];
        s.tilt[c] = std::sqrt(gram[c][c]);
        s.lengths[c] = s.tilt[c] / std::sqrt(before[c]) * std::sqrt(magnitude(S - 1));
    }
    // An orthonormal basis of the span: U L^-T for the Cholesky factor L of U^T U; in it, the axes
    // are the columns of L^T times their lengths.
    for (int64_t b = 0; b < k; ++b)
        for (int64_t c = 0; c < k; ++c) {
            root[b][c] = inverse[b][c] = stretch[b][c] = 0;
            gram[b][c] /= s.tilt[b] * s.tilt[c];
        }
    invert_root(gram, k, root, inverse);
    // In this basis R = T (I + b b^T) T for the long axes b, with T = (I + c c^T)^(-1/2) for the
    // short ones c.
    int64_t shorts = 0;
    for (int64_t c = 0; c < k; ++c) {
        stretch[c][c] = 1;
        if (s.S[c] > 1) continue;
        for (int64_t b = 0; b < wide; ++b) s.W[shorts][b] = b < k ? root[b][c] * s.lengths[c] : 0;
        ++shorts;
    }
    orthogonalise(s.W, shorts, wide, wide, s.norms.data());
    for (int64_t i = 0; i < shorts; ++i) {
        const double* vector = s.W[i];
        const double size = dot(vector, vector, wide);
        const double factor = size > 0 ? (1 / std::sqrt(1 + size) - 1) / size : 0;
        for (int64_t b = 0; b < k; ++b)
            for (int64_t c = 0; c < k; ++c) stretch[b][c] += factor * vector[b] * vector[c];
    }
    for (int64_t b = 0; b < k; ++b) {
        for (int64_t c = 0; c < 3 * wide; ++c) U[b][c] = c < k ? stretch[b][c] : 0;
        for (int64_t c = 0; c < k; ++c)
            for (int64_t e = 0; s.S[c] > 1 && e <= c; ++e)
                U[b][wide + c] += stretch[b][e] * (root[e][c] * s.lengths[c]);
        U[b][2 * wide + b] = 1;
    }
    orthogonalise(U, k, 2 * wide, 3 * wide, s.norms.data());
    const int64_t kept = read_axes(s, U, k, 2 * wide, s.P);
    for (int64_t c = 0; c < kept; ++c)
        for (int64_t b = 0; b < k; ++b) {
            double total = 0;
            for (int64_t e = b; e < k; ++e) total += inverse[b][e] * s.P[e][c];
            s.of_V[b][c] = total / s.tilt[b];
        }
    return kept;
}

}  // namespace fmnes::FMNES_LEVEL
