// The kernels of one instruction level; compiled once for each of them (see kernels.hpp).

#include "kernels.hpp"

#define FMNES_TEXT_(name) #name
#define FMNES_TEXT(name) FMNES_TEXT_(name)

namespace fmnes::FMNES_LEVEL {

static double sum(const double* x, int64_t n) {
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) total += x[i];
    return total;
}

extern const Kernels kernels;
const Kernels kernels = {
    .level = FMNES_TEXT(FMNES_LEVEL),
    .sum = sum,
};

}  // namespace fmnes::FMNES_LEVEL
