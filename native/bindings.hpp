// What the files of glue share. Only these and module.cpp know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "records.hpp"

namespace fmnes {

namespace nb = nanobind;

template <class T, int N>
using Input = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Output = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

[[noreturn]] inline void refuse(const std::string& message) {
    throw nb::value_error(message.c_str());
}

// "f: expected 10 values, got 9"
inline void expect(const char* argument, int64_t expected, const char* what, size_t got) {
    if (static_cast<size_t>(expected) == got) return;
    refuse(std::string(argument) + ": expected " + std::to_string(expected) + " " + what +
           ", got " + std::to_string(got));
}

template <class Record>
constexpr Py_ssize_t FIELDS = [] {
    Py_ssize_t count = 0;
    Record record{};
    each_field(record, [&](const char*, auto&) { ++count; });
    return count;
}();

// ValueError unless `type` is a NamedTuple class with the fields of Record, in the same order.
template <class Record>
void expect_fields(const char* argument, nb::handle type) {
    const nb::object fields = nb::getattr(type, "_fields", nb::tuple());
    bool same = PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), &PyTuple_Type) &&
                nb::len(fields) == static_cast<size_t>(FIELDS<Record>);
    size_t k = 0;
    each_field(Record{}, [&](const char* name, auto&) {
        same = same && fields[k++].equal(nb::str(name));
    });
    if (same) return;
    std::string names;
    each_field(Record{}, [&](const char* name, auto&) { names += std::string(" ") + name; });
    refuse(std::string(argument) + ": expected a NamedTuple class with the fields" + names +
           ", got " + nb::repr(type).c_str());
}

// An instance of a class that expect_fields() accepts, made as NamedTuple._make does it.
template <class Record>
nb::object named_tuple(nb::handle type, const Record& record) {
    const nb::object values = nb::steal(PyTuple_New(FIELDS<Record>));
    if (!values.is_valid()) nb::raise_python_error();
    Py_ssize_t k = 0;
    each_field(record, [&](const char*, auto& value) {
        PyTuple_SET_ITEM(values.ptr(), k++, nb::cast(value).release().ptr());
    });
    const nb::tuple arguments = nb::make_tuple(values);
    auto* const subtype = reinterpret_cast<PyTypeObject*>(type.ptr());
    nb::object made = nb::steal(PyTuple_Type.tp_new(subtype, arguments.ptr(), nullptr));
    if (!made.is_valid()) nb::raise_python_error();
    return made;
}

// Let other Python threads run during calls of some microseconds and more.
constexpr int64_t WORTH_A_RELEASE = 4096;  // numbers touched

class Unlocked {
  public:
    explicit Unlocked(int64_t numbers)
        : state_(numbers >= WORTH_A_RELEASE ? PyEval_SaveThread() : nullptr) {}
    ~Unlocked() {
        if (state_ != nullptr) PyEval_RestoreThread(state_);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    PyThreadState* state_;
};

void bind_auto(nb::module_& m);
void bind_cr_fm_nes(nb::module_& m);
void bind_draws(nb::module_& m);
void bind_primitives(nb::module_& m);
void bind_problems(nb::module_& m);

}  // namespace fmnes
