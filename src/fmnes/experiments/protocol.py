"""The experiments: section IV of the paper, and what the paper asserts without showing it.

`EXPERIMENTS` lists all trials. `kept` selects those whose results the repository keeps, and `quick`
those that take three minutes.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fmnes.algorithms._weights import even_default_popsize
from fmnes.problems import PROBLEMS, Problem

TARGET = 1e-10
FUNCTIONS = ("sphere", "ktablet", "ellipsoid", "rosenbrock", "rastrigin")  # Table I
RASTRIGIN = {  # Table II: lambda / d
    80: (20, 22, 24, 26, 28),
    200: (12, 14, 16, 18, 20),
    600: (6, 7, 8, 9, 10),
    1000: (4, 4.5, 5, 5.5, 6),
}
# Two with a diagonal Hessian, a curved valley, and two that are rotated: one long axis, or d/2.
SHAPES = ("ellipsoid", "ktablet", "rosenbrock", "cigar", "twoaxes")
TIME_DIMS = tuple(range(10, 101, 10))
TIME_POPSIZE, TIME_ITERATIONS = 20, 1000
SCALES = (0.25, 0.5, 2.0, 4.0)  # of the fitted eta_B

Solver = tuple[str, str]  # a method and its variant, as `solvers.SOLVERS` names them
SAFE, PAPER, AUTHORS = ("cr-fm-nes", "safe"), ("cr-fm-nes", "paper"), ("cr-fm-nes", "authors")
FM_NES, R1_NES = ("fm-nes", "ours"), ("r1-nes", "ours")
VD_CMA, VD_PYCMA, VD_PYCMA_RATES = (
    ("vd-cma", "ours"),
    ("vd-cma", "pycma"),
    ("vd-cma", "rates of pycma"),
)
SEP_CMA, SEP_CMAES, SEP_PYCMA = ("sep-cma", "ours"), ("sep-cma", "cmaes"), ("sep-cma", "pycma")
SEP_CMAES_RATES, SEP_PYCMA_RATES = ("sep-cma", "rates of cmaes"), ("sep-cma", "rates of pycma")
NO_WEIGHTS, ONE_RATE = ("cr-fm-nes", "no distance weights"), ("cr-fm-nes", "one rate")
NO_PHASES, NO_RANK_ONE = ("cr-fm-nes", "no phases"), ("cr-fm-nes", "no rank-one")
NONE_OF_THESE = ("cr-fm-nes", "none of these")
ABLATIONS = NO_WEIGHTS, ONE_RATE, NO_PHASES, NO_RANK_ONE, NONE_OF_THESE
REPRESENTATIONS = R1_NES, SEP_CMA, VD_CMA, PAPER, SAFE, FM_NES
ETA_B = tuple(("cr-fm-nes", f"eta_B x {scale:g}") for scale in SCALES)
OLDER_H = ("cr-fm-nes", "older H")
_NAMES = {  # for readers
    SAFE: "CR-FM-NES (safe)",
    PAPER: "CR-FM-NES (paper)",
    AUTHORS: "the authors' package",
    FM_NES: "FM-NES",
    R1_NES: "R1-NES",
    VD_CMA: "VD-CMA",
    SEP_CMA: "Sep-CMA",
    VD_PYCMA: "pycma's VD-CMA",
    VD_PYCMA_RATES: "VD-CMA with pycma's rates",
    SEP_CMAES: "cmaes' SepCMA",
    SEP_PYCMA: "pycma's diagonal CMA-ES",
    SEP_CMAES_RATES: "Sep-CMA with cmaes' rates",
    SEP_PYCMA_RATES: "Sep-CMA with pycma's rates",
    OLDER_H: "CR-FM-NES with the older H",
    NO_WEIGHTS: "without distance weights",
    ONE_RATE: "with one learning rate of sigma",
    NO_PHASES: "with neither phases nor distance weights",
    NO_RANK_ONE: "without the rank-one update",
    NONE_OF_THESE: "with none of the three",
}


def name_of(solver: Solver) -> str:
    """Return the name of a solver for readers."""
    method, variant = solver
    return _NAMES.get(solver, f"CR-FM-NES, {variant}" if method == "cr-fm-nes" else method)


class Trial(NamedTuple):
    """One run, described by everything that its result depends on."""

    experiment: str  # "evaluations" to the target, or "time" of `TIME_ITERATIONS` generations
    function: str
    dim: int
    popsize: int
    method: str
    variant: str
    trial: int  # repetitions are numbered 0, 1, ...

    @property
    def solver(self) -> Solver:
        """Method and variant."""
        return self.method, self.variant

    @property
    def seed(self) -> int:
        """A random seed from 1 to 2^31 that depends on the fields of the trial only."""
        digest = hashlib.sha256("|".join(map(str, self)).encode()).digest()
        return int.from_bytes(digest[:4], "big") // 2 + 1

    @property
    def problem(self) -> Problem:
        """The function with its initial distribution."""
        return PROBLEMS[self.function](self.dim)

    @property
    def ftarget(self) -> float:
        """The value at which a run succeeds."""
        return TARGET if self.experiment == "evaluations" else -math.inf

    @property
    def maxfevals(self) -> int:
        """The budget of evaluations."""
        if self.experiment == "time":
            return TIME_ITERATIONS * self.popsize
        return 5 * self.dim * 10**4


def popsizes(function: str, dim: int) -> tuple[int, ...]:
    """Return the five population sizes: one to five times the default, or Table II."""
    if function == "rastrigin":
        return tuple(round(factor * dim) for factor in RASTRIGIN[dim])
    return tuple(times * even_default_popsize(dim) for times in range(1, 6))


def _grid(
    dims: Iterable[int],
    solvers: Iterable[Solver],
    functions: Iterable[str] = FUNCTIONS,
    *,
    sizes: Iterable[int] = range(5),
    trials: int | None = None,
) -> Iterator[Trial]:
    """Yield each function at each dimension and population size, for each solver."""
    for dim in dims:
        for function in functions:
            count = trials or (30 if function == "rastrigin" else 10)
            for size in sizes:
                for solver in solvers:
                    popsize = popsizes(function, dim)[size]
                    for number in range(count):
                        yield Trial("evaluations", function, dim, popsize, *solver, number)


class Experiment(NamedTuple):
    """A sentence about an experiment, and its trials."""

    about: str
    trials: tuple[Trial, ...]


EXPERIMENTS = {
    "fm-nes": Experiment(
        "Section IV-B: CR-FM-NES and FM-NES at d = 80.",
        (*_grid([80], [SAFE, PAPER, FM_NES]),),
    ),
    "high-dimensional": Experiment(
        "Section IV-C: CR-FM-NES, VD-CMA and Sep-CMA at d = 200, 600 and 1000.",
        (*_grid([200, 600, 1000], [SAFE, PAPER, VD_CMA, SEP_CMA]),),
    ),
    "time": Experiment(
        "Section IV-B: seconds of 1000 iterations at d = 10, 20, ..., 100.",
        tuple(
            Trial("time", "sphere", dim, TIME_POPSIZE, *solver, number)
            for dim in TIME_DIMS
            for solver in (SAFE, AUTHORS, FM_NES)
            for number in range(30)
        ),
    ),
    "witnesses": Experiment(
        "The authors' package, pycma and cmaes, beside our implementations of the same methods.",
        (
            *_grid([80, 200], [AUTHORS], trials=10),
            *_grid([80, 200], [VD_PYCMA, SEP_CMAES, VD_CMA, SEP_CMA], sizes=(0, 2), trials=10),
        ),
    ),
    "constants": Experiment(
        "Our implementations with the constants of a package, beside that package.",
        (  # with cmaes' constants runs on Rastrigin diverge: c_mu exceeds 1
            *_grid(
                [80, 200], [VD_PYCMA_RATES, SEP_PYCMA_RATES, SEP_PYCMA], sizes=(0, 2), trials=10
            ),
            *_grid([80, 200], [SEP_CMAES_RATES], FUNCTIONS[:4], sizes=(0, 2), trials=10),
        ),
    ),
    "representations": Experiment(
        "Section III-A: what each covariance can follow; and IV-B: what CR-FM-NES's cannot.",
        tuple(
            Trial("evaluations", function, 80, 18, *solver, number)
            for function in SHAPES
            for solver in REPRESENTATIONS
            for number in range(5)  # those that fail take the whole budget
        ),
    ),
    "ablation": Experiment(
        'Section IV-C, "we believe": the paper\'s method without some of its parts.',
        (*_grid([80, 200], [PAPER, *ABLATIONS], sizes=[0], trials=10),),
    ),
    "eta-b": Experiment(
        "Section III-C: the fitted learning rate of v and D, and multiples of it.",
        (*_grid([80, 200], [PAPER, *ETA_B], sizes=[0], trials=10),),
    ),
    "older-h": Experiment(
        "The appendix: the natural gradient with the H that it replaces.",
        (*_grid([80], [PAPER, OLDER_H], sizes=[0], trials=10),),
    ),
}


def trials_of(names: Iterable[str], size: Callable[[Trial], bool] | None = None) -> list[Trial]:
    """Return the trials of some experiments, each once; only those that ``size`` selects."""
    every = dict.fromkeys(trial for name in names for trial in EXPERIMENTS[name].trials)
    return list(filter(size, every)) if size else list(every)


def beside(trials: Iterable[Trial], solver: Solver) -> list[Trial]:
    """Return the same trials for another solver, each once."""
    method, variant = solver
    return list(dict.fromkeys(t._replace(method=method, variant=variant) for t in trials))


def kept(trial: Trial) -> bool:
    """The trials that the repository keeps: all up to d = 200, some beyond."""
    if trial.dim <= 200:
        return True
    size = popsizes(trial.function, trial.dim).index(trial.popsize)
    if trial.dim == 600:
        return trial.trial < 5 if trial.function == "rastrigin" else size in (0, 2, 4)
    if trial.function == "rastrigin":
        return size in (0, 4) and trial.trial < 3
    few = 1 if trial.function == "rosenbrock" and trial.method != "cr-fm-nes" else 3
    return size in (0, 2) and trial.trial < few


def quick(trial: Trial) -> bool:
    """Two trials at d = 80 and the smallest population, and the time of a few dimensions."""
    if trial.experiment == "time":
        return trial.trial < 2 and trial.dim in (10, 50, 100)
    return (
        trial.dim == 80
        and trial.trial < 2
        and trial.popsize == popsizes(trial.function, 80)[0]
        and trial.solver in (SAFE, PAPER, FM_NES)
    )


SIZES: dict[str, Callable[[Trial], bool] | None] = {"quick": quick, "kept": kept, "full": None}

_SECONDS = {  # of a trial on the ellipsoid at d = 80, fitted to the rows that the repository keeps
    R1_NES: 15.0,
    VD_PYCMA: 3.0,
    SEP_CMAES: 2.0,
    FM_NES: 2.0,
    SEP_PYCMA: 1.5,
    AUTHORS: 1.5,
    OLDER_H: 0.3,
}
_FACTORS = {"sphere": 0.3, "rastrigin": 5.0, "cigar": 6.0, "rosenbrock": 10.0, "twoaxes": 26.0}


def expected_seconds(trial: Trial) -> float:
    """Return a rough estimate, used to start long trials first and to show the time left."""
    seconds = _SECONDS.get(trial.solver, 0.07 if trial.method == "cr-fm-nes" else 0.5)
    factor = _FACTORS.get(trial.function, 1.0)
    return seconds * factor * math.pow(trial.dim / 80, 1.6)
