"""What an exception says and carries: the candidate, and the Result so far."""

import functools

import numpy as np
import pytest

import fmnes
from faults import objectives
from faults.common import X, assert_only_trouble_failed
from fmnes.evaluate import Evaluator
from fmnes.runs.sequential import Runs

GENERATIONS = 4  # that succeed


class OwnError(Exception):
    """An exception whose attributes have the names of ours."""

    def __init__(self, x=None, result=None):
        super().__init__("mine")
        self.x, self.result = x, result


class FailsInGeneration:
    """A sphere that raises after some evaluations."""

    def __init__(self, error, calls):
        self.error, self.calls, self.last = error, calls, None

    def __call__(self, x):
        self.calls -= 1
        if self.calls < 0:
            self.last = x.copy()
            raise self.error
        return objectives.sphere(x)


def fails_later(error=None):
    popsize = fmnes.Optimizer(X[0], 1.0).popsize
    return FailsInGeneration(error or OwnError(), GENERATIONS * popsize + 2)


def undisturbed():
    return fmnes.minimize(objectives.sphere, X[0], 1.0, maxiter=GENERATIONS, rng=1)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_exception_of_the_objective_has_the_candidate_and_the_result(checkpoint, tmp_path):
    fun, keep = fails_later(), {"checkpoint": tmp_path / "run.npz"} if checkpoint else {}
    with pytest.raises(OwnError) as caught:
        fmnes.minimize(fun, X[0], 1.0, rng=1, **keep)
    error, expected = caught.value, undisturbed()
    assert error is fun.error
    assert error.x.tolist() == fun.last.tolist()
    assert (error.result.status, error.result.success) == ("error", False)
    assert (error.result.nit, error.result.fun) == (expected.nit, expected.fun)
    assert error.result.x.tolist() == expected.x.tolist()
    assert "error.result" in error.__notes__[-1]


def test_the_attributes_that_an_exception_has_itself_stay():
    error = OwnError(x="mine", result="mine")
    with pytest.raises(OwnError):
        fmnes.minimize(fails_later(error), X[0], 1.0, rng=1)
    assert (error.x, error.result) == ("mine", "mine")


def test_the_result_is_that_of_the_outer_search():
    def outer(x):
        return fmnes.minimize(fails_later(), x, 1.0, rng=1).fun

    with pytest.raises(OwnError) as caught:
        fmnes.minimize(outer, [1.0, 2.0], 1.0, rng=1)
    assert caught.value.x.shape == (2,)
    assert caught.value.result.nit == 0


def test_a_vectorized_objective_and_a_callback_raise_with_the_result():
    def raises(*_):
        raise OwnError

    with pytest.raises(OwnError) as caught:
        fmnes.minimize(raises, X[0], 1.0, vectorized=True)
    assert caught.value.x.shape == (2 + caught.value.result.restarts[0].popsize, 3)
    with pytest.raises(OwnError) as caught:
        fmnes.minimize(objectives.sphere, X[0], 1.0, callback=raises)
    assert (caught.value.x, caught.value.result.nit) == (None, 1)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError])
def test_what_interrupts_the_end_of_a_search_has_the_result(kind, monkeypatch):
    def save(self):
        raise kind  # a second Ctrl-C, or a disk that is full

    expected = undisturbed()
    monkeypatch.setattr(Runs, "save", save)
    with pytest.raises(kind) as caught:
        fmnes.minimize(objectives.sphere, X[0], 1.0, maxiter=GENERATIONS, rng=1)
    assert caught.value.result.fun == expected.fun


@pytest.mark.parametrize("make", [functools.partial(Evaluator, 2), Evaluator])
def test_an_evaluation_error_has_the_candidate(make):
    with make(retries=1) as evaluator, pytest.raises(fmnes.EvaluationError) as caught:
        evaluator.evaluate(objectives.raises, (), X)
    assert caught.value.x.tolist() == X[objectives.TROUBLE].tolist()
    assert caught.value.result is None


def test_workers_that_build_the_candidates_report_the_one_that_failed():
    x0 = np.full(20_000, 3.0)  # so many that workers build the candidates themselves
    with pytest.raises(fmnes.EvaluationError) as caught:
        fmnes.minimize(objectives.raises_surrogates_always, x0, 1.0, workers=1, rng=1)
    assert caught.value.x.shape == x0.shape
    assert caught.value.result.nit == 0


@pytest.mark.parametrize("pool", [None, 1])
def test_who_writes_to_x_is_told_to_copy_it(pool):
    with Evaluator(pool) as evaluator, pytest.raises((ValueError, fmnes.EvaluationError)) as caught:
        evaluator.evaluate(objectives.writes_to_x, (), X)
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "x.copy()" in told


@pytest.mark.parametrize("pool", [None, 2])
def test_a_text_that_is_no_unicode_ends_no_search(pool, tmp_path):
    with Evaluator(pool, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(objectives.raises_surrogates, (), X)
        assert_only_trouble_failed(outcome)
        assert "\\udcff.msh" in outcome.first_error
        outcome.first_error.encode()
        path = tmp_path / "run.npz"
        result = fmnes.minimize(
            objectives.raises_surrogates_always, X[0], 1.0, workers=evaluator, checkpoint=path
        )
    assert "\\udcff.msh" in result.first_error


def test_one_candidate_taken_for_a_population():
    with pytest.raises(np.exceptions.AxisError) as caught:
        fmnes.minimize(lambda x: (x**2).sum(axis=1), [3.0] * 4, 1.0)
    assert any("vectorized=True" in note for note in caught.value.__notes__)
