// Glue: the test problems.

#include <vector>

#include "bindings.hpp"
#include "dispatch.hpp"

namespace fmnes {

using namespace nb::literals;

static const ProblemKernels<double>& kernels_of(const Input<double, 2>&) {
    return kernels().problems_64;
}
static const ProblemKernels<float>& kernels_of(const Input<float, 2>&) {
    return kernels().problems_32;
}

// What every problem gets: the rows, room for the sums of their pieces, and room for the values.
template <class T>
struct Task {
    Matrix<T> x;
    std::vector<double> partial;
    double* out;

    Task(const Input<T, 2>& rows, const Output<double, 1>& values)
        : x{rows.data(), static_cast<int64_t>(rows.shape(0)), static_cast<int64_t>(rows.shape(1))},
          out(values.data()) {
        expect("out", x.rows, "numbers", values.size());
        partial.resize(static_cast<size_t>(pieces(x.rows, x.dim)));
    }

    int64_t numbers() const { return x.rows * x.dim; }

    const double* vector(const char* name, const Input<double, 1>& from) const {
        expect(name, x.dim, "numbers", from.size());
        return from.data();
    }
};

// A problem without constants.
template <class T>
static void bind_plain(nb::module_& m, const char* name,
                       PlainProblem<T>* ProblemKernels<T>::*problem) {
    m.def(name,
          [problem](Input<T, 2> x, Output<double, 1> out) {
              Task<T> task(x, out);
              Unlocked unlocked(task.numbers());
              (kernels_of(x).*problem)(task.x, task.partial.data(), task.out);
          }, "x"_a.noconvert(), "out"_a.noconvert());
}

template <class T>
static void bind(nb::module_& m) {
    const auto x = "x"_a.noconvert(), out = "out"_a.noconvert();
    const auto u = "u"_a.noconvert(), scale = "scale"_a.noconvert();
    m.def("weighted_sphere",
          [](Input<T, 2> x, Input<double, 1> scale, Output<double, 1> out) {
              Task<T> task(x, out);
              const double* s = task.vector("scale", scale);
              Unlocked unlocked(task.numbers());
              kernels_of(x).weighted_sphere(task.x, s, task.partial.data(), task.out);
          }, x, scale, out);
    m.def("two_scales",
          [](Input<T, 2> x, Input<double, 1> u, double along, double across,
             Input<double, 1> scale, Output<double, 1> out) {
              Task<T> task(x, out);
              const double *s = task.vector("scale", scale), *axis = task.vector("u", u);
              std::vector<double> a(x.shape(0));
              Unlocked unlocked(task.numbers());
              kernels_of(x).two_scales(task.x, axis, along, across, s, task.partial.data(),
                                       a.data(), task.out);
          }, x, u, "along"_a, "across"_a, scale, out);
    bind_plain(m, "rosenbrock", &ProblemKernels<T>::rosenbrock);
    bind_plain(m, "rastrigin", &ProblemKernels<T>::rastrigin);
    bind_plain(m, "halfspaces", &ProblemKernels<T>::halfspaces);
}

void bind_problems(nb::module_& m) {
    bind<double>(m);
    bind<float>(m);
}

}  // namespace fmnes
