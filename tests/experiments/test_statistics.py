"""The metric by hand, its interval and the test of differences by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import hypergeom

from fmnes.benchmarking.statistics import Cell, Ratio, compare, typical
from fmnes.experiments import protocol
from fmnes.experiments.cases import Table
from fmnes.experiments.protocol import Trial
from fmnes.experiments.results import TrialResult


def rows(evaluations, successes=None, solver=protocol.SAFE, function="sphere", popsize=18):
    successes = [True] * len(evaluations) if successes is None else successes
    return [
        TrialResult(
            Trial("evaluations", function, 80, popsize, *solver, k), 1, n, bool(s), 0.0, 1.0, ""
        )
        for k, (n, s) in enumerate(zip(evaluations, successes, strict=True))
    ]


def compare_rows(a, b):
    return compare(Cell(a), Cell(b))


def test_metric_is_the_mean_of_the_successes_over_the_success_rate():
    cell = Cell(rows([100, 200, 300, 9999], [1, 1, 1, 0]))
    assert cell.metric == pytest.approx(200 / 0.75)
    assert cell.mean == 200
    assert str(cell) == "267 (3 of 4)"


def test_without_success_the_metric_is_infinite():
    cell = Cell(rows([100, 200], [0, 0]))
    assert cell.metric == math.inf
    assert str(cell) == "no success in 2"


def test_interval_is_that_of_all_resamples():
    evaluations = [100, 140, 150, 190]
    means = [np.mean(sample) for sample in itertools.product(evaluations, repeat=4)]
    low, high = np.percentile(means, [2.5, 97.5])
    cell = Cell(rows(evaluations))
    assert cell.interval[0] == pytest.approx(low, abs=4)  # 2000 resamples of 256
    assert cell.interval[1] == pytest.approx(high, abs=4)
    assert cell.interval[0] < cell.metric < cell.interval[1]


def test_interval_counts_resamples_without_success_as_infinite():
    cell = Cell(rows([100, 100], [1, 0]))  # a quarter of the resamples holds no success
    assert cell.interval[1] == math.inf


def test_permutation_test_is_exact_for_few():
    a, b = [10, 11, 12], [20, 21, 22]
    comparison = compare_rows(rows(a), rows(b))
    # Of the 20 ways to split six, two are as far apart as this one.
    assert comparison.p == pytest.approx(2 / 20)
    assert comparison.difference == pytest.approx(11 / 21 - 1)


def test_equal_samples_do_not_differ():
    comparison = compare_rows(rows([10, 11, 12, 13]), rows([13, 12, 11, 10]))
    assert comparison.p == 1
    assert comparison.difference == 0


def test_ratios_by_population_size():
    table = Table(
        rows([100, 100]) + rows([300, 300], solver=protocol.FM_NES)
        + rows([200], popsize=36) + rows([100], [0], solver=protocol.FM_NES, popsize=36)
        + rows([50], popsize=54)
    )  # fmt: skip
    ratios = table.ratios("sphere", 80, protocol.FM_NES, protocol.SAFE)
    assert {popsize: ratio.value for popsize, ratio in ratios.items()} == {18: 3.0, 36: math.inf}
    shares = [[cell.share for cell in ratio.cells] for ratio in ratios.values()]
    assert shares == [["2/2", "2/2"], ["0/1", "1/1"]]
    assert table.ratios("sphere", 200, protocol.FM_NES, protocol.SAFE) == {}


def ratio_of(over, under, *successes):
    table = Table(rows(over, *successes[:1], solver=protocol.FM_NES) + rows(under, *successes[1:]))
    (ratio,) = table.ratios("sphere", 80, protocol.FM_NES, protocol.SAFE).values()
    return ratio


def test_interval_of_a_ratio_is_that_of_all_resamples_of_both_sides():
    over, under = [100, 140, 150], [50, 60, 90]
    means = [[np.mean(s) for s in itertools.product(side, repeat=3)] for side in (over, under)]
    low, high = np.percentile(np.divide.outer(*means), [2.5, 97.5])
    ratio = ratio_of(over, under)
    assert ratio.value == pytest.approx(130 / (200 / 3))
    assert ratio.interval == pytest.approx((low, high), abs=0.1)  # 2000 resamples of 729


@pytest.mark.parametrize(("trials", "percent"), [(2, 67), (3, 80), (5, 88), (10, 92)])
def test_how_many_intervals_of_a_ratio_cover_it(trials, percent):
    """As the page says: of normal evaluations, 10 % of their mean apart."""
    rng, covered, repeats = np.random.default_rng(trials), 0, 1000
    for _ in range(repeats):
        counts = np.rint(1e6 * (1 + 0.1 * rng.standard_normal((2, trials)))).astype(int)
        both = [*rows(counts[0], solver=protocol.FM_NES), *rows(counts[1])]
        ((_, ratio),) = Table(both).ratios("sphere", 80, protocol.FM_NES, protocol.SAFE).items()
        low, high = ratio.interval
        covered += low <= 1 <= high
    assert ratio.trials == trials
    assert covered / repeats == pytest.approx(percent / 100, abs=0.035)  # some 2.5 deviations


def test_one_trial_has_no_interval():
    assert np.isnan(ratio_of([100], [50, 60]).interval).all()
    assert str(ratio_of([100], [50])) == "2.00 [one trial]"


def test_where_both_may_fail_the_ratio_may_be_anything():
    ratio = ratio_of([9, 9, 9], [50, 9, 9], [0, 0, 0], [1, 0, 0])
    assert ratio.value == math.inf
    assert ratio.interval == (0, math.inf)  # in 8 of 27 resamples neither succeeds
    ratio = ratio_of([9, 9, 9], [50, 60, 70], [0, 0, 0])
    assert ratio.interval == (math.inf, math.inf)


def test_where_neither_succeeded_there_is_no_ratio():
    ratio = ratio_of([9, 9], [9, 9], [0, 0], [0, 0])
    assert math.isnan(ratio.value)
    assert str(ratio) == "neither"


def known(*values):
    return [Ratio(value, np.full(3, value)) for value in values]


def test_typical_is_the_geometric_mean():
    assert typical(known(1.0, 4.0)).value == pytest.approx(2)
    assert typical(known(1.0, 4.0)).interval == pytest.approx((2, 2))


def test_typical_where_one_side_never_succeeds():
    assert typical(known(0.0, 4.0)).value == 0
    assert typical(known(math.inf, 4.0)).value == math.inf
    assert math.isnan(typical(known(math.inf, 0.0)).value)


def test_success_rates_are_compared_by_fishers_exact_test():
    comparison = compare_rows(rows([10] * 10), rows([10] * 10, [1] * 2 + [0] * 8))
    # Of 12 successes in 20 trials, all ten of the first: as unlikely as that, on either side.
    chances = hypergeom(20, 12, 10).pmf(np.arange(11))
    assert comparison.p_success == pytest.approx(chances[chances <= chances[10] * 1.0001].sum())
    assert compare_rows(rows([10] * 3), rows([10] * 3)).p_success == 1
