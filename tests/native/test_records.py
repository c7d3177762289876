"""Records that cross between C++ and Python have the same fields, and sizes are checked.

The extension compares the fields of a class with its own, by name and order.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

import fmnes
from fmnes.algorithms import cr_fm_nes
from fmnes.draws import Address
from fmnes.engines import Generation
from fmnes.kernels import _native, agnostic, native
from fmnes.kernels.agnostic import Survey

CLASSES = {np.float64: _native.CRFMNES64, np.float32: _native.CRFMNES32}


def arguments(dim=10, popsize=10):
    """The arguments of the compiled class, by name."""
    params = cr_fm_nes.params(dim, popsize, fmnes.CRFMNES())
    constants, rates = cr_fm_nes.tables(params)
    return {
        "dim": dim,
        "popsize": popsize,
        "safe": True,
        "store_draws": True,
        "constants": constants,
        "w_hat": params.phase.w_hat,
        "rates": rates,
        **Address(seed=7, stream=4, generation=3)._asdict(),
        "record": Generation,
    }


def changed(fields):
    """Classes whose fields differ in a name, in the order, by one more, by one less."""
    fields = list(fields)
    for other in (
        [*fields[:-1], "another"],
        [*fields[1:], fields[0]],
        fields[:-1],
        [*fields, "another"],
    ):
        yield NamedTuple("Changed", [(name, float) for name in other])


# --- Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", CLASSES)
def test_a_generation_has_the_fields_of_the_python_class(dtype):
    CLASSES[dtype](**arguments())
    for record in (*changed(Generation._fields), tuple, dict, Survey):
        with pytest.raises(ValueError, match=r"^record: expected .*nan.*shrunk, got "):
            CLASSES[dtype](**arguments() | {"record": record})


def test_a_survey_has_the_fields_of_the_python_class():
    _native.survey(np.ones(3), Survey)
    for record in (*changed(Survey._fields), tuple, dict, Generation):
        with pytest.raises(ValueError, match=r"^record: expected .*nan.*flat, got "):
            _native.survey(np.ones(3), record)


def test_a_survey_is_the_first_part_of_a_generation():
    assert Generation._fields[: len(Survey._fields)] == Survey._fields


@pytest.mark.parametrize("which", ["constants", "rates"])
def test_constants_and_rates_cross_by_name(which):
    plain = arguments()
    for name in plain[which]:
        renamed = {("x" if key == name else key): value for key, value in plain[which].items()}
        with pytest.raises(ValueError, match=rf"^{which}: .*'{name}'"):
            _native.CRFMNES64(**plain | {which: renamed})
    more = plain[which] | {"x": plain[which][name]}
    with pytest.raises(ValueError, match=rf"^{which}: "):
        _native.CRFMNES64(**plain | {which: more})
    _native.CRFMNES64(**plain | {which: dict(reversed(plain[which].items()))})  # in any order


# --- Values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [native, agnostic])
def test_a_survey_by_hand(kernel):
    inf, nan = math.inf, math.nan
    found = kernel.survey(np.array([3.0, -8.0, inf, nan, 5.0, 1.0]))
    assert type(found) is Survey
    assert found == Survey(
        nan=1, feasible=4, least=-8.0, most=5.0, size=8.0, median=4.0, flat=False
    )
    assert kernel.survey(np.array([2.0, 2.0])) == Survey(0, 2, 2.0, 2.0, 2.0, 2.0, True)
    assert kernel.survey(np.array([inf, nan])) == Survey(1, 0, inf, inf, inf, inf, False)
    assert kernel.survey(np.array([-inf, -inf])).flat is False


@pytest.mark.parametrize("dtype", CLASSES)
def test_a_generation_by_hand(dtype):
    """With D = 2, v = (1, 0, ...) and flat values the state is not moved: all fields are known."""
    search = CLASSES[dtype](**arguments())
    v = np.eye(1, 10, dtype=dtype)[0]
    D, mean = np.full(10, 2, dtype), np.arange(-10, 0).astype(dtype)
    p_sigma = np.zeros(10, dtype)
    search.set_state(mean, 0.5, D, v, p_sigma, p_sigma, None, 1e-3)
    found = search.tell(np.full(10, -4.0), math.inf)
    assert type(found) is Generation
    assert found == Generation(
        nan=0,
        feasible=10,
        least=-4.0,
        most=-4.0,
        size=4.0,
        median=-4.0,
        flat=True,
        sigma=0.5,
        axis_ratio=math.sqrt(2),
        norm_v=1.0,
        phase=3,
        deviation_min=1.0,
        deviation_max=math.sqrt(2),
        mean_max=10.0,
        shrunk=False,
    )


# --- Sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"dim": 0}, "dim"),
        ({"dim": -1}, "dim"),
        ({"popsize": 9}, "popsize"),
        ({"popsize": 0}, "popsize"),
        ({"dim": 2**63 - 1}, "dim and popsize"),  # dim + 15 would overflow
        ({"dim": 2**60}, "dim and popsize"),  # dim times popsize times 8 bytes would
        ({"popsize": 2**62}, "dim and popsize"),
        ({"w_hat": np.ones(9)}, "w_hat"),
        ({"rates": {name: np.ones(10) for name in arguments()["rates"]}}, "alpha"),
    ],
    ids=str,
)
def test_sizes_are_checked_before_memory_is_allocated(change, named):
    with pytest.raises(ValueError, match=rf"^{named}: expected .* got "):
        _native.CRFMNES64(**arguments() | change)


def test_a_size_beyond_the_memory_is_a_memory_error():
    with pytest.raises(MemoryError):
        _native.CRFMNES64(**arguments() | {"dim": 2**50})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.ask(np.empty((10, 11)), 0), "^out: expected 10 columns, got 11$"),
        (lambda s: s.ask(np.empty((11, 10)), 0), "^out: .* got 11 from 0$"),
        (lambda s: s.ask(np.empty((5, 10)), 6), "^out: .* got 5 from 6$"),
        (lambda s: s.ask(np.empty((5, 10)), -1), "^out: .* got 5 from -1$"),
        (lambda s: s.ask(np.empty((10, 10), np.float32), 0), "incompatible function arguments"),
        (lambda s: s.tell(np.zeros(9), 0.0), "^f: expected 10 values, got 9$"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(_native.CRFMNES64(**arguments()))


@pytest.mark.parametrize("name", ["mean", "D", "v", "p_sigma", "p_c", "initial"])
def test_a_state_that_does_not_fit_changes_nothing(name):
    search = _native.CRFMNES64(**arguments())
    vectors = dict.fromkeys(["mean", "D", "v", "p_sigma", "p_c", "initial"], np.full(10, 2.0))
    search.set_state(**vectors, sigma=1.0, tolx=1e-3)
    others = {vector: np.full(10, 3.0) for vector in vectors} | {name: np.full(11, 3.0)}
    with pytest.raises(ValueError, match=rf"^{name}: expected 10 numbers, got 11$"):
        search.set_state(**others, sigma=5.0, tolx=1e-3)
    assert search.sigma == 1.0
    assert all(np.all(getattr(search, vector) == 2.0) for vector in vectors)


@pytest.mark.parametrize(("first", "rows"), [(-1, 2), (2**32 - 1, 2), (2**63 - 1, 2), (2**32, 1)])
def test_rows_of_draws_beyond_the_generator_are_refused(first, rows):
    with pytest.raises(ValueError, match=r"^first: expected .* got "):
        _native.normals(1, 0, 0, first, np.empty((rows, 5)))
