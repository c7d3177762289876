// The kernels of the method auto at one instruction level: see level.cpp.

#include "auto_tell.hpp"
#include "kernels.hpp"

namespace fmnes::FMNES_LEVEL {

extern const AutoKernels<double> auto_64;
extern const AutoKernels<float> auto_32;
const AutoKernels<double> auto_64 = {ask<double>, tell<double>, look<double>, deviations<double>};
const AutoKernels<float> auto_32 = {ask<float>, tell<float>, look<float>, deviations<float>};

}  // namespace fmnes::FMNES_LEVEL
