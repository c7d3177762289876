// The table of kernels: one of these is filled for every instruction level.
//
// level.cpp is compiled once for each level, with that level's flags and FMNES_LEVEL set to its
// name. Everything it includes lives in the namespace fmnes::FMNES_LEVEL: a linker keeps one copy
// of every inline function of the same name, and without a namespace of its own for each level the
// baseline could end up with instructions that the machine does not have. For the same reason
// level.cpp and its headers call no inline functions of the standard library that are not sure to
// be inlined (std::sort, std::vector): a test looks at the symbols.

#pragma once

#include <cstdint>

namespace fmnes {

struct Kernels {
    const char* level;
    // Sum of n numbers: something to dispatch until there are kernels.
    double (*sum)(const double* x, int64_t n);
};

}  // namespace fmnes
