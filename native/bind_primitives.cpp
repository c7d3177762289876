// Glue: the passes of the linear-time methods over rows of draws.

#include <vector>

#include "bindings.hpp"
#include "dispatch.hpp"
#include "ranking.hpp"

namespace fmnes {

using namespace nb::literals;

static const PrimitiveKernels<double>& kernels_of(const Input<double, 2>&) {
    return kernels().primitives_64;
}
static const PrimitiveKernels<float>& kernels_of(const Input<float, 2>&) {
    return kernels().primitives_32;
}

template <class T>
static Matrix<T> matrix(const Input<T, 2>& z) {
    return {z.data(), static_cast<int64_t>(z.shape(0)), static_cast<int64_t>(z.shape(1))};
}

// The numbers of a vector, whose length is checked; null for None.
template <class Vector>
static auto vector(const char* name, const Vector& from, int64_t length) {
    if (from.is_valid()) expect(name, length, "numbers", from.size());
    return from.is_valid() ? from.data() : nullptr;
}

static void expect_both_or_neither(const char* names, const void* a, const void* b) {
    if ((a == nullptr) != (b == nullptr))
        refuse(std::string(names) + ": expected both or neither, got one");
}

template <class T>
static void row_products(Input<T, 2> z, Input<T, 1> vbar, Output<T, 1> a, Output<T, 1> norm2) {
    const Matrix<T> draws = matrix(z);
    const T* direction = vector("vbar", vbar, draws.dim);
    T *to_a = vector("a", a, draws.rows), *to_norm2 = vector("norm2", norm2, draws.rows);
    expect_both_or_neither("vbar and a", direction, to_a);
    std::vector<double> partial(static_cast<size_t>(2 * pieces(draws.rows, draws.dim)));
    Unlocked unlocked(draws.rows * draws.dim);
    kernels_of(z).row_products(draws, direction, partial.data(), to_a, to_norm2);
}

template <class T>
static void candidates(Input<T, 2> z, Input<T, 1> mean, Input<T, 1> scale, Input<T, 1> c,
                       Input<T, 1> vbar, bool mirrored, Output<T, 2> out) {
    const Matrix<T> draws = matrix(z);
    expect("out", mirrored ? 2 * draws.rows : draws.rows, "rows", out.shape(0));
    expect("out", draws.dim, "columns", out.shape(1));
    const T *m = vector("mean", mean, draws.dim), *s = vector("scale", scale, draws.dim);
    const T *along = vector("c", c, draws.rows), *direction = vector("vbar", vbar, draws.dim);
    expect_both_or_neither("c and vbar", along, direction);
    Unlocked unlocked(draws.rows * draws.dim);
    kernels_of(z).candidates(draws, m, s, along, direction, mirrored, out.data());
}

template <class T>
static void moments(Input<T, 2> z, Input<T, 1> w1, Input<T, 1> w2, Input<T, 1> w3,
                    Output<T, 1> out1, Output<T, 1> out2, Output<T, 1> out3) {
    const Matrix<T> draws = matrix(z);
    const T* const w[MOMENTS] = {vector("w1", w1, draws.rows), vector("w2", w2, draws.rows),
                                 vector("w3", w3, draws.rows)};
    T* const sums[MOMENTS] = {vector("out1", out1, draws.dim), vector("out2", out2, draws.dim),
                              vector("out3", out3, draws.dim)};
    for (int64_t k = 0; k < MOMENTS; ++k)
        expect_both_or_neither("weights and sums", w[k], sums[k]);
    Unlocked unlocked(draws.rows * draws.dim);
    kernels_of(z).moments(draws, w, sums);
}

static void weights_by_candidate(Input<double, 1> by_rank, Input<double, 1> f,
                                 Input<double, 1> norm2, bool share_ties, Output<double, 1> out) {
    const auto n = static_cast<int64_t>(f.size());
    expect("by_rank", n, "weights", by_rank.size());
    expect("norm2", n, "numbers", norm2.size());
    expect("out", n, "numbers", out.size());
    const Candidates all{n, f.data(), norm2.data(), n};
    std::vector<int64_t> order(f.size());
    Unlocked unlocked(n);
    sort_by_rank(all, order.data());
    hand_out(all, order.data(), by_rank.data(), share_ties, out.data());
}

static nb::object survey_values(Input<double, 1> f, nb::type_object record) {
    if (f.size() == 0) refuse("f: expected at least one value, got none");
    expect_fields<Survey>("record", record);
    const double distance = 0;  // the order of infeasible candidates does not matter here
    const Candidates all{static_cast<int64_t>(f.size()), f.data(), &distance, 1};
    std::vector<int64_t> order(f.size());
    sort_by_rank(all, order.data());
    return named_tuple(record, survey(all, order.data()));
}

template <class T>
static void bind(nb::module_& m) {
    const auto array = [](const char* name) { return nb::arg(name).noconvert(); };
    const auto optional = [](const char* name) { return nb::arg(name).noconvert().none(); };
    m.def("row_products", &row_products<T>, array("z"), optional("vbar"), optional("a"),
          array("norm2"));
    m.def("candidates", &candidates<T>, array("z"), optional("mean"), array("scale"),
          optional("c"), optional("vbar"), "mirrored"_a, array("out"));
    m.def("moments", &moments<T>, array("z"), optional("w1"), optional("w2"), optional("w3"),
          optional("out1"), optional("out2"), optional("out3"));
}

void bind_primitives(nb::module_& m) {
    bind<double>(m);
    bind<float>(m);
    m.def("survey", &survey_values, "f"_a, "record"_a);
    m.def("weights_by_candidate", &weights_by_candidate, "by_rank"_a.noconvert(), "f"_a.noconvert(),
          "norm2"_a.noconvert(), "share_ties"_a, "out"_a.noconvert());
}

}  // namespace fmnes
