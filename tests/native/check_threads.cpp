// Compiled and run by test_threads.py: every block is computed once for any number of threads, also
// if the system refuses to start them.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "threads.hpp"

static void expect(bool holds, const char* what, long long blocks, int threads) {
    if (holds) return;
    std::printf("%s: blocks = %lld, threads = %d\n", what, blocks, threads);
    std::exit(1);
}

// The number of threads that took part.
static size_t check(int64_t blocks, int threads) {
    std::vector<int> done(static_cast<size_t>(blocks), 0);  // no lock: ranges must not overlap
    std::mutex guard;
    std::set<std::thread::id> who;
    int64_t ranges = 0;
    fmnes::parallel_for(blocks, threads, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++done[static_cast<size_t>(i)];
        const std::lock_guard lock(guard);
        expect(first < last, "an empty range", blocks, threads);
        who.insert(std::this_thread::get_id());
        ++ranges;
    });
    for (int times : done) expect(times == 1, "a block not done once", blocks, threads);
    expect(ranges <= threads && ranges <= blocks, "too many ranges", blocks, threads);
    return who.size();
}

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "refused") == 0) {
        // A stack of a gigabyte does not fit into half of that: no thread can be started.
        const rlimit stack = {rlim_t{1} << 30, rlim_t{1} << 30};
        const rlimit memory = {rlim_t{1} << 29, rlim_t{1} << 29};
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, size_t{1} << 30);
        pthread_setattr_default_np(&attributes);
        setrlimit(RLIMIT_STACK, &stack);
        setrlimit(RLIMIT_AS, &memory);
        expect(check(1000, 7) == 1, "a thread was started", 1000, 7);
        return 0;
    }
    for (int64_t blocks = 0; blocks < 40; ++blocks)
        for (int threads = 1; threads < 12; ++threads) check(blocks, threads);
    expect(check(1000, 4) == 4, "not every thread took part", 1000, 4);
    std::vector<std::thread> callers;  // regions of several callers at once
    for (int i = 0; i < 4; ++i) callers.emplace_back([] { check(1000, 3); });
    for (std::thread& caller : callers) caller.join();
    return 0;
}
