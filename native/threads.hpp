// Threads: how many, and a loop over blocks that uses them.
//
// There is no pool. A region starts its threads and joins them before it returns, which costs some
// 10 to 20 microseconds each and is paid only where the work takes hundreds. In return nothing
// outlives a call: a child of fork() misses no workers and holds no lock, several Python threads
// never wait for each other's regions, and nothing has to be shut down.

#pragma once

#include <cstdint>

namespace fmnes {

int num_threads();
void set_num_threads(int n);  // n >= 1

// Call run(data, first, last) on contiguous ranges that make up [0, blocks), on up to so many
// threads, the caller's among them; returns when all is done. A thread that the system refuses to
// start means that the caller does its range.
void parallel_ranges(int64_t blocks, int threads, void (*run)(void*, int64_t, int64_t), void* data);

// The same for anything that can be called as f(first, last) and does not throw. What a range
// computes must not depend on where it begins and ends, so that the number of threads changes no
// bit of the result. Only this wrapper is a template: the code that starts threads is compiled once
// and not for every instruction level.
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
