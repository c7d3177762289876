// Glue: draws as arrays.

#include "bindings.hpp"
#include "dispatch.hpp"

namespace fmnes {

using namespace nb::literals;

// Philox has 32 bits for the row.
static void expect_rows(const char* argument, int64_t first, int64_t count) {
    constexpr int64_t ROWS = int64_t{1} << 32;
    if (first >= 0 && count <= ROWS && first <= ROWS - count) return;
    refuse(std::string(argument) + ": expected rows from 0 to 2^32 - 1, got " +
           std::to_string(count) + " from " + std::to_string(first));
}

template <class T>
using FillNormals = void(const DrawAddress&, int64_t first, int64_t last, int64_t dim, T* out);

template <class T>
static void bind_normals(nb::module_& m, FillNormals<T>* Kernels::*fill) {
    m.def(
        "normals",
        [fill](uint64_t seed, uint32_t stream, uint64_t generation, int64_t first,
               Output<T, 2> out) {
            const auto rows = static_cast<int64_t>(out.shape(0));
            const auto dim = static_cast<int64_t>(out.shape(1));
            expect_rows("first", first, rows);
            Unlocked unlocked(rows * dim);
            (kernels().*fill)(DrawAddress{seed, stream, generation}, first, first + rows, dim,
                              out.data());
        },
        "seed"_a, "stream"_a, "generation"_a, "first"_a, "out"_a.noconvert());
}

// Words and functions are computed eight at a time.
static void expect_eights(const char* argument, size_t got) {
    expect(argument, static_cast<int64_t>(got / 8 * 8), "rows, a multiple of 8", got);
}

void bind_draws(nb::module_& m) {
    bind_normals<double>(m, &Kernels::normals_64);
    bind_normals<float>(m, &Kernels::normals_32);
    m.def(
        "words",
        [](uint64_t seed, uint32_t stream, uint64_t generation, int64_t row,
           Output<uint32_t, 2> out) {
            expect_eights("out", out.shape(0));
            expect("out", 4, "columns", out.shape(1));
            expect_rows("row", row, 1);
            kernels().words(DrawAddress{seed, stream, generation}, row,
                            static_cast<int64_t>(out.shape(0)), out.data());
        },
        "seed"_a, "stream"_a, "generation"_a, "row"_a, "out"_a.noconvert());
    m.def(
        "normals_of_words",
        [](Input<uint32_t, 2> words, Output<double, 1> first, Output<double, 1> second) {
            const auto blocks = static_cast<int64_t>(words.shape(0));
            expect_eights("words", words.shape(0));
            expect("words", 4, "columns", words.shape(1));
            expect("first", blocks, "numbers", first.size());
            expect("second", blocks, "numbers", second.size());
            kernels().normals_of_words(words.data(), blocks, first.data(), second.data());
        },
        "words"_a, "first"_a.noconvert(), "second"_a.noconvert());
    m.def(
        "log_and_exp",
        [](Input<double, 1> x, Output<double, 1> logs, Output<double, 1> exps) {
            const auto count = static_cast<int64_t>(x.size());
            expect_eights("x", x.size());
            expect("logs", count, "numbers", logs.size());
            expect("exps", count, "numbers", exps.size());
            kernels().log_and_exp(x.data(), count, logs.data(), exps.data());
        },
        "x"_a, "logs"_a.noconvert(), "exps"_a.noconvert());
}

}  // namespace fmnes
