// What depends on the compiler: how to insist on inlining and unrolling.
//
// Level code (see kernels.hpp) may call a function of the namespace fmnes only if it is inlined for
// certain: every level must have a copy of its own.
#pragma once

#if defined(__GNUC__)
#define FMNES_INLINE inline __attribute__((always_inline))
#define FMNES_LAMBDA __attribute__((always_inline))
#define FMNES_UNROLL _Pragma("GCC unroll 8")
#else
#define FMNES_INLINE inline
#define FMNES_LAMBDA
#define FMNES_UNROLL
#endif
