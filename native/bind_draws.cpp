// Glue: draws as arrays.

#include "bindings.hpp"
#include "dispatch.hpp"

namespace fmnes {

using namespace nb::literals;

template <class T, class Fill>
static void fill_normals(uint64_t seed, uint32_t stream, uint64_t generation, int64_t first,
                         Output<T, 2> out, Fill fill) {
    const auto rows = static_cast<int64_t>(out.shape(0)), dim = static_cast<int64_t>(out.shape(1));
    Unlocked unlocked(rows * dim);
    fill(Address{seed, stream, generation}, first, first + rows, dim, out.data());
}

void bind_draws(nb::module_& m) {
    m.def(
        "normals",
        [](uint64_t seed, uint32_t stream, uint64_t generation, int64_t first,
           Output<double, 2> out) {
            fill_normals(seed, stream, generation, first, out, kernels().normals_64);
        },
        "seed"_a, "stream"_a, "generation"_a, "first"_a, "out"_a.noconvert());
    m.def(
        "normals",
        [](uint64_t seed, uint32_t stream, uint64_t generation, int64_t first,
           Output<float, 2> out) {
            fill_normals(seed, stream, generation, first, out, kernels().normals_32);
        },
        "seed"_a, "stream"_a, "generation"_a, "first"_a, "out"_a.noconvert());
    m.def(
        "words",
        [](uint64_t seed, uint32_t stream, uint64_t generation, int64_t row,
           Output<uint32_t, 2> out) {
            if (out.shape(0) % 8 || out.shape(1) != 4)
                throw nb::value_error("out: expected shape (a multiple of 8, 4)");
            kernels().words(Address{seed, stream, generation}, row,
                            static_cast<int64_t>(out.shape(0)), out.data());
        },
        "seed"_a, "stream"_a, "generation"_a, "row"_a, "out"_a.noconvert());
    m.def(
        "normals_of_words",
        [](Input<uint32_t, 2> words, Output<double, 1> first, Output<double, 1> second) {
            if (words.shape(0) % 8 || words.shape(1) != 4 || first.size() != words.shape(0) ||
                second.size() != words.shape(0))
                throw nb::value_error("words: expected shape (a multiple of 8, 4)");
            kernels().normals_of_words(words.data(), static_cast<int64_t>(words.shape(0)),
                                       first.data(), second.data());
        },
        "words"_a, "first"_a.noconvert(), "second"_a.noconvert());
    m.def(
        "log_and_exp",
        [](Input<double, 1> x, Output<double, 1> logs, Output<double, 1> exps) {
            if (x.size() % 8 || logs.size() != x.size() || exps.size() != x.size())
                throw nb::value_error("x: expected a multiple of 8 numbers");
            kernels().log_and_exp(x.data(), static_cast<int64_t>(x.size()), logs.data(),
                                  exps.data());
        },
        "x"_a, "logs"_a.noconvert(), "exps"_a.noconvert());
}

}  // namespace fmnes
