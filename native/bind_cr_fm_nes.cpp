// Glue: a CR-FM-NES search as a Python object.

#include <optional>

#include <nanobind/stl/optional.h>

#include "bind_search.hpp"
#include "dispatch.hpp"

namespace fmnes {

using namespace nb::literals;

static const CrFmNesKernels<double>& kernels_of(const CrFmNes<double>&) {
    return kernels().cr_fm_nes_64;
}
static const CrFmNesKernels<float>& kernels_of(const CrFmNes<float>&) {
    return kernels().cr_fm_nes_32;
}

template <class T>
using PythonCrFmNes = PythonSearch<CrFmNes<T>>;

template <class T>
static void create(PythonCrFmNes<T>* self, int64_t dim, int64_t popsize, bool safe,
                   bool store_draws, nb::dict constants, Input<double, 1> w_hat, nb::dict rates,
                   uint64_t seed, uint32_t stream, uint64_t generation, nb::type_object record) {
    expect_sizes(dim, popsize);
    expect("w_hat", popsize, "weights", w_hat.size());
    expect_fields<Generation>("record", record);
    new (self) PythonCrFmNes<T>(
        record, Setup{dim, popsize, safe, store_draws}, constants_from<Constants>(constants),
        w_hat.data(), rates_from(rates, popsize).data(), DrawAddress{seed, stream, generation});
}

// Without `initial` the deviations of this state are the initial ones.
template <class T>
static void set_state(PythonCrFmNes<T>& s, Strided<T> mean, double sigma, Strided<T> D,
                      Strided<T> v, Strided<T> p_sigma, Strided<T> p_c,
                      std::optional<Strided<T>> initial, double tolx) {
    typename PythonCrFmNes<T>::OneThread one(s);
    struct Vector {
        const char* name;
        const Strided<T>& from;
        Array<T>& to;
    };
    const Vector vectors[] = {{"mean", mean, s.mean},
                              {"D", D, s.D},
                              {"v", v, s.v},
                              {"p_sigma", p_sigma, s.p_sigma},
                              {"p_c", p_c, s.p_c}};
    for (const Vector& vector : vectors) expect(vector.name, s.dim, "numbers", vector.from.size());
    if (initial) expect("initial", s.dim, "numbers", initial->size());
    for (const Vector& vector : vectors) copy(vector.from, vector.to);
    s.sigma = sigma, s.tolx = tolx, s.drawn = false;
    s.initial.resize(s.groups * GROUP);
    if (initial)
        copy(*initial, s.initial);
    else
        kernels_of(s).deviations(s, s.initial.data());
    settle_initial(s);
    kernels_of(s).look(s);
}

template <class T>
static void bind(nb::module_& m, const char* name) {
    nb::class_<PythonCrFmNes<T>>(m, name)
        .def("__init__", &create<T>, "dim"_a, "popsize"_a, "safe"_a, "store_draws"_a,
             "constants"_a, "w_hat"_a, "rates"_a, "seed"_a, "stream"_a, "generation"_a, "record"_a)
        .def("set_state", &set_state<T>, "mean"_a, "sigma"_a, "D"_a, "v"_a, "p_sigma"_a, "p_c"_a,
             "initial"_a.none(), "tolx"_a)
        .def("ask", &ask<CrFmNes, T>, "out"_a.noconvert(), "first"_a)
        .def("tell", &tell<CrFmNes, T>, "f"_a, "best_so_far"_a)
        .def_prop_ro("sigma", [](const PythonCrFmNes<T>& s) { return s.sigma; })
        .def_prop_ro("mean", &view<CrFmNes, T, &CrFmNes<T>::mean>)
        .def_prop_ro("D", &view<CrFmNes, T, &CrFmNes<T>::D>)
        .def_prop_ro("v", &view<CrFmNes, T, &CrFmNes<T>::v>)
        .def_prop_ro("p_sigma", &view<CrFmNes, T, &CrFmNes<T>::p_sigma>)
        .def_prop_ro("p_c", &view<CrFmNes, T, &CrFmNes<T>::p_c>)
        .def_prop_ro("initial", &view_of_initial<CrFmNes, T>)
        .def_prop_ro("best", &view<CrFmNes, T, &CrFmNes<T>::best>);
}

void bind_cr_fm_nes(nb::module_& m) {
    bind<double>(m, "CRFMNES64");
    bind<float>(m, "CRFMNES32");
}

}  // namespace fmnes
