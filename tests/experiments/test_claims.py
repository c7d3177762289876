"""Verdicts are computed from the rows: altered rows flip them."""

import dataclasses
import math

import pytest

from fmnes.experiments import protocol
from fmnes.experiments.cases import Table
from fmnes.experiments.claims import claims
from fmnes.experiments.protocol import FUNCTIONS, Trial, popsizes
from fmnes.experiments.results import TrialResult
from fmnes.experiments.verdicts import agreements


@dataclasses.dataclass
class World:
    """Made-up results in which every claim of the paper holds; a test changes one factor."""

    factors: dict = dataclasses.field(
        default_factory=lambda: {
            ("fm-nes", "ellipsoid"): 6.0,
            ("fm-nes", "ktablet"): 5.0,
            ("fm-nes", "rosenbrock"): 2.0,
            ("vd-cma", "sphere"): 1.2,
            ("vd-cma", "ktablet"): 2.0,
            ("vd-cma", "ellipsoid"): 2.0,
            ("vd-cma", "rosenbrock"): 1.4,
            ("sep-cma", "rosenbrock"): 3.0,
            ("vd-cma", "rastrigin"): 1.5,
            ("sep-cma", "rastrigin"): 2.0,
            ("sep-cma", "cigar"): 9.0,
            ("r1-nes", "ellipsoid"): math.inf,
            ("r1-nes", "ktablet"): math.inf,
            ("r1-nes", "rosenbrock"): 3.0,
            ("r1-nes", "cigar"): 1.5,
            ("cr-fm-nes", "twoaxes"): math.inf,
        }
    )
    seconds: dict = dataclasses.field(
        default_factory=lambda: {
            protocol.SAFE: lambda dim: 1.0,
            protocol.AUTHORS: lambda dim: 1.0 + dim / 1000,
            protocol.FM_NES: lambda dim: 1.0 + dim**3 / 1e4,
        }
    )
    ablated: float = 1.5
    retuned: float = 1.2
    spread: int = 0  # of the evaluations of the paper's method

    def rows(self):
        return [row for kind in (self._grid, self._rotated, self._time) for row in kind()]

    def table(self):
        return Table(self.rows())

    def _row(self, function, dim, popsize, solver, number):
        factor = self.factors.get((solver[0], function), 1.0)
        if solver in protocol.ABLATIONS:
            factor = self.ablated
        if solver in protocol.ETA_B:
            factor = self.retuned
        success = math.isfinite(factor)
        count = int(10_000 * factor) if success else 999
        count += self.spread * number * (solver == protocol.PAPER)
        trial = Trial("evaluations", function, dim, popsize, *solver, number)
        return TrialResult(trial, 1, count + number, success, 0.0, 1.0, "")

    def _grid(self):
        parts = [*protocol.ABLATIONS, *protocol.ETA_B]
        here = {80: [protocol.FM_NES, protocol.R1_NES, *parts], 200: parts}
        always = [protocol.PAPER, protocol.SAFE, protocol.VD_CMA, protocol.SEP_CMA]
        for dim in (80, 200, 600, 1000):
            solvers = [*always, *here.get(dim, [])]
            for function in FUNCTIONS:
                for popsize in popsizes(function, dim)[:2]:
                    for solver in solvers:
                        for number in range(2):
                            yield self._row(function, dim, popsize, solver, number)

    def _rotated(self):
        for function in ("cigar", "twoaxes"):
            for solver in protocol.REPRESENTATIONS:
                for number in range(2):
                    yield self._row(function, 80, 18, solver, number)

    def _time(self):
        for solver, seconds in self.seconds.items():
            for dim in protocol.TIME_DIMS:
                for number in range(2):
                    trial = Trial("time", "sphere", dim, 20, *solver, number)
                    yield TrialResult(trial, 1, 20_000, False, 0.0, seconds(dim), "")


def judged(name, table):
    (found,) = [claim for claim in claims(table) if claim.name == name]
    return found


def verdict_of(name, world):
    return judged(name, world.table()).verdict


def test_in_a_world_of_the_papers_making_every_claim_is_confirmed():
    assert {claim.verdict for claim in claims(World().table())} == {"confirmed"}


def test_without_rows_no_claim_is_judged():
    assert {claim.verdict for claim in claims(Table([]))} == {"not run"}


@pytest.mark.parametrize(
    ("name", "altered"),
    [
        ("against_fm_nes", {("fm-nes", "ellipsoid"): 1.3}),
        ("against_fm_nes", {("fm-nes", "rosenbrock"): 1.1}),
        ("against_fm_nes", {("fm-nes", "rastrigin"): 0.8}),
        ("learning_rates", {("fm-nes", "ktablet"): 0.9}),
        ("level_with_sep_cma", {("sep-cma", "ktablet"): 0.5}),
        ("ahead_on_rosenbrock", {("sep-cma", "rosenbrock"): 1.2}),
        ("ahead_on_rosenbrock", {("vd-cma", "rosenbrock"): 0.9}),
        ("ahead_on_rastrigin", {("vd-cma", "rastrigin"): 0.9}),
        ("representations", {("sep-cma", "cigar"): 1.0}),
        ("representations", {("r1-nes", "ellipsoid"): 1.0}),
        ("vd_cma_against_r1_nes", {("r1-nes", "cigar"): 1.0}),
    ],
)
def test_altered_rows_flip_the_verdict(name, altered):
    world = World()
    world.factors |= altered
    assert verdict_of(name, world) == "confirmed in part"


def test_altered_everywhere_a_claim_is_contradicted():
    world = World()
    world.factors |= {("vd-cma", "rastrigin"): 0.9, ("sep-cma", "rastrigin"): 0.9}
    assert verdict_of("ahead_on_rastrigin", world) == "contradicted"


@pytest.mark.parametrize(
    "altered", [{("cr-fm-nes", "twoaxes"): 50.0}, {("fm-nes", "twoaxes"): math.inf}]
)
def test_many_long_axes_are_no_failure_if_ours_follows_or_nobody_does(altered):
    world = World()
    world.factors |= altered
    assert verdict_of("beyond_the_covariance", world) == "contradicted"


@pytest.mark.parametrize(
    ("solver", "seconds"),
    [
        (protocol.SAFE, lambda dim: dim / 10),  # no longer flat
        (protocol.FM_NES, lambda dim: 1.0),  # no longer rising
        (protocol.FM_NES, lambda dim: dim**2.0),  # another power
    ],
)
def test_altered_times_flip_the_verdict(solver, seconds):
    world = World()
    world.seconds[solver] = seconds
    assert verdict_of("computation_time", world) == "confirmed in part"


def test_parts_that_do_nothing_do_not_explain_the_lead_over_vd_cma():
    assert verdict_of("inherited_parts", World(ablated=1.0)) == "confirmed in part"
    assert verdict_of("rank_one_update", World(ablated=1.0)) == "contradicted"


def test_no_lead_over_vd_cma_is_nothing_to_explain():
    world = World(ablated=1.0)
    world.factors |= {("vd-cma", function): 0.9 for function in FUNCTIONS}
    assert verdict_of("inherited_parts", world) == "contradicted"


def test_where_intervals_cross_the_threshold_nothing_is_decided():
    """Trials of 10 000 and 30 000 evaluations: the metric lies anywhere between."""
    found = judged("ahead_on_rastrigin", World(spread=20_000).table())
    assert found.verdict == "undecided"
    assert found.held == "0 of 0, 6 undecided"
    assert "2/2 and 2/2" in str(found.checks[0])
    assert str(found.checks[0].bounds) in str(found.checks[0])


def test_one_trial_decides_nothing_and_the_verdict_says_so():
    world = World()
    table = Table(
        row
        for row in world.rows()
        if row.trial.experiment == "evaluations"
        and not (row.trial.dim == 1000 and row.trial.method == "vd-cma" and row.trial.trial)
    )
    found = judged("ahead_on_rosenbrock", table)
    assert found.verdict == "confirmed where the data decide"
    assert found.held == "5 of 5, some by 2 trials only, 1 undecided"


def test_where_the_praised_method_solves_nothing_the_claim_is_not_confirmed():
    """Nor if the other one fails as well, which leaves no ratio."""
    world = World()
    world.factors |= {("sep-cma", "cigar"): math.inf, ("cr-fm-nes", "cigar"): math.inf}
    found = judged("representations", world.table())
    assert found.verdict == "confirmed in part"
    assert found.held == "10 of 12, some by 2 trials only"  # VD-CMA still solves it
    failed = [check for check in found.checks if check.outcome == "fails"]
    assert {check.where for check in failed} == {("cigar", "d = 80")}
    assert "neither" in str(failed[0])


def test_one_failure_of_the_praised_method_decides_nothing():
    """One trial of it, where both fail."""
    world = World()
    world.factors |= {("sep-cma", "cigar"): math.inf, ("cr-fm-nes", "cigar"): math.inf}
    table = Table(
        row
        for row in world.rows()
        if row.trial.experiment == "evaluations"
        and not (row.trial.function == "cigar" and row.trial.trial)
    )
    assert judged("representations", table).count("fails") == 0


def test_the_measured_range_is_shown():
    found = judged("against_fm_nes", World().table())
    (measured,) = found.measured
    assert measured.startswith("FM-NES / CR-FM-NES (paper): 6 (ellipsoid, d = 80); 5 (ktablet")


def test_the_rates_are_no_cause_if_a_lower_one_does_as_well():
    assert verdict_of("learning_rates", World(retuned=1.0)) == "confirmed in part"


def values(check):
    return [ratio.value for ratio in check.ratios.values()]


def test_the_rates_of_both_methods_are_those_of_their_formulas():
    """eta_B: tanh((0.02 lambda + 5) / 43.4) over 180 d tanh(0.02 lambda) / (47 d^2 + 6400)."""
    found = judged("learning_rates", World().table())
    of_matrix, of_rank_one = found.checks[:2]
    assert values(of_matrix) == pytest.approx([7.59355, 4.53147], rel=1e-5)  # lambda = 18 and 36
    assert values(of_rank_one) == pytest.approx([12.5, 12.5])  # (d - 5) / 6


def test_a_better_learning_rate_contradicts_the_fit():
    assert verdict_of("eta_B", World(retuned=0.6)) == "contradicted"


def verdict(ours, theirs, ours_solved=None, theirs_solved=None):
    """Compare evaluations of two implementations; how many trials succeeded (default: all)."""
    table = Table(
        TrialResult(
            Trial("evaluations", "sphere", 80, 18, *solver, k), 1, n, k < solved, 0.0, 1.0, ""
        )
        for solver, counts, solved in (
            (protocol.PAPER, ours, len(ours) if ours_solved is None else ours_solved),
            (protocol.AUTHORS, theirs, len(theirs) if theirs_solved is None else theirs_solved),
        )
        for k, n in enumerate(counts)
    )
    (one,) = agreements(table)
    return one.verdict


TIGHT = list(range(1000, 1010))


def test_two_implementations_agree_if_close_or_not_significantly_apart():
    assert verdict(TIGHT, [n + 30 for n in TIGHT]) == "agree"  # 3 %
    assert verdict(TIGHT, [n + 100 for n in TIGHT]) == "differ"  # 10 %, and significant
    wide = [500 + 100 * k for k in range(10)]
    assert verdict(wide, [n + 100 for n in wide]) == "agree"  # 10 %, by chance


def test_two_implementations_differ_if_one_of_them_fails():
    assert verdict(TIGHT, TIGHT, theirs_solved=0) == "differ"
    assert verdict(TIGHT, TIGHT, ours_solved=0) == "differ"
    assert verdict(TIGHT, TIGHT, theirs_solved=2) == "differ"  # Fisher: p = 0.0007
    assert verdict(TIGHT, TIGHT, theirs_solved=7) == "agree"  # p = 0.21


def test_two_implementations_are_undecided_without_successes_or_with_few_trials():
    assert verdict(TIGHT, TIGHT, 0, 0) == "undecided"
    assert verdict([800, 1200], [950, 1250]) == "undecided"
    assert verdict(TIGHT, TIGHT[:9]) == "undecided"
