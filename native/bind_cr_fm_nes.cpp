// Glue: a CR-FM-NES search as a Python object.

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>

#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "dispatch.hpp"

namespace fmnes {

using namespace nb::literals;

static const CrFmNesKernels<double>& kernels_of(const CrFmNes<double>&) {
    return kernels().cr_fm_nes_64;
}
static const CrFmNesKernels<float>& kernels_of(const CrFmNes<float>&) {
    return kernels().cr_fm_nes_32;
}

// A search, and a flag that keeps a second Python thread out while the first is at work without the
// GIL.
template <class T>
class Search : public CrFmNes<T> {
  public:
    using CrFmNes<T>::CrFmNes;

    class Use {
      public:
        explicit Use(Search& s) : busy_(s.busy_) {
            if (busy_.exchange(true))
                throw std::runtime_error(
                    "expected one thread at a time to use an optimizer, got a second one");
        }
        ~Use() { busy_ = false; }

      private:
        std::atomic<bool>& busy_;
    };

  private:
    std::atomic<bool> busy_ = false;
};

template <class T>
static void create(Search<T>* self, int64_t dim, int64_t popsize, bool safe, bool store_draws,
                   nb::tuple numbers, Input<double, 1> w_hat, Input<double, 2> rates,
                   uint64_t seed, uint32_t stream, uint64_t generation) {
    Constants c{.dim = dim, .popsize = popsize, .safe = safe, .store_draws = store_draws};
    double* const fields[] = {&c.chi_n,  &c.c_sigma,      &c.scale_sigma, &c.c_c,     &c.scale_c,
                              &c.long_v, &c.largest_step, &c.D_limit,     &c.v_least, &c.v_most};
    if (dim < 1) throw nb::value_error("dim: expected a number >= 1");
    if (popsize < 2 || popsize % 2) throw nb::value_error("popsize: expected an even number >= 2");
    expect("numbers", std::size(fields), "numbers", numbers.size());
    expect("w_hat", popsize, "weights", w_hat.size());
    expect("rates", popsize + 1, "rows", rates.shape(0));
    expect("rates", sizeof(Rates) / sizeof(double), "columns", rates.shape(1));
    for (size_t i = 0; i < std::size(fields); ++i) *fields[i] = nb::cast<double>(numbers[i]);
    new (self) Search<T>(c, w_hat.data(), reinterpret_cast<const Rates*>(rates.data()),
                         Address{seed, stream, generation});
}

template <class T>
using Strided = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>;  // also one number for all

template <class T>
static void take(const Search<T>& s, const char* name, const Strided<T>& from, T* to) {
    expect(name, s.is.dim, "numbers", from.size());
    for (int64_t i = 0; i < s.is.dim; ++i) to[i] = from.data()[i * from.stride(0)];
}

// The deviations that convergence is measured by, which stand in s.initial. As good as equal ones,
// as many variables with one sigma0 have them, are kept as one number.
template <class T>
static void settle_initial(Search<T>& s) {
    const auto [least, most] = std::minmax_element(+s.initial, s.initial + s.is.dim);
    s.alike = *most - *least <= 1e-3 * *least;
    s.initial_value = *most;
    if (s.alike) s.initial.resize(0);
}

// Without `initial` the deviations of this state are the initial ones.
template <class T>
static void set_state(Search<T>& s, Strided<T> mean, double sigma, Strided<T> D, Strided<T> v,
                      Strided<T> p_sigma, Strided<T> p_c, std::optional<Strided<T>> initial,
                      double tolx) {
    typename Search<T>::Use use(s);
    take<T>(s, "mean", mean, s.mean), take<T>(s, "D", D, s.D), take<T>(s, "v", v, s.v);
    take<T>(s, "p_sigma", p_sigma, s.p_sigma), take<T>(s, "p_c", p_c, s.p_c);
    s.sigma = sigma, s.tolx = tolx, s.drawn = false;
    s.initial.resize(s.groups * GROUP);
    if (initial)
        take<T>(s, "initial", *initial, s.initial);
    else
        kernels_of(s).deviations(s, s.initial);
    settle_initial(s);
    kernels_of(s).look(s);
}

// A view of a vector of the state: it changes with the search.
template <class T>
static nb::ndarray<nb::numpy, T, nb::ndim<1>> view(nb::handle self, T* data, int64_t length = 0) {
    const int64_t dim = nb::cast<const Search<T>&>(self).is.dim;
    return {data, {static_cast<size_t>(length > 0 ? length : dim)}, self};
}

template <class T, Array<T> CrFmNes<T>::*of>
static nb::ndarray<nb::numpy, T, nb::ndim<1>> vector(nb::handle self) {
    return view<T>(self, nb::cast<Search<T>&>(self).*of);
}

template <class T>
static void bind(nb::module_& m, const char* name) {
    nb::class_<Search<T>>(m, name)
        .def("__init__", &create<T>, "dim"_a, "popsize"_a, "safe"_a, "store_draws"_a, "numbers"_a,
             "w_hat"_a, "rates"_a, "seed"_a, "stream"_a, "generation"_a)
        .def("set_state", &set_state<T>, "mean"_a, "sigma"_a, "D"_a, "v"_a, "p_sigma"_a, "p_c"_a,
             "initial"_a.none(), "tolx"_a)
        .def("ask",
             [](Search<T>& s, Output<T, 2> out, int64_t first) {
                 const auto rows = static_cast<int64_t>(out.shape(0));
                 expect("out", s.is.dim, "columns", out.shape(1));
                 if (first < 0 || rows > s.is.popsize - first)
                     throw nb::value_error("out: expected no more rows than candidates from first");
                 typename Search<T>::Use use(s);
                 Unlocked unlocked(s.is.dim * s.is.popsize);
                 kernels_of(s).ask(s, out.data(), s.is.dim, first, first + rows);
             }, "out"_a.noconvert(), "first"_a)
        .def("tell",
             [](Search<T>& s, Input<double, 1> f, double best_so_far) {
                 expect("f", s.is.popsize, "values", f.size());
                 typename Search<T>::Use use(s);
                 {
                     Unlocked unlocked(s.is.dim * s.is.popsize);
                     kernels_of(s).tell(s, f.data(), best_so_far);
                 }
                 const Survey& of = s.survey;
                 const Figures& at = s.figures;
                 return nb::make_tuple(of.nan, of.feasible, of.least, of.most, of.size, of.median,
                                       of.flat, at.sigma, at.axis_ratio, at.norm_v, at.phase,
                                       at.deviation_least, at.deviation_most, at.mean_most,
                                       at.shrunk);
             }, "f"_a, "best_so_far"_a)
        .def_prop_ro("sigma", [](const Search<T>& s) { return s.sigma; })
        .def_prop_ro("mean", &vector<T, &CrFmNes<T>::mean>)
        .def_prop_ro("D", &vector<T, &CrFmNes<T>::D>)
        .def_prop_ro("v", &vector<T, &CrFmNes<T>::v>)
        .def_prop_ro("p_sigma", &vector<T, &CrFmNes<T>::p_sigma>)
        .def_prop_ro("p_c", &vector<T, &CrFmNes<T>::p_c>)
        .def_prop_ro("initial", [](nb::handle h) {  // one number where it stands for all
            auto& s = nb::cast<Search<T>&>(h);
            return s.alike ? view<T>(h, &s.initial_value, 1) : view<T>(h, s.initial);
        })
        .def_prop_ro("best", &vector<T, &CrFmNes<T>::best>);
}

void bind_cr_fm_nes(nb::module_& m) {
    bind<double>(m, "CRFMNES64");
    bind<float>(m, "CRFMNES32");
}

}  // namespace fmnes
