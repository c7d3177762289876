// Memory of one search: aligned to cache lines, and freed with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace fmnes {

template <class X>
class Array {
  public:
    // Room for `count` numbers, not yet written to: pages that are never used cost nothing.
    explicit Array(int64_t count)
        : data_(static_cast<X*>(::operator new(static_cast<size_t>(count) * sizeof(X), LINE))) {}

    Array(int64_t count, X value) : Array(count) {
        for (int64_t i = 0; i < count; ++i) data_[i] = value;
    }

    ~Array() { ::operator delete(data_, LINE); }

    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    operator X*() const { return data_; }

  private:
    static constexpr std::align_val_t LINE{64};
    X* data_;
};

}  // namespace fmnes
