"""The pure functions of every method: shapes, dtypes, and that they are pure."""

import numpy as np
import pytest

from contract.common import arrays
from fmnes.algorithms import METHODS, Shape

DIMS = [1, 2, 3, 10]
dims = pytest.mark.parametrize("dim", DIMS)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


class Case:
    """A method with constants, draws and values; everything that goes in is read-only."""

    def __init__(self, method, dim, dtype=np.float64):
        self.module, self.dim, self.dtype = METHODS[method], dim, np.dtype(dtype)
        self.popsize = self.module.default_popsize(dim)
        self.popsize += self.popsize % 2
        self.params = self.module.params(dim, self.popsize)
        self.rng = np.random.default_rng(dim)

    def frozen(self, value):
        array = np.array(value, self.dtype)
        array.flags.writeable = False
        return array

    def first(self, D=1.0):
        """The first state, from given arrays."""
        mean, z = self.frozen(np.full(self.dim, 3.0)), self.frozen(self.rng.normal(size=self.dim))
        shape = Shape(D=self.frozen(np.full(self.dim, D)))
        return self.freeze(self.module.init(self.params, mean, self.frozen(2.0), shape, z))

    def freeze(self, state):
        """The same state in arrays that cannot be written to."""
        return type(state)(*(self.frozen(value) for value in state))

    def draws(self):
        rows = self.popsize // 2 if self.module.ANTITHETIC else self.popsize
        return self.frozen(self.rng.normal(size=(rows, self.dim)))

    def next(self, state, z):
        """One generation on a sphere."""
        x = self.module.ask(self.params, state, z)
        new = self.module.tell(self.params, state, z, self.frozen(np.sum(x * x, axis=1)))
        return new if self.module.LINEAR else self.module.refresh(self.params, new)


@dims
@dtypes
def test_shapes_and_dtypes(method, dim, dtype):
    case = Case(method, dim, dtype)
    state = case.first()
    for _ in range(5):
        z = case.draws()
        x = case.module.ask(case.params, state, z)
        assert x.shape == (case.popsize, dim)
        assert x.dtype == dtype
        new = case.next(state, z)
        for name, before in arrays(state).items():
            after = getattr(new, name)
            assert after.shape == before.shape, name
            assert after.dtype == dtype, name
        report = case.module.summary(case.params, new)
        assert report.deviations.shape == (dim,)
        assert report.deviations.dtype == dtype
        for name in ("sigma", "axis_ratio", "norm_v", "phase"):
            assert getattr(report, name).shape == (), name
        shape = case.module.shape(case.params, new)
        assert shape.D.shape == (dim,)
        assert shape.v is None or shape.v.shape == (dim,)
        assert shape.C is None or shape.C.shape == (dim, dim)
        assert {part.dtype for part in shape if part is not None} == {np.dtype(dtype)}
        state = case.freeze(new)


@dims
def test_inputs_are_not_changed_and_outputs_depend_on_them_alone(method, dim):
    """All inputs are read-only: a write would raise. Outputs are equal to the bit."""
    case = Case(method, dim)
    state, z = case.first(), case.draws()
    before, z_before = arrays(state), z.copy()
    once, twice = case.next(state, z), case.next(state, z)
    for name, value in arrays(once).items():
        np.testing.assert_array_equal(value, arrays(twice)[name], err_msg=name)
    for name, value in arrays(state).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    np.testing.assert_array_equal(z, z_before)


@dims
def test_a_population_is_the_mean_and_steps(method, dim):
    case = Case(method, dim)
    state, z = case.first(), case.draws()
    state = case.freeze(case.next(state, z))
    step = case.module.transform(case.params, state, z)
    rows = [state.mean + step, state.mean - step] if case.module.ANTITHETIC else [state.mean + step]
    np.testing.assert_array_equal(case.module.ask(case.params, state, z), np.concatenate(rows))


@dims
def test_samples_have_the_covariance_that_is_reported(method, dim):
    """Deviations by `summary`, against a sample of steps; 6 standard errors of a deviation."""
    case = Case(method, dim)
    state = case.first(D=1.5)
    for _ in range(5):
        state = case.freeze(case.next(state, case.draws()))
    n = 20_000
    steps = case.module.transform(case.params, state, case.rng.normal(size=(n, dim)))
    reported = case.module.summary(case.params, state).deviations
    np.testing.assert_allclose(steps.std(axis=0), reported, rtol=6 / np.sqrt(2 * n))


@dims
def test_a_flat_generation_changes_nothing(method, dim):
    case = Case(method, dim)
    state = case.freeze(case.next(case.first(), case.draws()))
    new = case.module.tell(
        case.params, state, case.draws(), case.frozen(np.full(case.popsize, 7.0))
    )
    for name, value in arrays(state).items():
        np.testing.assert_array_equal(getattr(new, name), value, err_msg=name)


def test_a_shape_survives_the_way_through_a_state(method):
    """init(shape) and shape(state) agree on the covariance that the method can hold."""
    case = Case(method, 6)
    state = case.first()
    for _ in range(20):
        state = case.freeze(case.next(state, case.draws()))
    report = case.module.summary(case.params, state)
    again = case.module.init(
        case.params, state.mean, report.sigma, case.module.shape(case.params, state), state.mean
    )
    np.testing.assert_allclose(
        case.module.summary(case.params, again).deviations, report.deviations, rtol=1e-12
    )
