// The method auto: learning rates of the mean and of sigma that follow the noise, (k) to (n). The
// same as fmnes/algorithms/_rates.py.
#pragma once

#include "auto.hpp"
#include "update.hpp"

namespace fmnes::FMNES_LEVEL {

// One number rounded to T. (GCC 12 leaves out some pairs of conversions from double to float and
// back, where it computes two numbers in one register.)
template <class T>
FMNES_INLINE double rounded1(double x) {
    double lanes[LANES];
    store(lanes, rounded<T>(f64(x)));
    return lanes[0];
}

FMNES_INLINE double magnitude(double x) { return x < 0 ? -x : x; }
FMNES_INLINE double larger(double a, double b) { return a < b ? b : a; }
FMNES_INLINE double within(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}
FMNES_INLINE double power(double x, double exponent) {
    return x > 0 ? exp1(exponent * log1(x)) : 0;
}

// What the steps of a generation are multiplied by, and sigma itself.
struct RateFactors {
    double mean, sigma, widening;
};

// The rate of the averages of the mean's gradient.
template <class T>
double m_window(const AutoSearch<T>& s) {
    return within(s.noise.window * s.eta, s.noise.longest, s.noise.shortest);
}

// The rates after a generation, from <g, E_m> and |g|^2 of the mean's gradient g, and from G_sigma.
template <class T>
RateFactors next_rates(AutoSearch<T>& s, double g_E, double g2, double G_sigma) {
    const NoiseConstants& constant = s.noise;
    constexpr double TINY = std::numeric_limits<T>::min();
    const double eta = s.eta, b = m_window(s), c = constant.sigma_window;
    double &signal = s.m_averages[SIGNAL], &noise = s.m_averages[NOISE];
    double& seen = s.m_averages[SEEN];
    seen = rounded1<T>(seen + b * (1 - seen));
    const double product = g_E / seen;  // (k)
    signal = rounded1<T>(signal + b * (product - signal));
    noise = rounded1<T>(noise + b * (g2 - noise));
    const double size = larger(noise / seen, TINY);
    const double change = constant.speed * (product / size / constant.least_ratio - eta);  // (l)
    const double factor = exp1(within(change, -constant.most_change, constant.most_change));
    s.eta = rounded1<T>(within(eta * factor, constant.least_rate, 1));
    double &G = s.sigma_averages[GRADIENT], &G2 = s.sigma_averages[SQUARE];
    G = rounded1<T>(G + c * (G_sigma - G));
    G2 = rounded1<T>(G2 + c * (G_sigma * G_sigma - G2));
    const double clear = (G * G - c / (2 - c) * G2) / larger(G2 - G * G, TINY);
    const double lengths = within(clear / constant.sigma_ratio, 0, 1);  // (m)
    const double linear = larger(signal / (size * seen) / constant.linear_ratio, 0);
    const double room = larger(lengths - constant.settled * linear, 0);
    return {s.eta, within(s.eta + room * room, 0, 1), power(eta / s.eta, constant.widening)};  // (n)
}

}  // namespace fmnes::FMNES_LEVEL
