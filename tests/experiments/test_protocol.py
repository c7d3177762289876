"""The protocol is the paper's: Table I, Table II, section IV."""

from collections import Counter

import pytest

from fmnes.experiments import protocol
from fmnes.experiments.protocol import Trial, trials_of
from fmnes.experiments.solvers import SOLVERS


@pytest.mark.parametrize(("dim", "default"), [(80, 18), (200, 20), (600, 24), (1000, 24)])
def test_population_sizes_are_once_to_five_times_the_papers_default(dim, default):
    expected = tuple(default * times for times in (1, 2, 3, 4, 5))
    assert protocol.popsizes("ellipsoid", dim) == expected


def test_population_sizes_on_rastrigin_are_those_of_table_II():
    assert protocol.popsizes("rastrigin", 80) == (1600, 1760, 1920, 2080, 2240)
    assert protocol.popsizes("rastrigin", 1000) == (4000, 4500, 5000, 5500, 6000)


def test_budget_and_start_are_the_papers():
    trial = Trial("evaluations", "rosenbrock", 80, 18, *protocol.SAFE, 0)
    assert trial.maxfevals == 4_000_000
    assert trial.ftarget == 1e-10
    assert (trial.problem.x0 == 0).all()
    assert trial.problem.sigma0 == 0.5
    other = trial._replace(function="ktablet").problem
    assert (other.x0 == 3).all()
    assert other.sigma0 == 2
    assert other([1.0] + [0.0] * 79) == 1  # the first d/4 variables have weight 1
    assert other([0.0] * 20 + [1.0] + [0.0] * 59) == 10_000


def test_trials_10_and_30_on_rastrigin():
    trials = trials_of(["fm-nes", "high-dimensional"])
    counts = Counter(trial[:-1] for trial in trials)
    assert {count for kind, count in counts.items() if kind[1] == "rastrigin"} == {30}
    assert {count for kind, count in counts.items() if kind[1] != "rastrigin"} == {10}
    assert len(counts) == 5 * 5 * (3 + 3 * 4)  # functions, sizes, solvers at each dimension


def test_what_the_repository_keeps_beyond_200_dimensions():
    counts = Counter(
        (trial.dim, trial.function, trial.popsize, trial.solver)
        for trial in trials_of(["high-dimensional"], protocol.kept)
    )
    solver = protocol.VD_CMA
    assert [counts[600, "sphere", times * 24, solver] for times in (1, 2, 3, 4, 5)] == [
        10, 0, 10, 0, 10,
    ]  # fmt: skip
    assert [counts[600, "rastrigin", times * 600, solver] for times in (6, 7, 8, 9, 10)] == [5] * 5
    assert [counts[1000, "sphere", times * 24, solver] for times in (1, 3)] == [3, 3]
    assert counts[1000, "rosenbrock", 24, solver] == 1
    assert counts[1000, "rosenbrock", 24, protocol.SAFE] == 3
    assert [counts[1000, "rastrigin", popsize, solver] for popsize in (4000, 6000)] == [3, 3]


def test_seeds_follow_from_the_trial_alone_and_differ():
    trials = trials_of(protocol.EXPERIMENTS)
    seeds = [trial.seed for trial in trials]
    assert min(seeds) >= 1
    assert max(seeds) <= 2**31
    assert len(set(seeds)) > 0.999 * len(seeds)  # 31 bits, some thousand trials
    # Of SHA-256, computed apart: printf '%s' 'a|b|1|2|c|d|0' | sha256sum begins with d2bf48a2.
    assert Trial("a", "b", 1, 2, "c", "d", 0).seed == 0xD2BF48A2 // 2 + 1


def test_every_trial_has_a_solver():
    solvers = {trial.solver for trial in trials_of(protocol.EXPERIMENTS)}
    assert solvers <= set(SOLVERS)


def test_long_trials_are_known_to_be_long():
    quick = Trial("evaluations", "sphere", 80, 18, *protocol.SAFE, 0)
    slow = Trial("evaluations", "rosenbrock", 1000, 24, *protocol.VD_CMA, 0)
    assert protocol.expected_seconds(slow) > 1000 * protocol.expected_seconds(quick)
