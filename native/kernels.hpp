// The table of kernels: there is one for every instruction level.
//
// level.cpp is compiled once for each level, with that level's flags and FMNES_LEVEL set to its
// name. Its code lives in the namespace fmnes::FMNES_LEVEL: a linker keeps one copy of every inline
// function of the same name, and without a namespace of its own for each level the baseline could
// end up with instructions that the machine does not have. For the same reason that code calls no
// inline functions of other namespaces unless they are always inlined: nothing like std::sort or
// std::vector. tests/native/test_build.py checks the symbols.

#pragma once

#include <cstdint>

#include "auto.hpp"
#include "cr_fm_nes.hpp"
#include "matrix.hpp"

namespace fmnes {

template <class T>
struct CrFmNesKernels {
    // Candidates first to last - 1 into rows of `out`, `stride` numbers apart.
    void (*ask)(CrFmNes<T>&, T* out, int64_t stride, int64_t first, int64_t last);
    // One generation from the values f; a candidate better than best_so_far is written to `best`.
    void (*tell)(CrFmNes<T>&, const double* f, double best_so_far);
    // After a new state: its phase, and what it shows.
    void (*look)(CrFmNes<T>&);
    // The standard deviation of each coordinate, in `groups` whole groups.
    void (*deviations)(CrFmNes<T>&, T* out);
};

// The same for the method auto.
template <class T>
struct AutoKernels {
    void (*ask)(AutoSearch<T>&, T* out, int64_t stride, int64_t first, int64_t last);
    void (*tell)(AutoSearch<T>&, const double* f, double best_so_far);
    void (*look)(AutoSearch<T>&);
    void (*deviations)(AutoSearch<T>&, T* out);
};

// The values of rows x; `partial` has room for a number for each piece of each row.
template <class T>
using PlainProblem = void(const Matrix<T>& x, double* partial, double* out);

template <class T>
struct ProblemKernels {
    void (*weighted_sphere)(const Matrix<T>& x, const double* scale, double* partial, double* out);
    void (*two_scales)(const Matrix<T>& x, const double* u, double along, double across,
                       const double* scale, double* partial, double* a, double* out);
    PlainProblem<T>*rosenbrock, *rastrigin, *halfspaces;
};

// The passes of the linear-time methods over draws z; see primitives.hpp.
template <class T>
struct PrimitiveKernels {
    void (*row_products)(const Matrix<T>& z, const T* vbar, double* partial, T* a, T* norm2);
    void (*candidates)(const Matrix<T>& z, const T* mean, const T* scale, const T* c,
                       const T* vbar, bool mirrored, T* out);
    void (*moments)(const Matrix<T>& z, const T* const (&w)[MOMENTS], T* const (&sums)[MOMENTS]);
};

struct Kernels {
    const char* level;
    CrFmNesKernels<double> cr_fm_nes_64;
    CrFmNesKernels<float> cr_fm_nes_32;
    const AutoKernels<double>* auto_64;  // in level_auto.cpp
    const AutoKernels<float>* auto_32;
    // Rows first to last - 1 of the draws of an address, shape (last - first, dim).
    void (*normals_64)(const DrawAddress&, int64_t first, int64_t last, int64_t dim, double* out);
    void (*normals_32)(const DrawAddress&, int64_t first, int64_t last, int64_t dim, float* out);
    // The four words of each block, shape (blocks, 4), and what `box_muller` makes of them.
    void (*words)(const DrawAddress&, int64_t row, int64_t blocks, uint32_t* out);
    void (*normals_of_words)(const uint32_t* words, int64_t blocks, double* first, double* second);
    // ln and exp as the kernels compute them, for tests.
    void (*log_and_exp)(const double* x, int64_t count, double* logs, double* exps);
    ProblemKernels<double> problems_64;
    ProblemKernels<float> problems_32;
    PrimitiveKernels<double> primitives_64;
    PrimitiveKernels<float> primitives_32;
};

}  // namespace fmnes
