// Logarithm, exponential, sine and cosine of eight lanes, from IEEE operations only.
//
// The C library's versions differ in their last bits from machine to machine. These give the same
// bits everywhere, and so does fmnes.draws.numpy_draws, which has those that the draws need in
// NumPy. The polynomials interpolate at the Chebyshev nodes of the interval; their coefficients
// were computed to 60 digits. Errors against mpmath (tests/native): at most 2 ulp, and 4 ulp for
// the squared sine.
#pragma once

#include "simd.hpp"

namespace fmnes::FMNES_LEVEL {

// c[0] + x (c[1] + x (c[2] + ...)), times a power of two
template <int N, int P>
FMNES_INLINE Floats<P> horner(Floats<P> x, const double (&c)[N], double scale = 1) {
    Floats<P> y(scale * c[N - 1]);
    FMNES_UNROLL for (int i = N - 2; i >= 0; --i) y = y * x + Floats<P>(scale * c[i]);
    return y;
}

constexpr uint64_t ONE_BITS = 0x3ff0000000000000;          // of 1.0
constexpr uint64_t MANTISSA = 0x000fffffffffffff;          // the 52 bits of a mantissa
constexpr uint64_t SQRT_HALF_BITS = 0x3fe6a09e667f3bcd;    // of sqrt(1/2)
constexpr double LN2_HIGH = 0x1.62e42fefa0000p-1;          // exact when multiplied by an exponent
constexpr double LN2_LOW = 0x1.cf79abc9e3b3ap-40;          // ln 2 - LN2_HIGH
constexpr double LN2 = 0.6931471805599453;
constexpr double TWO52 = 0x1p52;

// The e and the m in [1, 2) of x = 2^e m, for normal x > 0.
template <int P>
FMNES_INLINE Floats<P> exponent(Floats<P> x) {
    return as_f64((as_u64(x) >> 52) | as_u64(Floats<P>(TWO52))) - Floats<P>(TWO52 + 1023);
}

template <int P>
FMNES_INLINE Floats<P> mantissa(Floats<P> x) {
    return as_f64((as_u64(x) & Bits<P>(MANTISSA)) | Bits<P>(ONE_BITS));
}

// ln x for normal x > 0: x = 2^e m with m in [sqrt(1/2), sqrt(2)), s = (m - 1)/(m + 1),
// ln m = 2 s + s^3 R(s^2). SCALE, a power of two or its negative, is multiplied into the constants:
// that costs nothing and is exact.
template <int SCALE, int P>
FMNES_INLINE Floats<P> scaled_log(Floats<P> x) {
    constexpr double R[] = {0x1.5555555555558p-1, 0x1.99999999952e2p-2, 0x1.2492492df148dp-2,
                            0x1.c71c62e5800a1p-3, 0x1.7462b4ab2ef6bp-3, 0x1.39fe606542ddep-3,
                            0x1.2b584aae78a57p-3};
    Bits<P> shifted = as_u64(x) - Bits<P>(SQRT_HALF_BITS - ONE_BITS);
    Bits<P> exponent = shifted >> 52;  // e + 1023
    Floats<P> e = as_f64(exponent | as_u64(Floats<P>(TWO52))) - Floats<P>(TWO52 + 1023);
    Floats<P> m = as_f64((shifted & Bits<P>(MANTISSA)) + Bits<P>(SQRT_HALF_BITS));
    Floats<P> s = (m - Floats<P>(1)) / (m + Floats<P>(1));
    Floats<P> w = s * s;
    Floats<P> small = s * w * horner(w, R, SCALE) + e * Floats<P>(SCALE * LN2_LOW);
    return e * Floats<P>(SCALE * LN2_HIGH) + (Floats<P>(SCALE * 2) * s + small);
}

template <int P>
FMNES_INLINE Floats<P> log(Floats<P> x) {
    return scaled_log<1>(x);
}

// exp x for |x| < 700: x = k ln 2 + r, exp r = 1 + r + r^2 E(r).
template <int P>
FMNES_INLINE Floats<P> exp(Floats<P> x) {
    constexpr double E[] = {0.5,
                            0.16666666666666669,
                            0.041666666666624164,
                            0.008333333333330065,
                            0.0013888888917196719,
                            0.00019841269863040545,
                            2.4801521322368692e-05,
                            2.7557268480310024e-06,
                            2.7620075879983367e-07,
                            2.5100375832561234e-08};
    constexpr double INV_LN2 = 1.4426950408889634;
    constexpr double ROUND = 0x1.8p52;  // adding it rounds to an integer, kept in the low bits
    Floats<P> shifted = x * Floats<P>(INV_LN2) + Floats<P>(ROUND);
    Floats<P> k = shifted - Floats<P>(ROUND);
    Floats<P> r = (x - k * Floats<P>(LN2_HIGH)) - k * Floats<P>(LN2_LOW);
    Floats<P> y = Floats<P>(1) + (r + r * r * horner(r, E));
    return as_f64(as_u64(y) + (as_u64(shifted) << 52));
}

// The cosine and sine of a turn times turn/2^64. The top bits of turn + 1/8 choose the quarter of
// the circle, so that the reduction to [-pi/4, pi/4) is exact; the next 52 bits are the angle.
template <int P>
FMNES_INLINE void cos_sin(Bits<P> turn, Floats<P>& cosine, Floats<P>& sine) {
    constexpr double S[] = {0.7853981633974483,    -0.08074551218828054,    0.002490394570188844,
                            -3.657620415891387e-05, 3.133616225433416e-07, -1.7571500746983935e-09,
                            6.877360573166326e-12};
    constexpr double C[] = {-0.30842513753404244,   0.015854344243815488,   -0.0003259918869271996,
                            3.590860447448612e-06, -2.4611366238309744e-08, 1.1500679700940496e-10,
                            -3.863156948832656e-13};
    turn = turn + Bits<P>(uint64_t{1} << 61);
    Floats<P> g = as_f64(((turn >> 10) & Bits<P>(MANTISSA)) | Bits<P>(ONE_BITS)) - Floats<P>(1.5);
    g = g + g;  // the angle in units of pi/4, in [-1, 1)
    Floats<P> w = g * g;
    Floats<P> s = g * horner(w, S);
    Floats<P> c = Floats<P>(1) + w * horner(w, C);
    Bits<P> odd = turn << 1, sign(uint64_t{1} << 63);  // an odd number of quarter turns swaps them
    cosine = as_f64(as_u64(select_by_sign(odd, s, c)) ^ ((turn ^ odd) & sign));
    sine = as_f64(as_u64(select_by_sign(odd, c, s)) ^ (turn & sign));
}

// sin(pi x)^2 for any x, of full relative accuracy near its zeros too: the nearest integer is
// taken from |x| exactly. Numbers from 2^52 on are integers; of an infinite one NaN is left.
template <int P>
FMNES_INLINE Floats<P> sin_pi_squared(Floats<P> x) {
    constexpr double S[] = {3.141592653589793,     -5.167712780049969,      2.5501640398773007,
                            -0.5992645293189447,   0.0821458865731029,      -0.007370430505916944,
                            0.0004662998161898394, -2.1903497074626018e-05, 7.697826768224191e-07};
    x = abs(x);
    Floats<P> rest = x - ((x + Floats<P>(TWO52)) - Floats<P>(TWO52));  // in [-1/2, 1/2]
    rest = select(x < Floats<P>(TWO52), rest, x - x);
    Floats<P> sine = rest * horner(rest * rest, S);
    return sine * sine;
}

}  // namespace fmnes::FMNES_LEVEL
