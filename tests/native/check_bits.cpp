// Prints a hash of ten generations of CR-FM-NES and of auto: `make test-neon` compares that of an
// aarch64 machine with that of this one. Free of Python, like the kernels.

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "kernels.hpp"

namespace fmnes::FMNES_LEVEL {
extern const Kernels kernels;
}

using namespace fmnes;

static uint64_t hash = 1469598103934665603u;  // FNV-1a

static void mix(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i)
        hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
}

constexpr int64_t LAMBDA = 14;

static std::vector<Rates> some_rates() {
    return std::vector<Rates>(LAMBDA + 1, Rates{.alpha = 1, .eta_B = 0.1, .eta_movement = 1,
                                                .eta_stagnation = 0.6, .eta_convergence = 1,
                                                .c_1 = 0.01});
}

// Ten generations of a search.
template <class T, class AnyKernels, class Search>
static void generations(const AnyKernels& kernels, Search& search, int64_t dim) {
    kernels.look(search);
    std::vector<T> x(static_cast<size_t>(LAMBDA * dim));
    for (int generation = 0; generation < 10; ++generation) {
        kernels.ask(search, x.data(), dim, 0, LAMBDA);
        double f[LAMBDA] = {};
        for (int64_t i = 0; i < LAMBDA * dim; ++i)
            f[i / dim] += x[i] * static_cast<double>(x[i]) * static_cast<double>(1 + i % dim % 7);
        kernels.tell(search, f, std::numeric_limits<double>::infinity());
        mix(x.data(), x.size() * sizeof(T));
        mix(&search.shown.sigma, sizeof(double));
        mix(&search.shown.axis_ratio, sizeof(double));
    }
}

template <class T>
static void run_auto(const AutoKernels<T>& kernels, int64_t dim) {
    const double root = std::sqrt(static_cast<double>(dim));
    const AutoConstants constants{
        .chi_n = root, .c_sigma = 0.1, .scale_sigma = 0.5, .c_c = 0.1, .scale_c = 0.5, .mu_eff = 4,
        .D_rate = 1.5, .short_rate = 0.1, .turn_rate = 0.1, .scout_rate = 0.2, .longest = 20,
        .largest_step = 0.7, .least_S = 1.02, .S_near_1 = 1e-3, .S_limit = 1e14, .new_S = 2,
        .asleep = 1.1, .aligned = 0.7, .drift = 0.4, .wake = 1, .least_share = 1e-3, .quiet = 0.1,
        .clear = 0.2, .least_D_rate = 0.1, .D_window = 0.02};
    const NoiseConstants noise{
        .least_ratio = 0.2 / root, .linear_ratio = 1 / root, .sigma_ratio = 3, .speed = 0.2,
        .most_change = 0.1, .least_rate = 1e-4, .window = 0.3, .shortest = 0.1, .longest = 0.002,
        .sigma_window = 0.1, .widening = 0.5, .settled = 10};
    double w_hat[LAMBDA] = {}, scores[LAMBDA];
    for (int i = 0; i < LAMBDA / 2; ++i) {
        w_hat[i] = 2.0 / LAMBDA * (1 + 0.01 * (3 - i));
        scores[i] = 0.1 - 0.01 * i, scores[LAMBDA - 1 - i] = -scores[i];
    }
    AutoSearch<T> search(dim, LAMBDA, constants, noise, w_hat, scores, some_rates().data(),
                         DrawAddress{1, 0, 0});
    search.make_room(4);
    generations<T>(kernels, search, dim);
}

template <class T>
static void run(const CrFmNesKernels<T>& kernels, int64_t dim, bool store_draws) {
    const double root = std::sqrt(static_cast<double>(dim));
    const Setup setup{.dim = dim, .popsize = LAMBDA, .safe = true, .store_draws = store_draws};
    const Constants constants{.chi_n = root, .c_sigma = 0.1, .scale_sigma = 0.5, .c_c = 0.1,
                              .scale_c = 0.5, .long_v = 20, .largest_step = 0.7, .D_limit = 1e15,
                              .v_min = 1e-4, .v_max = 1e7};
    double w_hat[LAMBDA] = {};
    for (int i = 0; i < LAMBDA / 2; ++i) w_hat[i] = 2.0 / LAMBDA * (1 + 0.01 * (3 - i));
    CrFmNes<T> search(setup, constants, w_hat, some_rates().data(), DrawAddress{1, 0, 0});
    for (int64_t j = 0; j < dim; ++j) search.v[j] = static_cast<T>(1 / root);
    generations<T>(kernels, search, dim);
}

int main() {
    for (int64_t dim : {3, 10, 131, 5000}) {
        for (bool store_draws : {true, false}) {
            run(FMNES_LEVEL::kernels.cr_fm_nes_64, dim, store_draws);
            run(FMNES_LEVEL::kernels.cr_fm_nes_32, dim, store_draws);
        }
        run_auto(*FMNES_LEVEL::kernels.auto_64, dim);
        run_auto(*FMNES_LEVEL::kernels.auto_32, dim);
    }
    std::printf("%016llx\n", static_cast<unsigned long long>(hash));
}
