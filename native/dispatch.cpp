#include "dispatch.hpp"

#include <atomic>

namespace fmnes {

// The levels of the build, from the plainest to the best; CMakeLists.txt has the same list.
#if defined(__x86_64__)  // not defined by MSVC, which builds the baseline only
namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }
static constexpr const Kernels* tables[] = {&baseline::kernels, &avx2::kernels, &avx512::kernels};
#elif defined(__aarch64__)
namespace neon { extern const Kernels kernels; }
static constexpr const Kernels* tables[] = {&neon::kernels};
#else
namespace baseline { extern const Kernels kernels; }
static constexpr const Kernels* tables[] = {&baseline::kernels};
#endif

std::span<const Kernels* const> built() { return tables; }

bool runs_here(std::string_view level) {
#if defined(__x86_64__)
    // The compiler's function also checks that the operating system saves the wide registers.
    if (level == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (level == "avx512")
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
#endif
    return level == tables[0]->level;  // every machine of this architecture runs it
}

static const Kernels* best() {
    const Kernels* best = tables[0];
    for (const Kernels* table : tables)
        if (runs_here(table->level)) best = table;
    return best;
}

static std::atomic<const Kernels*> chosen{best()};

const Kernels& kernels() { return *chosen.load(std::memory_order_relaxed); }

bool set_level(std::string_view level) {
    for (const Kernels* table : tables) {
        if (table->level == level && runs_here(level)) {
            chosen.store(table, std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

}  // namespace fmnes
