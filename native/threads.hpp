// The number of threads, and a loop over blocks that uses them.
//
// There is no thread pool. A loop starts its threads and joins them before it returns. That costs
// some 10 to 20 microseconds for each thread, so that only work of hundreds of microseconds uses
// threads. In return nothing outlives a call: a child of fork() misses no workers and inherits no
// held lock, Python threads never wait for each other's loops, and nothing has to be shut down.

#pragma once

#include <cstdint>

namespace fmnes {

int num_threads();
void set_num_threads(int n);  // n >= 1

// Call run(data, first, last) on contiguous ranges that make up [0, blocks), on at most `threads`
// threads including the caller's; return when all of them are done. If the system refuses to start
// a thread, the caller computes the remaining ranges.
void parallel_ranges(int64_t blocks, int threads, void (*run)(void*, int64_t, int64_t), void* data);

// The same for anything that can be called as f(first, last) and does not throw. The result for a
// block must not depend on the range that it is part of, so that the number of threads changes no
// bit. Only this wrapper is a template: the code that starts threads is compiled once, not for
// every instruction level.
template <class F>
void parallel_for(int64_t blocks, int threads, F f) {
    if (threads <= 1 || blocks <= 1) {
        if (blocks > 0) f(int64_t{0}, blocks);
        return;
    }
    parallel_ranges(
        blocks, threads,
        [](void* data, int64_t first, int64_t last) { (*static_cast<F*>(data))(first, last); }, &f);
}

}  // namespace fmnes
