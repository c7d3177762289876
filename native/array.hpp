// Memory of one search: aligned to cache lines, and freed with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fmnes {

// Zeros. Large pieces come from the system by themselves, in huge pages where it has them: passes
// over many vectors at once would else spend their time on address translation. What is never
// touched costs nothing, and all of it goes back when it is released.
void* allocate(size_t bytes);
void release(void* data, size_t bytes);

template <class X>
class Array {
  public:
    explicit Array(int64_t count)
        : bytes_(static_cast<size_t>(count) * sizeof(X)),
          data_(static_cast<X*>(allocate(bytes_))) {}

    Array(int64_t count, X value) : Array(count) {
        for (int64_t i = 0; i < count; ++i) data_[i] = value;
    }

    ~Array() { release(data_, bytes_); }

    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    void resize(int64_t count) {  // what it held is lost
        release(data_, bytes_);
        data_ = nullptr, bytes_ = 0;  // should the next line throw
        const size_t bytes = static_cast<size_t>(count) * sizeof(X);
        data_ = static_cast<X*>(allocate(bytes));
        bytes_ = bytes;
    }

    operator X*() const { return data_; }

  private:
    size_t bytes_;
    X* data_;
};

}  // namespace fmnes
