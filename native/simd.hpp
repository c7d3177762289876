// Eight lanes of float64 or uint64, at every instruction level.
//
// Each level packs the same eight lanes into the registers it has: one of AVX-512, two of AVX2,
// four of SSE2 or NEON. Every operation is a single IEEE operation on each lane, and no level
// contracts a*b + c into a fused operation. So all levels give the same bits.
//
// This header is compiled once for each level, in a namespace of its own (FMNES_LEVEL).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "compiler.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC about its own headers
#endif
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace fmnes::FMNES_LEVEL {

constexpr int LANES = 8;

#if defined(__GNUC__)
#if defined(__AVX512F__)
constexpr int WIDTH = 8;  // lanes of one register
#elif defined(__AVX2__)
constexpr int WIDTH = 4;
#else
constexpr int WIDTH = 2;
#endif
typedef double f64w __attribute__((vector_size(8 * WIDTH)));
typedef uint64_t u64w __attribute__((vector_size(8 * WIDTH)));
#else  // a compiler without vector types: eight numbers, in loops that it may vectorize
constexpr int WIDTH = 1;
typedef double f64w;
typedef uint64_t u64w;
#endif
constexpr int PARTS = LANES / WIDTH;  // registers of eight lanes

// P registers of float64, and of uint64.
template <int P>
struct Bits;

#define FMNES_BINARY(TYPE, OP)                                                        \
    friend FMNES_INLINE TYPE operator OP(TYPE a, TYPE b) {                            \
        FMNES_UNROLL for (int i = 0; i < P; ++i) a.part[i] = a.part[i] OP b.part[i];  \
        return a;                                                                     \
    }

template <int P>
struct Floats {
    f64w part[P];
    Floats() = default;
    FMNES_INLINE Floats(double x) {
        FMNES_UNROLL for (int i = 0; i < P; ++i) part[i] = x - f64w{};
    }
    FMNES_BINARY(Floats, +)
    FMNES_BINARY(Floats, -)
    FMNES_BINARY(Floats, *)
    FMNES_BINARY(Floats, /)

    // All bits of a lane set where a < b; none where either is NaN.
    friend FMNES_INLINE Bits<P> operator<(Floats a, Floats b) {
        Bits<P> mask;
        FMNES_UNROLL for (int i = 0; i < P; ++i) {
#if defined(__GNUC__)
            mask.part[i] = (u64w)(a.part[i] < b.part[i]);
#else
            mask.part[i] = a.part[i] < b.part[i] ? ~uint64_t{0} : 0;
#endif
        }
        return mask;
    }
};

template <int P>
struct Bits {
    u64w part[P];
    Bits() = default;
    FMNES_INLINE Bits(uint64_t x) {
        FMNES_UNROLL for (int i = 0; i < P; ++i) part[i] = x - u64w{};
    }
    FMNES_BINARY(Bits, +)
    FMNES_BINARY(Bits, -)
    FMNES_BINARY(Bits, &)
    FMNES_BINARY(Bits, |)
    FMNES_BINARY(Bits, ^)

    friend FMNES_INLINE Bits operator<<(Bits a, int bits) {
        FMNES_UNROLL for (int i = 0; i < P; ++i) a.part[i] = a.part[i] << bits;
        return a;
    }
    friend FMNES_INLINE Bits operator>>(Bits a, int bits) {
        FMNES_UNROLL for (int i = 0; i < P; ++i) a.part[i] = a.part[i] >> bits;
        return a;
    }
};
#undef FMNES_BINARY

using f64 = Floats<PARTS>;
using u64 = Bits<PARTS>;

// The same bits read as the other type. (Register by register: a compiler would copy a whole struct
// through memory.)
template <int P>
FMNES_INLINE Floats<P> as_f64(Bits<P> a) {
    Floats<P> b;
    FMNES_UNROLL for (int i = 0; i < P; ++i) std::memcpy(&b.part[i], &a.part[i], sizeof(f64w));
    return b;
}

template <int P>
FMNES_INLINE Bits<P> as_u64(Floats<P> a) {
    Bits<P> b;
    FMNES_UNROLL for (int i = 0; i < P; ++i) std::memcpy(&b.part[i], &a.part[i], sizeof(f64w));
    return b;
}

template <int P>
FMNES_INLINE Floats<P> select(Bits<P> mask, Floats<P> yes, Floats<P> no) {
    return as_f64((as_u64(yes) & mask) | (as_u64(no) & (mask ^ Bits<P>(~uint64_t{0}))));
}

// `yes` where the top bit is set.
template <int P>
FMNES_INLINE Floats<P> select_by_sign(Bits<P> a, Floats<P> yes, Floats<P> no) {
#if defined(__AVX512DQ__)
    FMNES_UNROLL for (int i = 0; i < P; ++i) {
        const __mmask8 mask = _mm512_movepi64_mask((__m512i)a.part[i]);
        no.part[i] = (f64w)_mm512_mask_mov_pd((__m512d)no.part[i], mask, (__m512d)yes.part[i]);
    }
    return no;
#elif defined(__AVX2__)
    FMNES_UNROLL for (int i = 0; i < P; ++i) {
        no.part[i] = (f64w)_mm256_blendv_pd((__m256d)no.part[i], (__m256d)yes.part[i],
                                            (__m256d)a.part[i]);
    }
    return no;
#else
    return select(Bits<P>(0) - (a >> 63), yes, no);
#endif
}

// a < b ? a : b, and b < a ? a : b, as x86 computes them: b if either is NaN.
template <int P>
FMNES_INLINE Floats<P> min(Floats<P> a, Floats<P> b) {
#if defined(__AVX512F__)
    FMNES_UNROLL for (int i = 0; i < P; ++i)
        a.part[i] = (f64w)_mm512_min_pd((__m512d)a.part[i], (__m512d)b.part[i]);
    return a;
#elif defined(__AVX2__)
    FMNES_UNROLL for (int i = 0; i < P; ++i)
        a.part[i] = (f64w)_mm256_min_pd((__m256d)a.part[i], (__m256d)b.part[i]);
    return a;
#else
    return select(a < b, a, b);
#endif
}

template <int P>
FMNES_INLINE Floats<P> max(Floats<P> a, Floats<P> b) {
#if defined(__AVX512F__)
    FMNES_UNROLL for (int i = 0; i < P; ++i)
        a.part[i] = (f64w)_mm512_max_pd((__m512d)a.part[i], (__m512d)b.part[i]);
    return a;
#elif defined(__AVX2__)
    FMNES_UNROLL for (int i = 0; i < P; ++i)
        a.part[i] = (f64w)_mm256_max_pd((__m256d)a.part[i], (__m256d)b.part[i]);
    return a;
#else
    return select(b < a, a, b);
#endif
}

template <int P>
FMNES_INLINE Floats<P> abs(Floats<P> a) {
    return as_f64(as_u64(a) & Bits<P>(~(uint64_t{1} << 63)));
}

template <int P>
FMNES_INLINE Floats<P> sqrt(Floats<P> a) {
    FMNES_UNROLL for (int i = 0; i < P; ++i) {
#if defined(__AVX512F__)
        a.part[i] = (f64w)_mm512_sqrt_pd((__m512d)a.part[i]);
#elif defined(__AVX2__)
        a.part[i] = (f64w)_mm256_sqrt_pd((__m256d)a.part[i]);
#elif defined(__GNUC__) && defined(__x86_64__)
        a.part[i] = (f64w)_mm_sqrt_pd((__m128d)a.part[i]);
#elif defined(__GNUC__) && defined(__aarch64__)
        a.part[i] = (f64w)vsqrtq_f64((float64x2_t)a.part[i]);
#else
        a.part[i] = std::sqrt(a.part[i]);
#endif
    }
    return a;
}

// The 64-bit products of the low 32 bits of each lane.
template <int P>
FMNES_INLINE Bits<P> multiply_low(Bits<P> a, Bits<P> b) {
    FMNES_UNROLL for (int i = 0; i < P; ++i) {
#if defined(__AVX512F__)
        a.part[i] = (u64w)_mm512_mul_epu32((__m512i)a.part[i], (__m512i)b.part[i]);
#elif defined(__AVX2__)
        a.part[i] = (u64w)_mm256_mul_epu32((__m256i)a.part[i], (__m256i)b.part[i]);
#elif defined(__GNUC__) && defined(__x86_64__)
        a.part[i] = (u64w)_mm_mul_epu32((__m128i)a.part[i], (__m128i)b.part[i]);
#elif defined(__GNUC__) && defined(__aarch64__)
        a.part[i] = (u64w)vmull_u32(vmovn_u64((uint64x2_t)a.part[i]),
                                    vmovn_u64((uint64x2_t)b.part[i]));
#else
        a.part[i] = (a.part[i] & 0xffffffffu) * (b.part[i] & 0xffffffffu);
#endif
    }
    return a;
}

// === Memory: float32 numbers are widened when they are loaded and rounded when they are stored ===

template <class T>
FMNES_INLINE f64 load(const T* p) {
    f64 a;
    if constexpr (sizeof(T) == sizeof(double)) {
        FMNES_UNROLL for (int i = 0; i < PARTS; ++i)
            std::memcpy(&a.part[i], p + i * WIDTH, sizeof(f64w));
    } else {
#if defined(__AVX512F__)
        a.part[0] = (f64w)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX2__)
        for (int i = 0; i < PARTS; ++i)
            a.part[i] = (f64w)_mm256_cvtps_pd(_mm_loadu_ps(p + i * WIDTH));
#else
        double wide[LANES];
        for (int i = 0; i < LANES; ++i) wide[i] = p[i];
        return load(wide);
#endif
    }
    return a;
}

template <class T>
FMNES_INLINE void store(T* p, f64 a) {
    if constexpr (sizeof(T) == sizeof(double)) {
        FMNES_UNROLL for (int i = 0; i < PARTS; ++i)
            std::memcpy(p + i * WIDTH, &a.part[i], sizeof(f64w));
    } else {
#if defined(__AVX512F__)
        _mm256_storeu_ps(p, _mm512_cvtpd_ps((__m512d)a.part[0]));
#elif defined(__AVX2__)
        for (int i = 0; i < PARTS; ++i)
            _mm_storeu_ps(p + i * WIDTH, _mm256_cvtpd_ps((__m256d)a.part[i]));
#else
        double wide[LANES];
        store(wide, a);
        for (int i = 0; i < LANES; ++i) p[i] = static_cast<float>(wide[i]);
#endif
    }
}

FMNES_INLINE u64 load_u64(const uint64_t* p) {
    u64 a;
    FMNES_UNROLL for (int i = 0; i < PARTS; ++i)
        std::memcpy(&a.part[i], p + i * WIDTH, sizeof(u64w));
    return a;
}

template <class T>
FMNES_INLINE void store_first(T* p, f64 a, int64_t count) {
    T all[LANES];
    store(all, a);
    std::memcpy(p, all, static_cast<size_t>(count) * sizeof(T));
}

// The nearest numbers of type T.
template <class T>
FMNES_INLINE f64 rounded(f64 a) {
    if constexpr (sizeof(T) == sizeof(double)) return a;
    T narrow[LANES];
    store(narrow, a);
    return load(narrow);
}

// === From eight lanes to one number, in a fixed order ===

FMNES_INLINE double sum(f64 a) {
    double x[LANES];
    store(x, a);
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

FMNES_INLINE double highest(f64 a) {
    double x[LANES];
    store(x, a);
    double most = x[0];
    for (int i = 1; i < LANES; ++i) most = x[i] > most ? x[i] : most;
    return most;
}

}  // namespace fmnes::FMNES_LEVEL
