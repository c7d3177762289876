// The extension fmnes.kernels._native. Only this file and the bind_*.cpp know Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

std::string compiler() {
#if defined(__clang__)
    return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) +
           "." + std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
    return "GCC " __VERSION__;
#elif defined(_MSC_VER)
    return "MSVC " + std::to_string(_MSC_VER);
#else
    return "unknown";
#endif
}

std::vector<std::string> levels(bool only_here) {
    std::vector<std::string> names;
    for (const fmnes::Kernels* table : fmnes::built())
        if (!only_here || fmnes::runs_here(table->level)) names.emplace_back(table->level);
    return names;
}

void set_level(const std::string& name) {
    if (fmnes::set_level(name)) return;
    std::string expected;
    for (const std::string& one : levels(true)) expected += (expected.empty() ? "" : ", ") + one;
    fmnes::refuse("level: expected one that this machine runs (" + expected + "), got '" + name +
                  "'");
}

void set_num_threads(int n) {
    if (n < 1) fmnes::refuse("n: expected a number of threads >= 1, got " + std::to_string(n));
    fmnes::set_num_threads(n);
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The compiled kernels of fmnes.";
    fmnes::bind_auto(m);
    fmnes::bind_cr_fm_nes(m);
    fmnes::bind_draws(m);
    fmnes::bind_primitives(m);
    fmnes::bind_problems(m);
    m.def("compiler", &compiler);
    m.def("level", [] { return std::string(fmnes::kernels().level); });
    m.def("levels", [] { return levels(false); });
    m.def("levels_here", [] { return levels(true); });
    m.def("set_level", &set_level, "name"_a);
    m.def("num_threads", &fmnes::num_threads);
    m.def("set_num_threads", &set_num_threads, "n"_a);
}
