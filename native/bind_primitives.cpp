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
static auto vector(const Vector& of, int64_t length, const char* expected) {
    if (of.is_valid() && static_cast<int64_t>(of.size()) != length)
        throw nb::value_error(expected);
    return of.is_valid() ? of.data() : nullptr;
}

template <class Vector>
static auto by_coordinate(const Vector& of, int64_t dim) {
    return vector(of, dim, "expected vectors as long as the rows of z");
}

template <class Vector>
static auto by_row(const Vector& of, int64_t rows) {
    return vector(of, rows, "expected vectors with one number for each row of z");
}

static void together(const void* a, const void* b) {
    if ((a == nullptr) != (b == nullptr))
        throw nb::value_error("expected two arrays that go together, or None for both");
}

template <class T>
static void row_products(Input<T, 2> z, Input<T, 1> vbar, Output<T, 1> a, Output<T, 1> norm2) {
    const Matrix<T> of = matrix(z);
    const T* along = by_coordinate(vbar, of.dim);
    T *to_a = by_row(a, of.rows), *to_norm2 = by_row(norm2, of.rows);
    together(along, to_a);
    std::vector<double> partial(static_cast<size_t>(of.rows * (of.dim / PIECE + 1) * 2));
    Unlocked unlocked(of.rows * of.dim);
    kernels_of(z).row_products(of, along, partial.data(), to_a, to_norm2);
}

template <class T>
static void candidates(Input<T, 2> z, Input<T, 1> mean, Input<T, 1> scale, Input<T, 1> c,
                       Input<T, 1> vbar, bool mirrored, Output<T, 2> out) {
    const Matrix<T> of = matrix(z);
    if (out.shape(0) != z.shape(0) * (mirrored ? 2 : 1) || out.shape(1) != z.shape(1))
        throw nb::value_error("out: expected a row for each candidate");
    const T *m = by_coordinate(mean, of.dim), *s = by_coordinate(scale, of.dim);
    const T *along = by_row(c, of.rows), *axis = by_coordinate(vbar, of.dim);
    together(along, axis);
    Unlocked unlocked(of.rows * of.dim);
    kernels_of(z).candidates(of, m, s, along, axis, mirrored, out.data());
}

template <class T>
static void moments(Input<T, 2> z, Input<T, 1> w1, Input<T, 1> w2, Input<T, 1> w3,
                    Output<T, 1> out1, Output<T, 1> out2, Output<T, 1> out3) {
    const Matrix<T> of = matrix(z);
    const T* const w[] = {by_row(w1, of.rows), by_row(w2, of.rows), by_row(w3, of.rows)};
    T* const sums[] = {by_coordinate(out1, of.dim), by_coordinate(out2, of.dim),
                       by_coordinate(out3, of.dim)};
    for (int64_t k = 0; k < SUMS; ++k) together(w[k], sums[k]);
    Unlocked unlocked(of.rows * of.dim);
    kernels_of(z).moments(of, w, sums);
}

static void weights_by_candidate(Input<double, 1> by_rank, Input<double, 1> f,
                                 Input<double, 1> norm2, bool share_ties, Output<double, 1> out) {
    const size_t count = f.size();
    if (by_rank.size() != count || norm2.size() != count || out.size() != count)
        throw nb::value_error("expected vectors with one number for each candidate");
    const auto n = static_cast<int64_t>(count);
    const Candidates of{n, f.data(), norm2.data(), n};
    std::vector<int64_t> order(count);
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
