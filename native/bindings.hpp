// What the files of glue share. Only these and module.cpp know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

namespace fmnes {

namespace nb = nanobind;

template <class T, int N>
using Input = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Output = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// "f: expected 10 values, got 9"
inline void expect(const char* argument, int64_t expected, const char* what, size_t got) {
    if (static_cast<size_t>(expected) == got) return;
    const std::string text = std::string(argument) + ": expected " + std::to_string(expected) +
                             " " + what + ", got " + std::to_string(got);
    throw nb::value_error(text.c_str());
}

// Let other Python threads run during calls of some microseconds and more.
constexpr int64_t WORTH_A_RELEASE = 4096;  // numbers touched

class Unlocked {
  public:
    explicit Unlocked(int64_t numbers)
        : state_(numbers >= WORTH_A_RELEASE ? PyEval_SaveThread() : nullptr) {}
    ~Unlocked() {
        if (state_ != nullptr) PyEval_RestoreThread(state_);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    PyThreadState* state_;
};

void bind_cr_fm_nes(nb::module_& m);
void bind_draws(nb::module_& m);
void bind_primitives(nb::module_& m);
void bind_problems(nb::module_& m);

}  // namespace fmnes
