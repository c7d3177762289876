// The test problems that fmnes/problems.py defines: the values of all rows of x, without a temporary
// array of its size. Sums are taken in float64.
#pragma once

#include "functions.hpp"
#include "rows.hpp"

namespace fmnes::FMNES_LEVEL {

// Rough costs of one number in nanoseconds. They only decide how many threads are started.
constexpr double SQUARE_NS = 0.3, SINE_NS = 1;

template <class T>
void weighted_sphere(const Matrix<T>& x, const double* scale, double* partial, double* out) {
    sum_rows(x.rows, x.dim, SQUARE_NS, partial, out, [&](int64_t row, int64_t j, auto lanes) {
        const f64 y = load(scale + j, lanes) * load(x.data + row * x.dim + j, lanes);
        return y * y;
    });
}

// along <u, y>^2 + across |y - <u, y> u|^2 with y = scale*x.
template <class T>
void two_scales(const Matrix<T>& x, const double* u, double along, double across,
                const double* scale, double* partial, double* a, double* out) {
    const auto y = [&](int64_t row, int64_t j, auto lanes) {
        return load(scale + j, lanes) * load(x.data + row * x.dim + j, lanes);
    };
    sum_rows(x.rows, x.dim, SQUARE_NS, partial, a, [&](int64_t row, int64_t j, auto lanes) {
        return y(row, j, lanes) * load(u + j, lanes);
    });
    sum_rows(x.rows, x.dim, SQUARE_NS, partial, out, [&](int64_t row, int64_t j, auto lanes) {
        const f64 rest = y(row, j, lanes) - f64(a[row]) * load(u + j, lanes);
        return rest * rest;
    });
    for (int64_t row = 0; row < x.rows; ++row)
        out[row] = along * (a[row] * a[row]) + across * out[row];
}

template <class T>
void rosenbrock(const Matrix<T>& x, double* partial, double* out) {
    sum_rows(x.rows, x.dim - 1, SQUARE_NS, partial, out, [&](int64_t row, int64_t j, auto lanes) {
        const T* at = x.data + row * x.dim + j;
        const f64 first = load(at, lanes), second = load(at + 1, lanes);
        const f64 bend = second - first * first, rest = first - f64(1);
        return f64(100) * (bend * bend) + rest * rest;
    });
}

template <class T>
void rastrigin(const Matrix<T>& x, double* partial, double* out) {
    sum_rows(x.rows, x.dim, SINE_NS, partial, out, [&](int64_t row, int64_t j, auto lanes) {
        const f64 at = load(x.data + row * x.dim + j, lanes);
        return at * at + f64(20) * sin_pi_squared(at);
    });
}

// The sum is NaN if and only if a number of the row is NaN; such a row gets +inf too.
template <class T>
void halfspaces(const Matrix<T>& x, double* partial, double* out) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    sum_rows(x.rows, x.dim, SQUARE_NS, partial, out, [&](int64_t row, int64_t j, auto lanes) {
        const f64 at = load(x.data + row * x.dim + j, lanes);
        return select(at < f64(0), f64(infinity), at * at);
    });
    for (int64_t row = 0; row < x.rows; ++row)
        if (!(out[row] >= 0)) out[row] = infinity;
}

}  // namespace fmnes::FMNES_LEVEL
