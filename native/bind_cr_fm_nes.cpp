// Glue: a CR-FM-NES search as a Python object.

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <vector>

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

// A search that Python owns: with the class of the records that tell() returns, and a flag that
// keeps a second Python thread out while the first one works without the GIL.
template <class T>
class PythonCrFmNes : public CrFmNes<T> {
  public:
    template <class... Arguments>
    explicit PythonCrFmNes(nb::object record, const Arguments&... arguments)
        : CrFmNes<T>(arguments...), record(std::move(record)) {}

    const nb::object record;

    class OneThread {
      public:
        explicit OneThread(PythonCrFmNes& s) : busy_(s.busy_) {
            if (busy_.exchange(true))
                throw std::runtime_error(
                    "expected one thread at a time to use an optimizer, got a second one");
        }
        ~OneThread() { busy_ = false; }

      private:
        std::atomic<bool>& busy_;
    };

  private:
    std::atomic<bool> busy_ = false;
};

// === The constructor ===

// Sizes in bytes that a search computes from its dimension and population stay below 2^63.
constexpr int64_t MOST_NUMBERS = int64_t{1} << 56;

static void expect_sizes(int64_t dim, int64_t popsize) {
    if (dim < 1) refuse("dim: expected a number >= 1, got " + std::to_string(dim));
    if (popsize < 2 || popsize % 2)
        refuse("popsize: expected an even number >= 2, got " + std::to_string(popsize));
    if (dim > MOST_NUMBERS || popsize > MOST_NUMBERS / dim)
        refuse("dim and popsize: expected at most 2^56 numbers in a population, got " +
               std::to_string(dim) + " times " + std::to_string(popsize));
}

// The entry of a dict for the name of a field.
static nb::object entry(const char* argument, const nb::dict& from, const char* name) {
    if (!from.contains(name)) refuse(std::string(argument) + ": expected '" + name + "', got none");
    return from[name];
}

static Constants constants_from(const nb::dict& from) {
    expect("constants", FIELDS<Constants>, "numbers", from.size());
    Constants constants;
    each_field(constants, [&](const char* name, double& value) {
        value = nb::cast<double>(entry("constants", from, name));
    });
    return constants;
}

// From an array for each rate, with an entry for each number of feasible candidates.
static std::vector<Rates> rates_from(const nb::dict& from, int64_t popsize) {
    expect("rates", FIELDS<Rates>, "arrays", from.size());
    std::vector<Rates> rates(static_cast<size_t>(popsize) + 1);
    std::vector<Input<double, 1>> columns;
    each_field(rates[0], [&](const char* name, double&) {
        columns.push_back(nb::cast<Input<double, 1>>(entry("rates", from, name)));
        expect(name, popsize + 1, "numbers", columns.back().size());
    });
    for (size_t feasible = 0; feasible < rates.size(); ++feasible) {
        size_t k = 0;
        each_field(rates[feasible], [&](const char*, double& value) {
            value = columns[k++].data()[feasible];
        });
    }
    return rates;
}

template <class T>
static void create(PythonCrFmNes<T>* self, int64_t dim, int64_t popsize, bool safe,
                   bool store_draws, nb::dict constants, Input<double, 1> w_hat, nb::dict rates,
                   uint64_t seed, uint32_t stream, uint64_t generation, nb::type_object record) {
    expect_sizes(dim, popsize);
    expect("w_hat", popsize, "weights", w_hat.size());
    expect_fields<Generation>("record", record);
    new (self) PythonCrFmNes<T>(
        record, Setup{dim, popsize, safe, store_draws}, constants_from(constants), w_hat.data(),
        rates_from(rates, popsize).data(), DrawAddress{seed, stream, generation});
}

// === The state ===

template <class T>
using Strided = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>;  // also one number for all

template <class T>
static void copy(const Strided<T>& from, Array<T>& to) {
    const auto count = static_cast<int64_t>(from.size());
    for (int64_t i = 0; i < count; ++i) to[i] = from.data()[i * from.stride(0)];
}

// Prepare the initial deviations, in s.initial, that convergence is measured by. If they are nearly
// equal, as many variables with one sigma0 have them, one number replaces them.
template <class T>
static void settle_initial(PythonCrFmNes<T>& s) {
    const T* first = s.initial.data();
    const auto [least, most] = std::minmax_element(first, first + s.dim);
    s.alike = *most - *least <= 1e-3 * *least;
    s.initial_value = *most;
    if (s.alike) s.initial.resize(0);
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

// A view of a vector of the state: it changes with the search.
template <class T>
using View = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T, Array<T> CrFmNes<T>::*vector>
static View<T> view(nb::handle self) {
    auto& s = nb::cast<PythonCrFmNes<T>&>(self);
    return {(s.*vector).data(), {static_cast<size_t>(s.dim)}, self};
}

// The initial deviations, or one number if it stands for all.
template <class T>
static View<T> view_of_initial(nb::handle self) {
    auto& s = nb::cast<PythonCrFmNes<T>&>(self);
    if (s.alike) return {&s.initial_value, {1}, self};
    return view<T, &CrFmNes<T>::initial>(self);
}

// === Generations ===

template <class T>
static void ask(PythonCrFmNes<T>& s, Output<T, 2> out, int64_t first) {
    const auto rows = static_cast<int64_t>(out.shape(0));
    expect("out", s.dim, "columns", out.shape(1));
    if (first < 0 || rows > s.popsize - first)
        refuse("out: expected no more rows than candidates from first, got " +
               std::to_string(rows) + " from " + std::to_string(first));
    typename PythonCrFmNes<T>::OneThread one(s);
    Unlocked unlocked(s.dim * s.popsize);
    kernels_of(s).ask(s, out.data(), s.dim, first, first + rows);
}

template <class T>
static nb::object tell(PythonCrFmNes<T>& s, Input<double, 1> f, double best_so_far) {
    expect("f", s.popsize, "values", f.size());
    typename PythonCrFmNes<T>::OneThread one(s);
    {
        Unlocked unlocked(s.dim * s.popsize);
        kernels_of(s).tell(s, f.data(), best_so_far);
    }
    return named_tuple(s.record, s.shown);
}

template <class T>
static void bind(nb::module_& m, const char* name) {
    nb::class_<PythonCrFmNes<T>>(m, name)
        .def("__init__", &create<T>, "dim"_a, "popsize"_a, "safe"_a, "store_draws"_a,
             "constants"_a, "w_hat"_a, "rates"_a, "seed"_a, "stream"_a, "generation"_a, "record"_a)
        .def("set_state", &set_state<T>, "mean"_a, "sigma"_a, "D"_a, "v"_a, "p_sigma"_a, "p_c"_a,
             "initial"_a.none(), "tolx"_a)
        .def("ask", &ask<T>, "out"_a.noconvert(), "first"_a)
        .def("tell", &tell<T>, "f"_a, "best_so_far"_a)
        .def_prop_ro("sigma", [](const PythonCrFmNes<T>& s) { return s.sigma; })
        .def_prop_ro("mean", &view<T, &CrFmNes<T>::mean>)
        .def_prop_ro("D", &view<T, &CrFmNes<T>::D>)
        .def_prop_ro("v", &view<T, &CrFmNes<T>::v>)
        .def_prop_ro("p_sigma", &view<T, &CrFmNes<T>::p_sigma>)
        .def_prop_ro("p_c", &view<T, &CrFmNes<T>::p_c>)
        .def_prop_ro("initial", &view_of_initial<T>)
        .def_prop_ro("best", &view<T, &CrFmNes<T>::best>);
}

void bind_cr_fm_nes(nb::module_& m) {
    bind<double>(m, "CRFMNES64");
    bind<float>(m, "CRFMNES32");
}

}  // namespace fmnes
