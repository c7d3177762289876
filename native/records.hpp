// The records that cross between C++ and Python, each field with its name.
//
// Python's side is fmnes/engines/contract.py (Generation), fmnes/kernels/agnostic.py (Survey) and
// fmnes/algorithms/cr_fm_nes.py (tables: Constants and Rates). The extension refuses a class whose
// fields or their order differ, and a dict with other keys (tests/native/test_records.py).
#pragma once

#include <cstdint>

namespace fmnes {

// What the values of one generation show.
struct Survey {
    int64_t nan;         // how many values are NaN
    int64_t feasible;    // how many can be ranked: neither +inf nor NaN
    double least, most;  // of the feasible values; inf if there is none
    double size;         // largest |value| of the feasible ones
    double median;       // infeasible ones count as inf
    bool flat;           // all values are equal, and finite
};

// What one generation shows: its values, then the state after it.
struct Generation : Survey {
    double sigma, axis_ratio, norm_v;
    int phase;                           // 1 movement, 2 stagnation, 3 convergence
    double deviation_min, deviation_max;
    double mean_max;                     // largest |coordinate| of the mean
    bool shrunk;                         // every deviation has converged, or is not resolved
};

// The numbers of a run that depend on the dimension, the population size and the settings.
struct Constants {
    double chi_n;                 // E|N(0, I)|
    double c_sigma, scale_sigma;  // p_sigma <- (1 - c_sigma) p_sigma + scale_sigma sum(w z)
    double c_c, scale_c;          // the same for p_c
    double long_v, largest_step, D_limit, v_min, v_max;  // of the safe variant's step
};

// The same for the method auto; letters are the equations of docs/methods/auto.md.
struct AutoConstants {
    double chi_n;
    double c_sigma, scale_sigma;
    double c_c, scale_c;
    double mu_eff;
    double D_rate, short_rate, turn_rate, scout_rate;  // multiples of eta_B (d, e)
    double longest;                  // an axis with sqrt(S) above it turns more slowly
    double largest_step;
    double least_S, S_near_1, S_limit;                 // (f, g)
    double new_S, asleep, aligned;   // of an axis: at first, when it is dropped, or handed to D
    double drift, wake, least_share;                   // of scouts (i)
    double quiet, clear, least_D_rate, D_window;       // (h)
};

// Of learning rates that follow the noise: the RateParams of fmnes/algorithms/_rates.py.
struct NoiseConstants {
    double least_ratio, linear_ratio, sigma_ratio;
    double speed, most_change, least_rate;
    double window, shortest, longest;  // of the averages of the mean's gradient
    double sigma_window;
    double widening, settled;
};

// The rates for one number of feasible candidates.
struct Rates {
    double alpha;  // strength of the distance weights
    double eta_B;
    double eta_movement, eta_stagnation, eta_convergence;  // eta_sigma in each phase
    double c_1;
};

// Call field(name, value) for each field of a record, in the order of the Python class.
template <class Field>
constexpr void each_field(const Survey& record, Field&& field) {
    field("nan", record.nan);
    field("feasible", record.feasible);
    field("least", record.least);
    field("most", record.most);
    field("size", record.size);
    field("median", record.median);
    field("flat", record.flat);
}

template <class Field>
constexpr void each_field(const Generation& record, Field&& field) {
    each_field(static_cast<const Survey&>(record), field);
    field("sigma", record.sigma);
    field("axis_ratio", record.axis_ratio);
    field("norm_v", record.norm_v);
    field("phase", record.phase);
    field("deviation_min", record.deviation_min);
    field("deviation_max", record.deviation_max);
    field("mean_max", record.mean_max);
    field("shrunk", record.shrunk);
}

template <class Field>
constexpr void each_field(Constants& record, Field&& field) {
    field("chi_n", record.chi_n);
    field("c_sigma", record.c_sigma);
    field("scale_sigma", record.scale_sigma);
    field("c_c", record.c_c);
    field("scale_c", record.scale_c);
    field("long_v", record.long_v);
    field("largest_step", record.largest_step);
    field("D_limit", record.D_limit);
    field("v_min", record.v_min);
    field("v_max", record.v_max);
}

template <class Field>
constexpr void each_field(AutoConstants& record, Field&& field) {
    field("chi_n", record.chi_n);
    field("c_sigma", record.c_sigma);
    field("scale_sigma", record.scale_sigma);
    field("c_c", record.c_c);
    field("scale_c", record.scale_c);
    field("mu_eff", record.mu_eff);
    field("D_rate", record.D_rate);
    field("short_rate", record.short_rate);
    field("turn_rate", record.turn_rate);
    field("scout_rate", record.scout_rate);
    field("longest", record.longest);
    field("largest_step", record.largest_step);
    field("least_S", record.least_S);
    field("S_near_1", record.S_near_1);
    field("S_limit", record.S_limit);
    field("new_S", record.new_S);
    field("asleep", record.asleep);
    field("aligned", record.aligned);
    field("drift", record.drift);
    field("wake", record.wake);
    field("least_share", record.least_share);
    field("quiet", record.quiet);
    field("clear", record.clear);
    field("least_D_rate", record.least_D_rate);
    field("D_window", record.D_window);
}

template <class Field>
constexpr void each_field(NoiseConstants& record, Field&& field) {
    field("least_ratio", record.least_ratio);
    field("linear_ratio", record.linear_ratio);
    field("sigma_ratio", record.sigma_ratio);
    field("speed", record.speed);
    field("most_change", record.most_change);
    field("least_rate", record.least_rate);
    field("window", record.window);
    field("shortest", record.shortest);
    field("longest", record.longest);
    field("sigma_window", record.sigma_window);
    field("widening", record.widening);
    field("settled", record.settled);
}

template <class Field>
constexpr void each_field(Rates& record, Field&& field) {
    field("alpha", record.alpha);
    field("eta_B", record.eta_B);
    field("eta_movement", record.eta_movement);
    field("eta_stagnation", record.eta_stagnation);
    field("eta_convergence", record.eta_convergence);
    field("c_1", record.c_1);
}

}  // namespace fmnes
