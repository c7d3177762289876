// Glue: a search by the method auto as a Python object.

#include <optional>

#include <nanobind/stl/optional.h>

#include "bind_search.hpp"
#include "dispatch.hpp"

namespace fmnes {

using namespace nb::literals;

static const AutoKernels<double>& kernels_of(const AutoSearch<double>&) {
    return *kernels().auto_64;
}
static const AutoKernels<float>& kernels_of(const AutoSearch<float>&) {
    return *kernels().auto_32;
}

template <class T>
using PythonAuto = PythonSearch<AutoSearch<T>>;

template <class T>
static void create(PythonAuto<T>* self, int64_t dim, int64_t popsize, nb::dict constants,
                   nb::dict noise, Input<double, 1> w_hat, Input<double, 1> scores, nb::dict rates,
                   uint64_t seed, uint32_t stream, uint64_t generation, nb::type_object record) {
    expect_sizes(dim, popsize);
    expect("w_hat", popsize, "weights", w_hat.size());
    expect("scores", popsize, "weights", scores.size());
    expect_fields<Generation>("record", record);
    new (self) PythonAuto<T>(record, dim, popsize, constants_from<AutoConstants>(constants),
                             constants_from<NoiseConstants>(noise), w_hat.data(), scores.data(),
                             rates_from(rates, popsize).data(),
                             DrawAddress{seed, stream, generation});
}

// === The state ===

// The axes of a state: columns with S = 1 are not in use. Beside them, scouts of shape (d, 2).
template <class T>
static void set_axes(PythonAuto<T>& s, const Input<T, 2>& V, const Input<T, 1>& S,
                     const Input<T, 2>& scouts) {
    const auto columns = static_cast<int64_t>(S.size());
    s.make_room(columns);
    for (int64_t c = 0; c < columns; ++c) {
        if (S.data()[c] == 1) continue;
        s.S[s.k] = S.data()[c];
        for (int64_t j = 0; j < s.dim; ++j) *s.axis(s.k, j) = V.data()[j * columns + c];
        ++s.k;
    }
    for (int64_t c = 0; c < SCOUTS; ++c)
        for (int64_t j = 0; j < s.dim; ++j) *s.direction(c, j) = scouts.data()[j * SCOUTS + c];
}

// Without `initial` the deviations of this state are the initial ones.
template <class T>
static void set_state(PythonAuto<T>& s, Strided<T> mean, double sigma, Strided<T> D,
                      Input<T, 2> V, Input<T, 1> S, Input<T, 2> scouts, Input<T, 1> evidence,
                      Strided<T> p_sigma, Strided<T> p_c, Strided<T> D_gradient, double D_signal,
                      double D_noise, double eta, Strided<T> m_gradient, Input<T, 1> m_averages,
                      Input<T, 1> sigma_averages, std::optional<Strided<T>> initial, double tolx) {
    typename PythonAuto<T>::OneThread one(s);
    struct Vector {
        const char* name;
        const Strided<T>& from;
        Array<T>& to;
    };
    const Vector vectors[] = {{"mean", mean, s.mean},
                              {"D", D, s.D},
                              {"p_sigma", p_sigma, s.p_sigma},
                              {"p_c", p_c, s.p_c},
                              {"D_gradient", D_gradient, s.D_gradient},
                              {"m_gradient", m_gradient, s.m_gradient}};
    for (const Vector& vector : vectors) expect(vector.name, s.dim, "numbers", vector.from.size());
    expect("V", s.dim, "rows", V.shape(0));
    expect("V", static_cast<int64_t>(S.size()), "columns", V.shape(1));
    expect("scouts", s.dim, "rows", scouts.shape(0));
    expect("scouts", SCOUTS, "columns", scouts.shape(1));
    expect("evidence", SCOUTS, "numbers", evidence.size());
    expect("m_averages", MEAN_AVERAGES, "numbers", m_averages.size());
    expect("sigma_averages", SIGMA_AVERAGES, "numbers", sigma_averages.size());
    if (S.size() == 0) refuse("S: expected at least one number, got none");
    if (initial) expect("initial", s.dim, "numbers", initial->size());
    for (const Vector& vector : vectors) copy(vector.from, vector.to);
    set_axes(s, V, S, scouts);
    for (int64_t i = 0; i < SCOUTS; ++i) s.evidence[i] = evidence.data()[i];
    std::copy_n(m_averages.data(), MEAN_AVERAGES, s.m_averages);
    std::copy_n(sigma_averages.data(), SIGMA_AVERAGES, s.sigma_averages);
    s.eta = eta, s.sigma = sigma, s.D_signal = D_signal, s.D_noise = D_noise;
    s.tolx = tolx, s.drawn = false;
    s.initial.resize(s.groups * GROUP);
    if (initial)
        copy(*initial, s.initial);
    else
        kernels_of(s).deviations(s, s.initial.data());
    settle_initial(s);
    kernels_of(s).look(s);
}

// Copies of what is not kept as a state has it. Axes in use come in the order of S, the others,
// with S = 1, between the long and the short ones.
template <class T>
static void get_state(PythonAuto<T>& s, Output<T, 2> V, Output<T, 1> S, Output<T, 2> scouts,
                      Output<T, 1> evidence, Output<T, 1> m_averages,
                      Output<T, 1> sigma_averages) {
    expect("S", s.room, "numbers", S.size());
    expect("V", s.dim, "rows", V.shape(0));
    expect("V", s.room, "columns", V.shape(1));
    expect("scouts", s.dim, "rows", scouts.shape(0));
    expect("scouts", SCOUTS, "columns", scouts.shape(1));
    expect("evidence", SCOUTS, "numbers", evidence.size());
    expect("m_averages", MEAN_AVERAGES, "numbers", m_averages.size());
    expect("sigma_averages", SIGMA_AVERAGES, "numbers", sigma_averages.size());
    for (int64_t i = 0; i < MEAN_AVERAGES; ++i)
        m_averages.data()[i] = static_cast<T>(s.m_averages[i]);
    for (int64_t i = 0; i < SIGMA_AVERAGES; ++i)
        sigma_averages.data()[i] = static_cast<T>(s.sigma_averages[i]);
    for (int64_t c = 0; c < s.room; ++c) S.data()[c] = 1;
    std::fill_n(V.data(), s.dim * s.room, T{0});
    for (int64_t axis = 0; axis < s.k; ++axis) {
        const int64_t c = s.S[axis] > 1 ? axis : axis + s.room - s.k;
        S.data()[c] = static_cast<T>(s.S[axis]);
        for (int64_t j = 0; j < s.dim; ++j) V.data()[j * s.room + c] = *s.axis(axis, j);
    }
    for (int64_t c = 0; c < SCOUTS; ++c) {
        evidence.data()[c] = static_cast<T>(s.evidence[c]);
        for (int64_t j = 0; j < s.dim; ++j) scouts.data()[j * SCOUTS + c] = *s.direction(c, j);
    }
}

template <class T>
static void bind(nb::module_& m, const char* name) {
    nb::class_<PythonAuto<T>>(m, name)
        .def("__init__", &create<T>, "dim"_a, "popsize"_a, "constants"_a, "noise"_a, "w_hat"_a,
             "scores"_a, "rates"_a, "seed"_a, "stream"_a, "generation"_a, "record"_a)
        .def("set_state", &set_state<T>, "mean"_a, "sigma"_a, "D"_a, "V"_a, "S"_a, "scouts"_a,
             "evidence"_a, "p_sigma"_a, "p_c"_a, "D_gradient"_a, "D_signal"_a, "D_noise"_a,
             "eta"_a, "m_gradient"_a, "m_averages"_a, "sigma_averages"_a, "initial"_a.none(),
             "tolx"_a)
        .def("get_state", &get_state<T>, "V"_a.noconvert(), "S"_a.noconvert(),
             "scouts"_a.noconvert(), "evidence"_a.noconvert(), "m_averages"_a.noconvert(),
             "sigma_averages"_a.noconvert())
        .def("ask", &ask<AutoSearch, T>, "out"_a.noconvert(), "first"_a)
        .def("tell", &tell<AutoSearch, T>, "f"_a, "best_so_far"_a)
        .def_prop_ro("sigma", [](const PythonAuto<T>& s) { return s.sigma; })
        .def_prop_ro("eta", [](const PythonAuto<T>& s) { return s.eta; })
        .def_prop_ro("D_signal", [](const PythonAuto<T>& s) { return s.D_signal; })
        .def_prop_ro("D_noise", [](const PythonAuto<T>& s) { return s.D_noise; })
        .def_prop_ro("axes", [](const PythonAuto<T>& s) { return s.k; })
        .def_prop_ro("room", [](const PythonAuto<T>& s) { return s.room; })
        .def_prop_ro("mean", &view<AutoSearch, T, &AutoSearch<T>::mean>)
        .def_prop_ro("D", &view<AutoSearch, T, &AutoSearch<T>::D>)
        .def_prop_ro("p_sigma", &view<AutoSearch, T, &AutoSearch<T>::p_sigma>)
        .def_prop_ro("p_c", &view<AutoSearch, T, &AutoSearch<T>::p_c>)
        .def_prop_ro("D_gradient", &view<AutoSearch, T, &AutoSearch<T>::D_gradient>)
        .def_prop_ro("m_gradient", &view<AutoSearch, T, &AutoSearch<T>::m_gradient>)
        .def_prop_ro("initial", &view_of_initial<AutoSearch, T>)
        .def_prop_ro("best", &view<AutoSearch, T, &AutoSearch<T>::best>);
}

void bind_auto(nb::module_& m) {
    bind<double>(m, "Auto64");
    bind<float>(m, "Auto32");
}

}  // namespace fmnes
