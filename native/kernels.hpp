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

#include "cr_fm_nes.hpp"
#include "matrix.hpp"

namespace fmnes {

template <class T>
struct CrFmNesKernels {
    // Candidates first to last - 1 into rows of `out`, `stride` numbers apart.
    void (*ask)(CrFmNes<T>&, T* out, int64_t stride, int64_t first, int64_t last);
    // One generation; a candidate better than best_so_far is written to `best`.
    void (*tell)(CrFmNes<T>&, const double* f, double best_so_far);
    // Whatever follows from a state that was just set.
    void (*look)(CrFmNes<T>&);
    // The standard deviation of each coordinate, in `groups` whole groups.
    void (*deviations)(CrFmNes<T>&, T* out);
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

// What the linear-time methods do with draws z; see primitives.hpp.
template <class T>
struct PrimitiveKernels {
    void (*row_products)(const Matrix<T>& z, const T* vbar, double* partial, T* a, T* norm2);
    void (*candidates)(const Matrix<T>& z, const T* mean, const T* scale, const T* c,
                       const T* vbar, bool mirrored, T* out);
    void (*moments)(const Matrix<T>& z, const T* const (&w)[SUMS], T* const (&sums)[SUMS]);
};

struct Kernels {
    const char* level;
    CrFmNesKernels<double> cr_fm_nes_64;
    CrFmNesKernels<float> cr_fm_nes_32;
    // Rows first to last - 1 of the draws of an address, shape (last - first, dim).
    void (*normals_64)(const Address&, int64_t first, int64_t last, int64_t dim, double* out);
    void (*normals_32)(const Address&, int64_t first, int64_t last, int64_t dim, float* out);
    // The four words of each block, shape (blocks, 4), and what `box_muller` makes of them.
    void (*words)(const Address&, int64_t row, int64_t blocks, uint32_t* out);
    void (*normals_of_words)(const uint32_t* words, int64_t blocks, double* first, double* second);
    // The functions that the kernels use beside those of the draws: for tests.
    void (*log_and_exp)(const double* x, int64_t count, double* logs, double* exps);
    ProblemKernels<double> problems_64;
    ProblemKernels<float> problems_32;
    PrimitiveKernels<double> primitives_64;
    PrimitiveKernels<float> primitives_32;
};

}  // namespace fmnes
