// Loops over vectors: eight lanes at a time, in blocks whose results are put together in order, so
// that the number of threads changes no bit.
#pragma once

#include <limits>

#include "cr_fm_nes.hpp"
#include "functions.hpp"
#include "threads.hpp"

namespace fmnes::FMNES_LEVEL {

// Rough costs of one number in nanoseconds. They only decide how many threads are started.
constexpr double DRAW_NS = 3, WRITE_NS = 0.5, SUM_NS = 0.7, SWEEP_NS = 1;
constexpr double THREAD_NS = 1e5;  // work that is worth a thread, which takes some 20 us to start

FMNES_INLINE int threads_for(double work_ns) {
    const double worth = work_ns / THREAD_NS;
    const int most = num_threads();
    return worth >= most ? most : worth < 1 ? 1 : static_cast<int>(worth);
}

// Which of eight lanes hold coordinates: all of them, except in the last eight of a vector.
struct All {};
FMNES_INLINE f64 select(All, f64 yes, f64) { return yes; }

FMNES_INLINE u64 first_lanes(int64_t count) {
    uint64_t mask[LANES];
    for (int i = 0; i < LANES; ++i) mask[i] = i < count ? ~uint64_t{0} : 0;
    return load_u64(mask);
}

// === What a pass over the coordinates collects ===
//
// A record of totals has a member of these types for each total, and a function each(f) that calls
// f with every member. `lanes` collects within a block, in_block() is the result for the block,
// joined() puts the results of two blocks together, and `total` is the result for all blocks.

constexpr double INF = std::numeric_limits<double>::infinity();

struct Sum {
    f64 lanes{0};
    double total = 0;
    FMNES_INLINE void add(f64 x) { lanes = lanes + x; }
    FMNES_INLINE double in_block() const { return sum(lanes); }
    static FMNES_INLINE double joined(double a, double b) { return a + b; }
};

struct Largest {
    f64 lanes{-INF};
    double total = 0;
    FMNES_INLINE void take(f64 x) { lanes = max(lanes, x); }
    template <class Lanes>
    FMNES_INLINE void take(f64 x, Lanes live) {
        take(select(live, x, f64(-INF)));
    }
    FMNES_INLINE double in_block() const { return highest(lanes); }
    static FMNES_INLINE double joined(double a, double b) { return a < b ? b : a; }
};

struct Smallest {
    f64 lanes{-INF};  // the largest of -x
    double total = 0;
    template <class Lanes>
    FMNES_INLINE void take(f64 x, Lanes live) {
        lanes = max(lanes, select(live, f64(0) - x, f64(-INF)));
    }
    FMNES_INLINE double in_block() const { return -highest(lanes); }
    static FMNES_INLINE double joined(double a, double b) { return b < a ? b : a; }
};

// The sum of the logarithms of numbers from 1 to 2: their product has one logarithm.
struct SumOfLogs {
    f64 lanes{1};
    double total = 0;
    FMNES_INLINE void add_log_of(f64 x) { lanes = lanes * x; }
    FMNES_INLINE double in_block() const { return sum(log(lanes)); }
    static FMNES_INLINE double joined(double a, double b) { return a + b; }
    static_assert(BLOCK * GROUP / LANES < 1000);  // the product of a block stays below 2^1000
};

struct LengthTotals {
    Sum norm2;

    template <class F>
    FMNES_INLINE void each(F f) {
        f(norm2);
    }
};

struct Nothing {
    template <class F>
    FMNES_INLINE void each(F) {}
};

// Store what was collected in a block.
template <class Totals, class Search>
FMNES_INLINE void keep_block(Search& s, int64_t block, Totals& totals) {
    static_assert(sizeof(Totals) <= COLLECTED * sizeof(Sum));
    double* kept = s.partial_of(block);
    totals.each([&](auto& one) FMNES_LAMBDA { *kept++ = one.in_block(); });
}

// Put the results of all blocks together, in order.
template <class Totals, class Search>
FMNES_INLINE Totals all_blocks(Search& s) {
    Totals totals;
    int64_t k = 0;
    totals.each([&](auto& one) FMNES_LAMBDA {
        one.total = s.partial_of(0)[k];
        for (int64_t block = 1; block < s.blocks; ++block)
            one.total = one.joined(one.total, s.partial_of(block)[k]);
        ++k;
    });
    return totals;
}

// Call body(j, live, totals) for the coordinates j to j + 7 of every eight, `live` saying which of
// them exist. Returns what the body has collected in a record of type Totals.
template <class Totals, class Search, class Body>
Totals sweep(Search& s, Body body) {
    constexpr int64_t LENGTH = BLOCK * GROUP;
    const int threads = threads_for(SWEEP_NS * static_cast<double>(s.dim));
    parallel_for(s.blocks, threads, [&](int64_t from, int64_t to) {
        for (int64_t block = from; block < to; ++block) {
            Totals totals;
            const int64_t end = (block + 1) * LENGTH < s.dim ? (block + 1) * LENGTH : s.dim;
            int64_t j = block * LENGTH;
            for (; j + LANES <= end; j += LANES) body(j, All{}, totals);
            if (j < end) body(j, first_lanes(end - j), totals);
            keep_block(s, block, totals);
        }
    });
    return all_blocks<Totals>(s);
}

}  // namespace fmnes::FMNES_LEVEL
