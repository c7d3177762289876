"""How we read each claim in numbers: the checks that it is made of."""

import math
from collections.abc import Iterator

import numpy as np

from fmnes.experiments import protocol, rates
from fmnes.experiments.checks import (
    Asked,
    Check,
    at_the_default,
    by_popsize,
    decide,
    each_function,
    pair_of,
)
from fmnes.experiments.names import name_of
from fmnes.experiments.statistics import Ratio, Table

_AHEAD = Asked("ahead", 1.0)


def against_fm_nes(table: Table) -> Iterator[Check]:
    """Section IV-B: FM-NES over CR-FM-NES at d = 80."""
    for functions, asked in (
        (("ellipsoid", "ktablet"), Asked("several times", 2.0)),
        (("rosenbrock",), Asked("about half", 1.5, 3.0, typically=True)),
        (("rastrigin",), Asked("no more", 0.95, typically=True)),
    ):
        yield from by_popsize(table, functions, [80], protocol.FM_NES, protocol.PAPER, asked)


_SPEEDUP = ("ellipsoid", "ktablet", "rosenbrock")  # the functions of which section IV-B says so


def learning_rates(table: Table) -> Iterator[Check]:
    """Section IV-B: rates over those of FM-NES, the speedup, and what a lower rate does to it."""
    run = sorted(
        problem.popsize
        for problem, solver in table.cells
        if solver == protocol.FM_NES and problem[:2] == (_SPEEDUP[0], 80)
    )
    for name, rates_of in (("eta_B", rates.eta_B), ("c_1", rates.c_1)):
        found = {f"λ = {popsize}": _constant(*rates_of(80, popsize)) for popsize in run}
        pair = f"{name} of CR-FM-NES / of FM-NES"
        yield decide(pair, ("d = 80",), Asked("much higher", 2.0), found)
    yield from by_popsize(table, _SPEEDUP, [80], protocol.FM_NES, protocol.PAPER, _AHEAD)
    costs = Asked("costs evaluations", 1.05)
    yield from each_function(table, protocol.ETA_B[0], costs, _SPEEDUP, [80])


def _constant(over: float, under: float) -> Ratio:
    """Of two numbers that no trial made: an interval without width."""
    return Ratio(over / under, np.asarray([over / under]))


def beyond_the_covariance(table: Table) -> Iterator[Check]:
    """Section IV-B: CR-FM-NES over FM-NES, whose covariance is full, where only that will do."""
    for ours in (protocol.PAPER, protocol.SAFE):
        asked = Asked("will fail", 100.0)
        yield from by_popsize(table, ["twoaxes"], [80], ours, protocol.FM_NES, asked)


def level_with_sep_cma(table: Table) -> Iterator[Check]:
    """Section IV-C: Sep-CMA over CR-FM-NES where a diagonal is enough."""
    functions, dims = ("ellipsoid", "ktablet"), (200, 600, 1000)
    asked = Asked("competitive", 0.8, typically=True)
    yield from by_popsize(table, functions, dims, protocol.SEP_CMA, protocol.PAPER, asked)


def ahead_on_rosenbrock(table: Table) -> Iterator[Check]:
    """Section IV-C: Sep-CMA and VD-CMA over CR-FM-NES in the curved valley."""
    for other, asked in (
        (protocol.SEP_CMA, Asked("substantially ahead", 1.5)),
        (protocol.VD_CMA, _AHEAD),
    ):
        dims = (200, 600, 1000)
        yield from by_popsize(table, ["rosenbrock"], dims, other, protocol.PAPER, asked)


def ahead_on_rastrigin(table: Table) -> Iterator[Check]:
    """Section IV-C: VD-CMA and Sep-CMA over CR-FM-NES among local minima."""
    for other in (protocol.VD_CMA, protocol.SEP_CMA):
        dims = (200, 600, 1000)
        yield from by_popsize(table, ["rastrigin"], dims, other, protocol.PAPER, _AHEAD)


def representations(table: Table) -> Iterator[Check]:
    """Section III-A: what has no diagonal or no direction over what has both."""
    for both in (protocol.VD_CMA, protocol.PAPER, protocol.SAFE):
        for functions, other, low in (
            (("cigar",), protocol.SEP_CMA, 2.0),
            (("rosenbrock",), protocol.SEP_CMA, 1.0),
            (("ellipsoid", "ktablet"), protocol.R1_NES, 2.0),
        ):
            asked = Asked("alleviated", low)
            yield from by_popsize(table, functions, [80], other, both, asked)


def vd_cma_against_r1_nes(table: Table) -> Iterator[Check]:
    """Section IV-C: R1-NES over VD-CMA."""
    shapes = [shape for shape in protocol.SHAPES if shape != "twoaxes"]  # that is for neither
    asked = Asked("clearly better", 1.2)
    yield from by_popsize(table, shapes, [80], protocol.R1_NES, protocol.VD_CMA, asked)


def eta_B(table: Table) -> Iterator[Check]:
    """Section III-C: multiples of the fitted learning rate over the fitted one."""
    not_much_better = Asked("does not save a quarter", 0.75, typically=True)
    for solver in protocol.ETA_B:
        for dim in (80, 200):
            ratios = {
                function: ratio
                for function in protocol.FUNCTIONS
                for ratio in at_the_default(table, function, dim, solver).values()
            }
            yield decide(pair_of(solver, protocol.PAPER), (f"d = {dim}",), not_much_better, ratios)


_COUNTS = Asked("5 % more without it", 1.05)


def ablation(table: Table) -> Iterator[Check]:
    """Section IV-C: VD-CMA, and CR-FM-NES without its parts, over CR-FM-NES."""
    yield from each_function(table, protocol.VD_CMA, _AHEAD)
    for without in (protocol.NO_WEIGHTS, protocol.ONE_RATE, protocol.NO_PHASES):
        yield from each_function(table, without, _COUNTS)


def rank_one(table: Table) -> Iterator[Check]:
    """What the ablation adds: without the rank-one update over CR-FM-NES."""
    return each_function(table, protocol.NO_RANK_ONE, _COUNTS)


def time(table: Table) -> Iterator[Check]:
    """Section IV-B: how the seconds of 1000 iterations grow with d."""
    flat, rises = Asked("flat", high=2.0), Asked("increases", 2.0)
    for solver, start, asked in (
        (protocol.SAFE, 10, flat),
        (protocol.AUTHORS, 10, flat),
        (protocol.FM_NES, 10, rises),
        (protocol.FM_NES, 50, Asked("as d^3, or d^2.5 to d^3.5", 2**2.5, 2**3.5)),
    ):
        pair = f"seconds at d = 100 / at d = {start}"
        ratio = table.growth(solver, start, 100)
        found = {}
        if ratio is not None:
            exponent = math.log(ratio.value, 100 / start)
            found[f"as d^{exponent:.1f}"] = ratio
        yield decide(pair, (name_of(solver),), asked, found)
