"""Large populations are built where they are evaluated: the same bits, from O(d) numbers."""

import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import fmnes
from faults import objectives
from fmnes import _population
from fmnes.evaluate import EvaluationError, Evaluator
from fmnes.evaluate._call import ObjectiveCall
from fmnes.evaluate._payload import ObjectivePickler, load, work

DIM = 1000


def optimizer(method, bounds=None, dim=DIM):
    return fmnes.Optimizer(
        np.linspace(-1.0, 3.0, dim), 0.5, method=method, rng=3, popsize=40, bounds=bounds
    )


@pytest.mark.parametrize("bounds", [None, [(-1.0, 3.5)] * 20])
def test_a_candidate_has_the_bits_that_ask_gives_it(method, bounds):
    opt = optimizer(method, bounds, dim=20)
    for _ in range(3):
        population = opt.population()
        x = opt.ask()
        if not fmnes.METHODS[method].LINEAR:  # those are built all at once
            assert population is None
            return
        elsewhere = pickle.loads(pickle.dumps(population))
        assert population.shape == elsewhere.shape == x.shape
        assert all(np.array_equal(elsewhere.row(i), x[i]) for i in range(len(x)))
        assert np.array_equal(population.rows(), x)
        opt.tell(np.sum(x * x, axis=1))


def test_population_counts_as_ask():
    opt, other = optimizer("cr-fm-nes"), optimizer("cr-fm-nes")
    for _ in range(3):
        values = Evaluator().evaluate(objectives.sphere, (), opt.population()).values
        opt.tell(values)
        other.tell([objectives.sphere(row) for row in other.ask()])
    assert np.array_equal(opt.result.mean, other.result.mean)


@pytest.mark.parametrize("bounds", [None, [(-1.0, 3.5)] * DIM])
def test_minimize_over_workers_that_build_has_the_bits_of_a_serial_search(bounds):
    search = partial(
        fmnes.minimize, objectives.sphere, [1.0] * DIM, 0.5, popsize=40, maxiter=4, rng=1
    )
    assert Evaluator(2).builds(8 * 40 * DIM)
    alone, together = (search(bounds=bounds, workers=workers) for workers in (None, 2))
    assert np.array_equal(alone.mean, together.mean)
    assert (alone.fun, alone.sigma) == (together.fun, together.sigma)


class Counting(ProcessPoolExecutor):
    """Counts what it is sent."""

    sent = 0

    def submit(self, function, /, *args):
        Counting.sent += len(pickle.dumps((function, args), protocol=pickle.HIGHEST_PROTOCOL))
        return super().submit(function, *args)


def test_a_generation_costs_a_few_vectors_for_each_worker():
    make = partial(Counting, 2, mp_context=multiprocessing.get_context("forkserver"))
    dim, generations = 20_000, 5
    with Evaluator(make) as evaluator:
        fmnes.minimize(
            objectives.sphere, [1.0] * dim, 0.5, method="cr-fm-nes", popsize=40,
            maxiter=generations, workers=evaluator,
        )  # fmt: skip
    vectors = Counting.sent / (8 * dim) / generations
    # Five for each of two workers. A worker may ask again if it is late; candidates would be 40.
    assert 10 <= vectors <= 20


def test_a_worker_that_lacks_what_it_needs_is_sent_it():
    """Every chunk is done by a new process here, so that none holds anything."""
    make = partial(
        ProcessPoolExecutor,
        1,
        mp_context=multiprocessing.get_context("forkserver"),
        max_tasks_per_child=1,
    )
    population = optimizer("cr-fm-nes", dim=10_000).population()
    known = dict.fromkeys(range(4, 40), 0.0)
    with Evaluator(make, chunksize=1) as evaluator:
        values = evaluator.evaluate(objectives.sphere, (), population, known).values
    assert values[:4].tolist() == [objectives.sphere(population.row(i)) for i in range(4)]


def test_a_worker_says_what_it_lacks():
    payload = ObjectivePickler().pickle(ObjectiveCall(objectives.sphere, ()))
    name = payload._replace(data=b"")
    rows = objectives.population()
    with ThreadPoolExecutor(1) as thread:  # in the main thread, `work` would ignore Ctrl-C

        def worked(*args):
            return thread.submit(work, *args).result()

        assert worked([name], [0], rows, 1.0).missing
        assert worked([name], [0], rows, 1.0, payload.data).results == [objectives.sphere(rows[0])]
        assert worked([name], [1], rows[1:], 1.0).results == [objectives.sphere(rows[1])]
    assert not load(name).missing


def test_the_same_objective_keeps_its_key():
    pickler = ObjectivePickler()
    first = pickler.pickle(ObjectiveCall(objectives.shifted, (np.zeros(3),)))
    assert pickler.pickle(ObjectiveCall(objectives.shifted, (np.zeros(3),))) == first
    assert pickler.pickle(ObjectiveCall(objectives.shifted, (np.ones(3),))).key != first.key


def test_another_version_may_not_build(monkeypatch):
    population = optimizer("cr-fm-nes").population()
    with monkeypatch.context() as here:
        here.setattr(_population, "software", lambda: "fmnes 99.0 with native kernels")
        data = pickle.dumps(population)
    with pytest.raises(ImportError, match=r"workers: expected fmnes 99\.0 with native .* got fmn"):
        pickle.loads(data)


def test_another_version_ends_the_search(monkeypatch):
    monkeypatch.setattr(_population, "software", lambda: "fmnes 99.0 with native kernels")
    population = optimizer("cr-fm-nes").population()
    with (
        Evaluator(1, on_error="penalize") as evaluator,
        pytest.raises(EvaluationError, match=r"workers: expected fmnes 99\.0"),
    ):
        evaluator.evaluate(objectives.sphere, (), population)


@pytest.mark.parametrize("dim", [20, DIM])
def test_an_interrupt_keeps_the_values_that_workers_returned(dim):
    """Candidates that the driver has built, and candidates that the worker builds."""
    workers = Evaluator(1, chunksize=1)
    assert workers.builds(8 * 40 * dim) == (dim == DIM)
    x0, args = np.linspace(-1.0, 3.0, dim), (os.getpid(), 5)
    with workers:
        result = fmnes.minimize(
            objectives.interrupts_driver, x0, 0.5, args=args, popsize=40, rng=3, workers=workers
        )
    assert (result.status, result.nit, result.nfev) == ("interrupted", 0, 4)
    x = fmnes.Optimizer(x0, 0.5, popsize=40, rng=3).ask()[:4]
    best = min(x, key=objectives.sphere)
    assert (result.fun, result.x.tolist()) == (objectives.sphere(best), best.tolist())
