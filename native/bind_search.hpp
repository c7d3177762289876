// Glue: what the searches that Python owns have in common. A bind_*.cpp defines kernels_of(search).
#pragma once

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>
#include <vector>

#include "array.hpp"
#include "bindings.hpp"
#include "cr_fm_nes.hpp"

namespace fmnes {

// A search that Python owns: with the class of the records that tell() returns, and a flag that
// keeps a second Python thread out while the first one works without the GIL.
template <class Search>
class PythonSearch : public Search {
  public:
    template <class... Arguments>
    explicit PythonSearch(nb::object record, const Arguments&... arguments)
        : Search(arguments...), record(std::move(record)) {}

    const nb::object record;

    class OneThread {
      public:
        explicit OneThread(PythonSearch& s) : busy_(s.busy_) {
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

inline void expect_sizes(int64_t dim, int64_t popsize) {
    if (dim < 1) refuse("dim: expected a number >= 1, got " + std::to_string(dim));
    if (popsize < 2 || popsize % 2)
        refuse("popsize: expected an even number >= 2, got " + std::to_string(popsize));
    if (dim > MOST_NUMBERS || popsize > MOST_NUMBERS / dim)
        refuse("dim and popsize: expected at most 2^56 numbers in a population, got " +
               std::to_string(dim) + " times " + std::to_string(popsize));
}

// The entry of a dict for the name of a field.
inline nb::object entry(const char* argument, const nb::dict& from, const char* name) {
    if (!from.contains(name)) refuse(std::string(argument) + ": expected '" + name + "', got none");
    return from[name];
}

template <class Constants>
Constants constants_from(const nb::dict& from) {
    expect("constants", FIELDS<Constants>, "numbers", from.size());
    Constants constants;
    each_field(constants, [&](const char* name, double& value) {
        value = nb::cast<double>(entry("constants", from, name));
    });
    return constants;
}

// From an array for each rate, with an entry for each number of feasible candidates.
inline std::vector<Rates> rates_from(const nb::dict& from, int64_t popsize) {
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

// === The state ===

template <class T>
using Strided = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>;  // also one number for all

template <class T>
void copy(const Strided<T>& from, Array<T>& to) {
    const auto count = static_cast<int64_t>(from.size());
    for (int64_t i = 0; i < count; ++i) to[i] = from.data()[i * from.stride(0)];
}

// Prepare the initial deviations, in s.initial, that convergence is measured by. If they are nearly
// equal, as many variables with one sigma0 have them, one number replaces them.
template <class Search>
void settle_initial(Search& s) {
    const auto* first = s.initial.data();
    const auto [least, most] = std::minmax_element(first, first + s.dim);
    s.alike = *most - *least <= 1e-3 * *least;
    s.initial_value = *most;
    if (s.alike) s.initial.resize(0);
}

// A view of a vector of the state: it changes with the search.
template <class T>
using View = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <template <class> class Search, class T, Array<T> Search<T>::*vector>
View<T> view(nb::handle self) {
    auto& s = nb::cast<PythonSearch<Search<T>>&>(self);
    return {(s.*vector).data(), {static_cast<size_t>(s.dim)}, self};
}

// The initial deviations, or one number if it stands for all.
template <template <class> class Search, class T>
View<T> view_of_initial(nb::handle self) {
    auto& s = nb::cast<PythonSearch<Search<T>>&>(self);
    if (s.alike) return {&s.initial_value, {1}, self};
    return view<Search, T, &Search<T>::initial>(self);
}

// === Generations ===

template <template <class> class Search, class T>
void ask(PythonSearch<Search<T>>& s, Output<T, 2> out, int64_t first) {
    const auto rows = static_cast<int64_t>(out.shape(0));
    expect("out", s.dim, "columns", out.shape(1));
    if (first < 0 || rows > s.popsize - first)
        refuse("out: expected no more rows than candidates from first, got " +
               std::to_string(rows) + " from " + std::to_string(first));
    typename PythonSearch<Search<T>>::OneThread one(s);
    Unlocked unlocked(s.dim * s.popsize);
    kernels_of(s).ask(s, out.data(), s.dim, first, first + rows);
}

template <template <class> class Search, class T>
nb::object tell(PythonSearch<Search<T>>& s, Input<double, 1> f, double best_so_far) {
    expect("f", s.popsize, "values", f.size());
    typename PythonSearch<Search<T>>::OneThread one(s);
    {
        Unlocked unlocked(s.dim * s.popsize);
        kernels_of(s).tell(s, f.data(), best_so_far);
    }
    return named_tuple(s.record, s.shown);
}

}  // namespace fmnes
