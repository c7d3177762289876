#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace fmnes {

static std::atomic<int> number{1};

int num_threads() { return number.load(std::memory_order_relaxed); }

void set_num_threads(int n) { number.store(n, std::memory_order_relaxed); }

void parallel_ranges(int64_t blocks, int threads, void (*run)(void*, int64_t, int64_t),
                     void* data) {
    const int64_t parts = std::min<int64_t>(blocks, threads);
    const auto start_of = [&](int64_t part) {  // lengths differ by at most one block
        return blocks / parts * part + std::min(part, blocks % parts);
    };
    std::vector<std::thread> others;
    others.reserve(static_cast<size_t>(parts - 1));
    int64_t part = 1;
    try {
        for (; part < parts; ++part)
            others.emplace_back(run, data, start_of(part), start_of(part + 1));
    } catch (const std::system_error&) {
        run(data, start_of(part), blocks);  // no more threads: compute the rest here
    }
    run(data, 0, start_of(1));
    for (std::thread& other : others) other.join();
}

}  // namespace fmnes
