#include "array.hpp"

#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fmnes {

constexpr std::align_val_t LINE{64};
constexpr size_t LARGE = size_t{1} << 21;  // a huge page

void* allocate(size_t bytes) {
#if defined(__linux__)
    if (bytes >= LARGE) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
        void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (data == MAP_FAILED) throw std::bad_alloc();
        madvise(data, bytes, MADV_HUGEPAGE);  // a hint: it may fail without harm
        return data;
    }
#endif
    return std::memset(::operator new(bytes, LINE), 0, bytes);
}

void release(void* data, size_t bytes) {
#if defined(__linux__)
    if (bytes >= LARGE) {
        munmap(data, bytes);
        return;
    }
#endif
    ::operator delete(data, LINE);
}

}  // namespace fmnes
