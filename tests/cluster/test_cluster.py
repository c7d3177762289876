"""Searches whose workers hold the state, on an engine within this process."""

import logging

import numpy as np
import pytest

import fmnes
from cluster.common import (
    OVER,
    LoadsForEver,
    LocalHost,
    Unloadable,
    dies,
    digest,
    ellipsoid,
    hangs,
    interrupts,
    often_fails,
    unhurried,
)
from fmnes import METHODS, Cluster, EvaluationError, Evaluator
from fmnes.evaluate.cluster import _remote
from fmnes.evaluate.cluster._replica import Replica

LINEAR = [name for name, method in METHODS.items() if method.LINEAR]
X0 = np.linspace(-1.0, 2.0, 30)


def search(workers, **changes):
    arguments = {"method": "cr-fm-nes", "maxiter": 40, "rng": 3, "popsize": 12, **changes}
    fun = arguments.pop("fun", ellipsoid)
    return fmnes.minimize(fun, X0, 1.0, workers=workers, **arguments)


@pytest.fixture(scope="module")
def serial():
    return digest(search(None))


def on_update(host, generation, act):
    """Call ``act(actor)`` once, before the first update from that generation or a later one.

    An actor may sit out some generations. But one of two takes part in two of the last three,
    so that this happens for every generation up to 37 of 40.
    """
    acted = []

    def before(actor, method):
        population = actor.replica._population
        if method != "follow" or population is None or acted:
            return
        if population.generation >= generation:
            acted.append(actor)
            act(actor)

    host.before = before
    return acted


# === The same bits ===


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_search_has_the_bits_of_a_serial_one(n, serial):
    host = LocalHost(n)
    assert digest(search(Cluster(host))) == serial
    assert host.calls("join") == n == len(host.actors)


@pytest.mark.parametrize("method", LINEAR)
def test_every_method_of_linear_time_has_them(method):
    expected = digest(search(None, method=method, maxiter=15))
    assert digest(search(Cluster(LocalHost(2)), method=method, maxiter=15)) == expected


def test_bounds_restarts_and_failures_have_them():
    changes = {"fun": often_fails, "bounds": [(-2.0, 3.0)] * 30, "restarts": 1, "maxiter": 6}
    results = []
    for workers in (None, Cluster(LocalHost(2))):
        with Evaluator(workers, on_error="penalize") as evaluator:
            results.append(search(evaluator, **changes))
    serial, ours = results
    assert digest(ours) == digest(serial)
    assert serial.nfailed > 0
    assert len(serial.restarts) == 2
    assert "the mesh is tangled" in ours.first_error


def test_the_states_are_compared_every_generation(serial):
    host = LocalHost(1)
    assert digest(search(Cluster(host))) == serial
    assert host.calls("follow") == 40


def test_points_from_elsewhere_are_refused_when_they_are_injected():
    def callback(result, inject):
        if result.nit == 2:
            with pytest.raises(ValueError, match="inject: expected a search without a Cluster"):
                inject(X0)
            refused.append(result.nit)

    for wrapped in (Cluster, lambda host: Evaluator(Cluster(host))):
        refused = []
        result = search(wrapped(LocalHost(2)), maxiter=4, callback=callback)
        assert (refused, result.nit) == ([2], 4)  # the search can go on


# === Workers that are lost, altered, late or others ===


def test_a_lost_workers_candidates_are_done_elsewhere(serial):
    host = LocalHost(2)
    on_update(host, 6, lambda actor: setattr(actor, "is_lost", True))
    assert digest(search(Cluster(host))) == serial
    assert len(host.actors) == host.calls("join") == 3


def test_a_worker_lost_with_candidates_costs_nothing_but_time(serial):
    host = LocalHost(2)

    def before(actor, method):
        if method == "work" and host.calls("work") == 20:
            actor.is_lost = True

    host.before = before
    assert digest(search(Cluster(host))) == serial
    assert host.calls("join") == 3


@pytest.mark.parametrize("fun", [dies, hangs])
def test_a_candidate_that_ends_its_worker_has_failed_after_its_attempts(fun):
    seen = []
    search(None, maxiter=3, fun=lambda x: seen.append(x[0]) or ellipsoid(x))
    where = seen[17]
    expected = search(None, maxiter=5, fun=fun, args=(where,))
    host = LocalHost(2)
    OVER.clear()
    try:
        with Evaluator(Cluster(host), timeout=2.0, on_error="penalize", chunksize=1) as evaluator:
            result = search(evaluator, maxiter=5, fun=fun, args=(where,))
    finally:
        OVER.set()
    assert digest(result) == digest(expected)
    assert result.nfailed == 1
    assert ("no value within 2 seconds" in result.first_error) == (fun is hangs)
    assert len(host.actors) == 2 + (1 if fun is hangs else 2)


def test_a_worker_that_dies_at_every_start_is_left_out(serial):
    host = LocalHost(2)

    def before(actor, method):
        actor.is_lost = actor is not host.actors[0]

    host.before = before
    assert digest(search(Cluster(host))) == serial
    assert len(host.actors) == 1 + 3


@pytest.mark.parametrize("generation", [1, 8, 37])
@pytest.mark.parametrize("field", ["mean", "D", "v", "p_sigma", "p_c"])
def test_a_worker_whose_state_is_altered_begins_anew(field, generation, serial, caplog):
    host = LocalHost(2)

    def alter(actor):
        vector = getattr(actor.replica._population._engine.state, field)
        vector[7] += 1e-9  # more than an update would round away

    acted = on_update(host, generation, alter)
    with caplog.at_level(logging.WARNING, "fmnes"):
        assert digest(search(Cluster(host), fun=unhurried)) == serial
    assert len(acted) == 1
    assert "its state differs" in caplog.text
    assert len(host.actors) == 2


@pytest.mark.parametrize("generation", [0, 1, 8, 37])
@pytest.mark.parametrize("where", ["mean", "D", "v", "bounds"])
def test_a_state_that_changes_after_the_comparison_lets_no_value_in(where, generation, caplog):
    """A memory error may come at any time: here with the first chunk of a generation."""
    changes = {"bounds": [(-3.0, 4.0)] * 30}
    expected, host, acted = digest(search(None, **changes)), LocalHost(2), []

    def alter(actor, method):
        population = actor.replica._population
        if method != "work" or acted or population.generation < generation:
            return
        acted.append(actor)
        population.row(0)  # from here on the engine has its own copy of the state
        vectors = {**population._engine.state._asdict(), "bounds": population._recipe.box.low}
        vectors[where][7] += 0.5  # all values of this chunk will be wrong

    host.before = alter
    with caplog.at_level(logging.WARNING, "fmnes"):
        assert digest(search(Cluster(host), **changes)) == expected
    assert len(acted) == 1
    assert "its state has changed" in caplog.text


def test_a_worker_whose_state_changes_again_and_again_is_left_out(serial, caplog):
    host = LocalHost(2)

    def alter(actor, method):
        if actor is host.actors[0] and method == "work":
            actor.replica._population.row(0)
            actor.replica._population._engine.state.mean[7] += 0.5

    host.before = alter
    with caplog.at_level(logging.WARNING, "fmnes"):
        assert digest(search(Cluster(host))) == serial
    assert host.actors[0].calls.count("work") == 3
    assert "refused" in caplog.text


def test_a_worker_that_hangs_while_it_loads_the_objective_is_an_error(monkeypatch):
    monkeypatch.setattr(_remote, "STARTUP_SECONDS", 0.2)
    OVER.clear()
    try:
        with (
            Evaluator(Cluster(LocalHost(2)), timeout=0.2) as evaluator,
            pytest.raises(EvaluationError, match=r"timeout: .* 0\.4 seconds"),
        ):
            search(evaluator, fun=LoadsForEver())
    finally:
        OVER.set()


def test_a_worker_that_comes_late_is_told_what_it_missed(serial):
    host = LocalHost(room=1)
    host.gate.clear()

    def let_in(intermediate):
        if intermediate.nit == 20:
            host.gate.set()
            host.actors[1].thread.submit(int).result(10)  # it has joined

    with Evaluator(Cluster(host, 2), chunksize=1) as evaluator:
        assert digest(search(evaluator, callback=let_in)) == serial
    first, late = host.actors
    assert late.calls.count("follow") <= 20 < first.calls.count("follow")
    assert late.calls.count("work") > 0


class Older(Replica):
    def join(self):
        versions, where = super().join()
        return {**versions, "fmnes": "0.0.9"}, where


def test_another_version_is_refused_and_the_others_go_on(serial, caplog):
    kinds = iter([Replica, Older])
    host = LocalHost(2, make=lambda: next(kinds)())
    with caplog.at_level(logging.WARNING, "fmnes"), Evaluator(Cluster(host)) as evaluator:
        assert digest(search(evaluator)) == serial
        assert host.ended == 0  # or else a next one might be put where this one is
    versions = f"expected fmnes {fmnes.__version__}, numpy {np.__version__}"
    assert versions in caplog.text
    assert "as in the driver, got fmnes 0.0.9" in caplog.text
    assert host.actors[1].calls == ["join"]


def test_nobody_but_other_versions_is_an_error():
    with pytest.raises(EvaluationError, match=r"none of the cluster can take part: .*0\.0\.9"):
        search(Cluster(LocalHost(2, make=Older)))


def test_an_altered_driver_is_found_by_its_workers():
    opt = fmnes.Optimizer(X0, 1.0, rng=3)
    with Evaluator(Cluster(LocalHost(2))) as evaluator:
        for _ in range(5):
            opt.tell(evaluator.evaluate(ellipsoid, (), opt.population()).values)
        mean = opt._engine.state.mean
        mean[3] = np.nextafter(mean[3], np.inf)
        with pytest.raises(EvaluationError, match="another state than the driver's, bit for bit"):
            evaluator.evaluate(ellipsoid, (), opt.population())


# === What it costs ===


def test_what_travels_does_not_depend_on_the_number_of_variables():
    traffic = {}
    for dim in (20, 2_000):
        host, marks = LocalHost(2), []

        def note(intermediate, host=host, marks=marks):
            marks.append(host.sent + host.received)

        with Evaluator(Cluster(host), chunksize=4) as evaluator:
            fmnes.minimize(
                unhurried, np.ones(dim), 1.0, popsize=24, rng=1, maxiter=40,
                workers=evaluator, callback=note,
            )  # fmt: skip
        # Of most generations: one who had nothing to do hears of two at once the next time, and one
        # who joins is sent a checkpoint.
        traffic[dim] = np.median(np.diff(marks))
    assert traffic[2_000] < 2500
    assert abs(traffic[2_000] - traffic[20]) < 300


def test_an_objective_that_cannot_be_loaded_there_is_a_type_error():
    with pytest.raises(TypeError, match="fun: expected a function that worker processes can"):
        search(Cluster(LocalHost(2)), fun=Unloadable())


def test_one_evaluator_keeps_its_workers_from_search_to_search(serial):
    host = LocalHost(2)
    with Evaluator(Cluster(host)) as evaluator:
        assert [digest(search(evaluator)) for _ in range(3)] == [serial] * 3
        assert len(host.actors) == 2
        assert host.ended == 0
    assert host.ended == 2


# === Ending ===


def test_a_killed_driver_resumes_to_the_same_bits(tmp_path, serial):
    class Killed(Exception):
        pass

    def kill(intermediate):
        if intermediate.nit == 13:
            raise Killed

    path = tmp_path / "run.npz"
    with pytest.raises(Killed):
        search(Cluster(LocalHost(2)), checkpoint=path, callback=kill)
    assert digest(search(Cluster(LocalHost(2)), checkpoint=path, resume="must")) == serial


def test_ctrl_c_ends_the_search_and_its_workers():
    host = LocalHost(2)
    OVER.clear()
    try:
        result = search(Cluster(host), fun=interrupts)
    finally:
        OVER.set()
    assert result.status == "interrupted"
    assert 12 <= result.nfev < 400
    assert host.ended == 2


# === Arguments ===


def test_a_method_that_is_not_of_linear_time_is_refused():
    with pytest.raises(ValueError, match=r"workers: expected no Cluster.*method of linear time"):
        search(Cluster(LocalHost(2)), method="xnes")


def test_a_pool_that_has_no_actors_is_refused():
    with pytest.raises(TypeError, match=r"pool: expected a Client of Dask, .*got int: 3"):
        Cluster(3)


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_the_number_of_workers_is_checked(n, error):
    with pytest.raises(error, match="n: expected"):
        Cluster(LocalHost(), n)
