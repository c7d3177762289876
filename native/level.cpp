// The kernels of one instruction level. This file is compiled once for each (see kernels.hpp).

#include "kernels.hpp"
#include "normals.hpp"
#include "primitives.hpp"
#include "problems.hpp"
#include "shape.hpp"

#define FMNES_TEXT_(name) #name
#define FMNES_TEXT(name) FMNES_TEXT_(name)

namespace fmnes::FMNES_LEVEL {

extern const AutoKernels<double> auto_64;
extern const AutoKernels<float> auto_32;

extern const Kernels kernels;
const Kernels kernels = {
    .level = FMNES_TEXT(FMNES_LEVEL),
    .cr_fm_nes_64 = {ask<double>, tell<double>, look<double>, deviations<double>},
    .cr_fm_nes_32 = {ask<float>, tell<float>, look<float>, deviations<float>},
    .auto_64 = &auto_64,
    .auto_32 = &auto_32,
    .normals_64 = normals<double>,
    .normals_32 = normals<float>,
    .words = words,
    .normals_of_words = normals_of_words,
    .log_and_exp = log_and_exp,
    .problems_64 = {weighted_sphere<double>, two_scales<double>, rosenbrock<double>,
                    rastrigin<double>, halfspaces<double>},
    .problems_32 = {weighted_sphere<float>, two_scales<float>, rosenbrock<float>, rastrigin<float>,
                    halfspaces<float>},
    .primitives_64 = {row_products<double>, candidates<double>, moments<double>},
    .primitives_32 = {row_products<float>, candidates<float>, moments<float>},
};

}  // namespace fmnes::FMNES_LEVEL
