// Glue: what the linear-time methods do with rows of draws.

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

// The numbers of a vector that is as long as it must be, or null for None.
template <class Vector>
static auto vector(const char* name, const Vector& of, int64_t length) {
    if (of.is_valid()) expect(name, length, "numbers", of.size());
    return of.is_valid() ? of.data() : nullptr;
}

static void together(const char* names, const void* a, const void* b) {
    if ((a == nullptr) != (b == nullptr))
        throw nb::value_error((std::string(names) + ": expected both or neither, got one").c_str());
}

template <class T>
static void row_products(Input<T, 2> z, Input<T, 1> vbar, Output<T, 1> a, Output<T, 1> norm2) {
    const Matrix<T> of = matrix(z);
    const T* along = vector("vbar", vbar, of.dim);
    T *to_a = vector("a", a, of.rows), *to_norm2 = vector("norm2", norm2, of.rows);
    together("vbar and a", along, to_a);
    std::vector<double> partial(static_cast<size_t>(of.rows * (of.dim / PIECE + 1) * 2));
    Unlocked unlocked(of.rows * of.dim);
    kernels_of(z).row_products(of, along, partial.data(), to_a, to_norm2);
}

template <class T>
static void candidates(Input<T, 2> z, Input<T, 1> mean, Input<T, 1> scale, Input<T, 1> c,
                       Input<T, 1> vbar, bool mirrored, Output<T, 2> out) {
    const Matrix<T> of = matrix(z);
    expect("out", mirrored ? 2 * of.rows : of.rows, "rows", out.shape(0));
    expect("out", of.dim, "columns", out.shape(1));
    const T *m = vector("mean", mean, of.dim), *s = vector("scale", scale, of.dim);
    const T *along = vector("c", c, of.rows), *axis = vector("vbar", vbar, of.dim);
    together("c and vbar", along, axis);
    Unlocked unlocked(of.rows * of.dim);
    kernels_of(z).candidates(of, m, s, along, axis, mirrored, out.data());
}

template <class T>
static void moments(Input<T, 2> z, Input<T, 1> w1, Input<T, 1> w2, Input<T, 1> w3,
                    Output<T, 1> out1, Output<T, 1> out2, Output<T, 1> out3) {
    const Matrix<T> of = matrix(z);
    const T* const w[] = {vector("w1", w1, of.rows), vector("w2", w2, of.rows),
                           vector("w3", w3, of.rows)};
    T* const sums[] = {vector("out1", out1, of.dim), vector("out2", out2, of.dim),
                       vector("out3", out3, of.dim)};
    for (int64_t k = 0; k < SUMS; ++k) together("weights and sums", w[k], sums[k]);
    Unlocked unlocked(of.rows * of.dim);
    kernels_of(z).moments(of, w, sums);
}

static void weights_by_candidate(Input<double, 1> by_rank, Input<double, 1> f,
                                 Input<double, 1> norm2, bool share_ties, Output<double, 1> out) {
    const auto n = static_cast<int64_t>(f.size());
    expect("by_rank", n, "weights", by_rank.size());
    expect("norm2", n, "numbers", norm2.size());
    expect("out", n, "numbers", out.size());
    const Candidates of{n, f.data(), norm2.data(), n};
    std::vector<int64_t> order(f.size());
    Unlocked unlocked(n);
    sort_by_rank(of, order.data());
    hand_out(of, order.data(), by_rank.data(), share_ties, out.data());
}

static nb::tuple survey_values(Input<double, 1> f) {
    if (f.size() == 0) throw nb::value_error("f: expected at least one value");
    const double nowhere = 0;  // the order of infeasible candidates does not matter here
    const Candidates of{static_cast<int64_t>(f.size()), f.data(), &nowhere, 1};
    std::vector<int64_t> order(f.size());
    sort_by_rank(of, order.data());
    const Survey shown = survey(of, order.data());
    return nb::make_tuple(shown.nan, shown.feasible, shown.least, shown.most, shown.size,
                          shown.median, shown.flat);
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
    m.def("survey", &survey_values, "f"_a);
    m.def("weights_by_candidate", &weights_by_candidate, "by_rank"_a.noconvert(), "f"_a.noconvert(),
          "norm2"_a.noconvert(), "share_ties"_a, "out"_a.noconvert());
}

}  // namespace fmnes
