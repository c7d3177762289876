"""What the paper claims: its words, and the checks by which we read them."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from fmnes.benchmarking.statistics import Ratio
from fmnes.experiments import protocol, rates
from fmnes.experiments.cases import Table
from fmnes.experiments.protocol import name_of
from fmnes.experiments.verdicts import (
    Check,
    Claim,
    Expectation,
    each_case,
    over_paper,
    pair_of,
)

Checks = Callable[[Table], Iterator[Check]]
_CLAIMS: list[Callable[[Table], Claim]] = []
_LARGE = (200, 600, 1000)
_AHEAD = Expectation("ahead", 1.0)
_COSTS = Expectation("costs 5 %", 1.05)


def claims(table: Table) -> list[Claim]:
    """Return all claims with their checks, in the order of the paper."""
    return [claim(table) for claim in _CLAIMS]


def _claim(section: str, quote: str) -> Callable[[Checks], Checks]:
    """Add a claim: the decorated function yields its checks, and its docstring is our reading."""

    def add(checks: Checks) -> Checks:
        name, reading = checks.__name__, " ".join((checks.__doc__ or "").split())
        _CLAIMS.append(lambda table: Claim(name, section, quote, reading, tuple(checks(table))))
        return checks

    return add


@_claim(
    "III-A",
    "the performance of sep-CMA-ES deteriorates on problems with variable dependencies, and the "
    "performance of R1-NES deteriorates on ill-conditioned problems. We can alleviate these issues "
    "by employing the representation ...",
)
def representations(table: Table) -> Iterator[Check]:
    """With both D and v, VD-CMA and CR-FM-NES need fewer evaluations than Sep-CMA and R1-NES."""
    for both in (protocol.VD_CMA, protocol.PAPER, protocol.SAFE):
        for functions, other, low in (
            (("cigar",), protocol.SEP_CMA, 2.0),
            (("rosenbrock",), protocol.SEP_CMA, 1.0),
            (("ellipsoid", "ktablet"), protocol.R1_NES, 2.0),
        ):
            yield from each_case(
                table, other, both, Expectation("alleviated", low), functions, [80]
            )


@_claim(
    "III-C",
    "We determined this equation [of eta_B] by fitting a parametric model ...",
)
def eta_B(table: Table) -> Iterator[Check]:
    """No multiple of the fitted eta_B saves a quarter of the evaluations over the functions."""
    bounds = Expectation("does not save a quarter", 0.75, typically=True)
    for solver in protocol.ETA_B:
        for dim in (80, 200):
            ratios = over_paper(table, dim, solver)
            yield Check(pair_of(solver, protocol.PAPER), (f"d = {dim}",), bounds, ratios)


@_claim(
    "IV-B",
    "For the Ellipsoid, the k-Tablet, and the Rosenbrock functions, CR-FM-NES has achieved a "
    "significant speedup compared to FM-NES. ... the result in the Rastrigin function implies that "
    "CR-FM-NES does not lose its efficiency even in multimodal problems.",
)
def against_fm_nes(table: Table) -> Iterator[Check]:
    """FM-NES needs more evaluations than CR-FM-NES at d = 80, and no fewer on Rastrigin."""
    for functions, bounds in (
        (("ellipsoid", "ktablet"), Expectation("several times", 2.0)),
        (("rosenbrock",), Expectation("about twice", 1.5, 3.0, typically=True)),
        (("rastrigin",), Expectation("no fewer", 0.95, typically=True)),
    ):
        yield from each_case(table, protocol.FM_NES, protocol.PAPER, bounds, functions, [80])


@_claim(
    "IV-B",
    "We argue that this is because the number of parameters of the covariance matrix in CR-FM-NES "
    "is 2d + 1 ..., which enables us to set the learning rates much higher than those in FM-NES "
    "...",
)
def learning_rates(table: Table) -> Iterator[Check]:
    """CR-FM-NES has higher learning rates than FM-NES, and needs more evaluations with lower ones.

    FM-NES's eta_B is that of its movement phase, which is the largest.
    """
    functions = ("ellipsoid", "ktablet", "rosenbrock")  # those with a speedup in section IV-B
    popsizes = table.ratios(functions[0], 80, protocol.FM_NES, protocol.PAPER)
    for name, rates_of in (("eta_B", rates.eta_B), ("c_1", rates.c_1)):
        found = {f"λ = {popsize}": _constant(*rates_of(80, popsize)) for popsize in popsizes}
        pair = f"{name} of CR-FM-NES / of FM-NES"
        yield Check(pair, ("d = 80",), Expectation("much higher", 2.0), found)
    yield from each_case(table, protocol.FM_NES, protocol.PAPER, _AHEAD, functions, [80])
    yield from each_case(table, protocol.ETA_B[0], protocol.PAPER, _COSTS, functions, [80])


def _constant(over: float, under: float) -> Ratio:
    """Return the ratio of two numbers without trials: an interval without width."""
    return Ratio(over / under, np.asarray([over / under]))


@_claim(
    "IV-B",
    "CR-FM-NES will fail to perform optimization in problems whose inverse Hessian of the "
    "objective function cannot be approximated by the covariance matrix ...",
)
def beyond_the_covariance(table: Table) -> Iterator[Check]:
    """CR-FM-NES fails or needs far more evaluations than FM-NES with its full covariance matrix.

    The function is a rotated ellipsoid with 40 long axes.
    """
    for ours in (protocol.PAPER, protocol.SAFE):
        bounds = Expectation("will fail", 100.0)
        yield from each_case(table, ours, protocol.FM_NES, bounds, ["twoaxes"], [80])


@_claim(
    "IV-B",
    "We can confirm that the computational time of FM-NES increases rapidly as the dimension "
    "number increases, while that of CR-FM-NES is fairly small.",
)
def computation_time(table: Table) -> Iterator[Check]:
    """The time of an iteration of CR-FM-NES stays flat; that of FM-NES grows as d^3 (section I)."""
    flat, rises = Expectation("flat", high=2.0), Expectation("increases", 2.0)
    for solver, start, bounds in (
        (protocol.SAFE, 10, flat),
        (protocol.AUTHORS, 10, flat),
        (protocol.FM_NES, 10, rises),
        (protocol.FM_NES, 50, Expectation("as d^3, or d^2.5 to d^3.5", 2**2.5, 2**3.5)),
    ):
        ratio = table.growth(solver, start, 100)
        found = {}
        if ratio is not None:
            found[f"as d^{math.log(ratio.value, 100 / start):.1f}"] = ratio
        pair = f"seconds at d = 100 / at d = {start}"
        yield Check(pair, (name_of(solver),), bounds, found)


@_claim(
    "IV-C",
    "For the Ellipsoid and the k-Tablet functions where the inverse Hessian can be approximated by "
    "even a diagonal matrix, the performance of CR-FM-NES is competitive with that of Sep-CMA.",
)
def level_with_sep_cma(table: Table) -> Iterator[Check]:
    """On ellipsoid and k-tablet, Sep-CMA needs at least about as many evaluations as CR-FM-NES."""
    functions, bounds = ("ellipsoid", "ktablet"), Expectation("competitive", 0.8, typically=True)
    return each_case(table, protocol.SEP_CMA, protocol.PAPER, bounds, functions, _LARGE)


@_claim(
    "IV-C",
    "for the Rosenbrock function ... the efficiency of CR-FM-NES increases substantially compared "
    "to Sep-CMA, and it also shows better performance than VD-CMA.",
)
def ahead_on_rosenbrock(table: Table) -> Iterator[Check]:
    """On Rosenbrock, VD-CMA needs more evaluations than CR-FM-NES, Sep-CMA substantially more."""
    for other, bounds in (
        (protocol.SEP_CMA, Expectation("substantially ahead", 1.5)),
        (protocol.VD_CMA, _AHEAD),
    ):
        yield from each_case(table, other, protocol.PAPER, bounds, ["rosenbrock"], _LARGE)


@_claim(
    "IV-C",
    "From the results of the Rastrigin function, we might argue that CR-FM-NES is efficient even "
    "in high-dimensional multimodal problems.",
)
def ahead_on_rastrigin(table: Table) -> Iterator[Check]:
    """On Rastrigin, VD-CMA and Sep-CMA need more evaluations than CR-FM-NES."""
    for other in (protocol.VD_CMA, protocol.SEP_CMA):
        yield from each_case(table, other, protocol.PAPER, _AHEAD, ["rastrigin"], _LARGE)


@_claim("IV-C", "VD-CMA shows clearly better performance than R1-NES.")
def vd_cma_against_r1_nes(table: Table) -> Iterator[Check]:
    """R1-NES needs more evaluations than VD-CMA on each of four functions."""
    shapes = [shape for shape in protocol.SHAPES if shape != "twoaxes"]  # neither can follow that
    bounds = Expectation("clearly better", 1.2)
    return each_case(table, protocol.R1_NES, protocol.VD_CMA, bounds, shapes, [80])


@_claim(
    "IV-C",
    "We believe that the performance difference between CR-FM-NES and VD-CMA is originated from "
    "the one in FM-NES and CMA-ES; CR-FM-NES inherits the efficiency of FM-NES ...",
)
def inherited_parts(table: Table) -> Iterator[Check]:
    """CR-FM-NES beats VD-CMA, and needs more evaluations without the parts of FM-NES.

    These parts are the distance weights and the learning rates of the phases.
    """
    for other, bounds in (
        (protocol.VD_CMA, _AHEAD),
        (protocol.NO_WEIGHTS, _COSTS),
        (protocol.ONE_RATE, _COSTS),
        (protocol.NO_PHASES, _COSTS),
    ):
        yield from each_case(table, other, protocol.PAPER, bounds, all_popsizes=False)


@_claim("ours", "")
def rank_one_update(table: Table) -> Iterator[Check]:
    """Without the rank-one update, CR-FM-NES needs more evaluations."""
    return each_case(table, protocol.NO_RANK_ONE, protocol.PAPER, _COSTS)
