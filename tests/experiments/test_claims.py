"""Verdicts are computed from the rows: altered rows flip them."""

import dataclasses
import math

import pytest

from fmnes.experiments import protocol
from fmnes.experiments.claims import agreements, claims
from fmnes.experiments.protocol import FUNCTIONS, Trial, popsizes
from fmnes.experiments.results import Row
from fmnes.experiments.statistics import Table


@dataclasses.dataclass
class World:
    """Made-up results in which every claim of the paper holds; a test changes one factor."""

    factors: dict = dataclasses.field(
        default_factory=lambda: {
            ("fm-nes", "ellipsoid"): 6.0,
            ("fm-nes", "ktablet"): 5.0,
            ("fm-nes", "rosenbrock"): 2.0,
            ("vd-cma", "rosenbrock"): 1.4,
            ("sep-cma", "rosenbrock"): 3.0,
            ("vd-cma", "rastrigin"): 1.5,
            ("sep-cma", "rastrigin"): 2.0,
            ("sep-cma", "cigar"): 9.0,
            ("r1-nes", "ellipsoid"): math.inf,
            ("r1-nes", "ktablet"): math.inf,
            ("r1-nes", "rosenbrock"): 2.0,
            ("r1-nes", "cigar"): 1.5,
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

    def table(self):
        return Table(row for kind in (self._grid, self._cigar, self._time) for row in kind())

    def _row(self, function, dim, popsize, solver, number):
        factor = self.factors.get((solver[0], function), 1.0)
        if solver in protocol.ABLATIONS:
            factor = self.ablated
        if solver in protocol.ETA_B:
            factor = self.retuned
        success = math.isfinite(factor)
        count = int(10_000 * factor) if success else 999
        trial = Trial("evaluations", function, dim, popsize, *solver, number)
        return Row(trial, 1, count + number, success, 0.0, 1.0, "")

    def _grid(self):
        here = {80: [protocol.FM_NES, protocol.R1_NES, *protocol.ABLATIONS, *protocol.ETA_B]}
        for dim in (80, 200, 600, 1000):
            solvers = [protocol.PAPER, protocol.VD_CMA, protocol.SEP_CMA, *here.get(dim, [])]
            for function in FUNCTIONS:
                for popsize in popsizes(function, dim)[:2]:
                    for solver in solvers:
                        for number in range(2):
                            yield self._row(function, dim, popsize, solver, number)

    def _cigar(self):
        for solver in (protocol.R1_NES, protocol.VD_CMA, protocol.SEP_CMA):
            yield self._row("cigar", 80, 18, solver, 0)

    def _time(self):
        for solver, seconds in self.seconds.items():
            for dim in protocol.TIME_DIMS:
                trial = Trial("time", "sphere", dim, 20, *solver, 0)
                yield Row(trial, 1, 20_000, False, 0.0, seconds(dim), "")


def verdicts(world):
    return [claim.verdict for claim in claims(world.table())]


def index_of(words):
    (found,) = [k for k, claim in enumerate(claims(Table([]))) if words in claim.words]
    return found


def test_in_a_world_of_the_papers_making_every_claim_is_confirmed():
    assert set(verdicts(World())) == {"confirmed"}


def test_without_rows_no_claim_is_judged():
    assert {claim.verdict for claim in claims(Table([]))} == {"not run"}


@pytest.mark.parametrize(
    ("words", "altered"),
    [
        ("several times fewer", {("fm-nes", "ellipsoid"): 1.3}),
        ("several times fewer", {("fm-nes", "rosenbrock"): 1.1}),
        ("several times fewer", {("fm-nes", "rastrigin"): 0.8}),
        ("competitive with Sep-CMA", {("sep-cma", "ktablet"): 0.5}),
        ("On Rosenbrock", {("sep-cma", "rosenbrock"): 1.2}),
        ("On Rosenbrock", {("vd-cma", "rosenbrock"): 0.9}),
        ("ahead on Rastrigin", {("vd-cma", "rastrigin"): 0.9}),
        ("deteriorates", {("sep-cma", "cigar"): 1.0}),
        ("deteriorates", {("r1-nes", "ellipsoid"): 1.0}),
        ("than R1-NES", {("r1-nes", "cigar"): 1.0}),
    ],
)
def test_altered_rows_flip_the_verdict(words, altered):
    world = World()
    world.factors |= altered
    assert verdicts(world)[index_of(words)] == "confirmed in part"


def test_altered_everywhere_a_claim_is_contradicted():
    world = World()
    world.factors |= {("vd-cma", "rastrigin"): 0.9, ("sep-cma", "rastrigin"): 0.9}
    assert verdicts(world)[index_of("ahead on Rastrigin")] == "contradicted"


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
    assert verdicts(world)[index_of("computation time")] == "confirmed in part"


def test_parts_that_do_nothing_contradict_the_belief():
    assert verdicts(World(ablated=1.0))[index_of("inherits")] == "contradicted"


def test_a_better_learning_rate_contradicts_the_fit():
    assert verdicts(World(retuned=0.6))[index_of("fitted")] == "contradicted"


def pair(ours, theirs):
    return Table(
        Row(Trial("evaluations", "sphere", 80, 18, *solver, k), 1, n, True, 0.0, 1.0, "")
        for solver, counts in ((protocol.PAPER, ours), (protocol.AUTHORS, theirs))
        for k, n in enumerate(counts)
    )


def test_two_texts_agree_if_close_or_not_significantly_apart():
    tight = list(range(1000, 1010))
    (one,) = agreements(pair(tight, [n + 30 for n in tight]))
    assert one.p < 0.01
    assert one.holds  # 3 %
    (one,) = agreements(pair(tight, [n + 100 for n in tight]))
    assert not one.holds  # 10 %, and significant
    (one,) = agreements(pair([800, 1200], [950, 1250]))
    assert one.holds  # 9 %, two trials
