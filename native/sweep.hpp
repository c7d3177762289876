// Loops over vectors: eight lanes at a time, in blocks whose results are put together in order, so
// that the number of threads changes no bit.
#pragma once

#include <limits>

#include "cr_fm_nes.hpp"
#include "functions.hpp"
#include "threads.hpp"

namespace fmnes::FMNES_LEVEL {

// Rough costs of one number in nanoseconds; they only decide where threads pay.
constexpr double DRAW_NS = 3, WRITE_NS = 0.5, SUM_NS = 0.7, SWEEP_NS = 1;
constexpr double THREAD_NS = 1e5;  // work that is worth a thread, which takes some 20 us to start

FMNES_INLINE int threads_for(double work_ns) {
    const double worth = work_ns / THREAD_NS;
    const int most = num_threads();
    return worth >= most ? most : worth < 1 ? 1 : static_cast<int>(worth);
}

// Which of eight lanes hold coordinates: all of them, but for the last eight of a vector.
struct All {};
FMNES_INLINE f64 select(All, f64 yes, f64) { return yes; }
FMNES_INLINE u64 operator&(u64 a, All) { return a; }

FMNES_INLINE u64 first_lanes(int64_t count) {
    uint64_t mask[LANES];
    for (int i = 0; i < LANES; ++i) mask[i] = i < count ? ~uint64_t{0} : 0;
    return load_u64(mask);
}

template <int N>
struct Totals {
    double of[N > 0 ? N : 1];
};

// Call body(j, live, acc) for the coordinates j to j + 7 of every eight, `live` saying which of
// them exist. Of the numbers that the body collects, acc[0] to acc[ADDED - 1] are added over all
// lanes, of the MOST after them the largest is taken, and of the LOGS after these, which the body
// multiplies by numbers from 1 to 2, the logarithms are added.
template <int ADDED, int MOST, int LOGS, class T, class Body>
Totals<ADDED + MOST + LOGS> sweep(CrFmNes<T>& s, Body body) {
    constexpr int N = ADDED + MOST + LOGS;
    static_assert(N <= COLLECTED);
    static_assert(BLOCK * GROUP / LANES < 1000);  // so that their products stay below 2^1000
    const int64_t dim = s.is.dim, length = BLOCK * GROUP;
    const double least = -std::numeric_limits<double>::infinity();
    const int threads = threads_for(SWEEP_NS * static_cast<double>(dim));
    parallel_for(s.blocks, threads, [&](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block) {
            f64 acc[N > 0 ? N : 1];
            for (int k = 0; k < N; ++k)
                acc[k] = f64(k < ADDED ? 0 : k < ADDED + MOST ? least : 1);
            const int64_t end = (block + 1) * length < dim ? (block + 1) * length : dim;
            int64_t j = block * length;
            for (; j + LANES <= end; j += LANES) body(j, All{}, acc);
            if (j < end) body(j, first_lanes(end - j), acc);
            double* partial = s.partial + block * s.partial_width;
            for (int k = 0; k < ADDED; ++k) partial[k] = sum(acc[k]);
            for (int k = ADDED; k < ADDED + MOST; ++k) partial[k] = highest(acc[k]);
            for (int k = ADDED + MOST; k < N; ++k) partial[k] = sum(log(acc[k]));
        }
    });
    Totals<N> all;
    for (int k = 0; k < N; ++k) {
        all.of[k] = s.partial[k];
        for (int64_t block = 1; block < s.blocks; ++block) {
            const double next = s.partial[block * s.partial_width + k];
            const bool most = k >= ADDED && k < ADDED + MOST;
            all.of[k] = !most ? all.of[k] + next : all.of[k] < next ? next : all.of[k];
        }
    }
    return all;
}

}  // namespace fmnes::FMNES_LEVEL
