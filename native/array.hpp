// Memory of one search: zeros at first, aligned to cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "compiler.hpp"

namespace fmnes {

// Zeroed memory. A large piece is mapped by itself, in huge pages where the system has them:
// passes over many vectors at once would otherwise spend their time on address translation. Pages
// that are never touched take no memory, and all of it returns to the system on release.
void* allocate(size_t bytes);
void release(void* data, size_t bytes);

template <class X>
class Array {
  public:
    explicit Array(int64_t count)
        : bytes_(bytes_of(count)), data_(static_cast<X*>(allocate(bytes_))) {}

    Array(int64_t count, X value) : Array(count) {
        for (X& x : *this) x = value;
    }

    ~Array() { release(data_, bytes_); }

    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    void resize(int64_t count) {  // the old content is lost
        const size_t bytes = bytes_of(count);
        release(data_, bytes_);
        data_ = nullptr, bytes_ = 0;  // should allocate() throw
        data_ = static_cast<X*>(allocate(bytes));
        bytes_ = bytes;
    }

    FMNES_INLINE X* data() { return data_; }
    FMNES_INLINE const X* data() const { return data_; }
    FMNES_INLINE X& operator[](int64_t i) { return data_[i]; }
    FMNES_INLINE const X& operator[](int64_t i) const { return data_[i]; }
    FMNES_INLINE int64_t size() const { return static_cast<int64_t>(bytes_ / sizeof(X)); }
    FMNES_INLINE X* begin() { return data_; }
    FMNES_INLINE X* end() { return data_ + size(); }
    FMNES_INLINE const X* begin() const { return data_; }
    FMNES_INLINE const X* end() const { return data_ + size(); }

  private:
    static size_t bytes_of(int64_t count) {
        constexpr int64_t MOST = std::numeric_limits<int64_t>::max() / sizeof(X);
        if (count < 0 || count > MOST) throw std::bad_array_new_length();
        return static_cast<size_t>(count) * sizeof(X);
    }

    size_t bytes_;
    X* data_;
};

}  // namespace fmnes
