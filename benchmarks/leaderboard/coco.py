"""COCO's suites: bbob-largescale, bbob-noisy, bbob-mixint and bbob-constrained.

N. Hansen, A. Auger, R. Ros, O. Mersmann, T. Tusar, D. Brockhoff: "COCO: a platform for comparing
continuous optimizers in a black-box setting", Optimization Methods and Software 36 (2021).

The seed of a trial is the number of the instance. COCO's observer notes when targets are reached:
under noise it knows the values without noise. The rows of benchmarks/results/coco (d = 20 to 160)
and of benchmarks/constrained.py are read where they are.
"""

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import coco_summary
import constrained
import mixint
import row_files
from fmnes.integrations._coco_problems import Task, run
from leaderboard.opponents import NOISY, OPPONENTS
from leaderboard.trials import Functions, Problem, Solver, Start, Suite, Trial, Vector

TARGETS = tuple(float(target) for target in coco_summary.TARGETS)
SIGMA0 = 2.0  # a fifth of the region of interest, [-5, 5]


class Observed:
    """A problem under COCO's observer, which writes to a folder that is read at the end."""

    def __init__(self, suite: str, function: int, dim: int, instance: int) -> None:
        import cocoex

        cocoex.log_level("warning")
        self._folder = tempfile.TemporaryDirectory()
        options = f"dimensions: {dim} function_indices: {function}"
        self._suite = cocoex.Suite(suite, f"instances: {instance}", options)
        where = f'outer_folder: "{self._folder.name}" result_folder: run'
        name = "bbob" if suite == "bbob-largescale" else suite
        self._observer = cocoex.Observer(name, f"{where} number_target_triggers: 20")
        self.problem = self._suite[0]
        self.problem.observe_with(self._observer)

    def start(self, number: int, seed: int) -> Vector:
        """Return COCO's proposal for a start, which it draws from NumPy's global generator."""
        np.random.seed(seed)  # noqa: NPY002
        return np.asarray(self.problem.initial_solution_proposal(number))

    def hits(self) -> list[int]:
        """Return the evaluations at which targets were reached; ends the observation."""
        dim = self.problem.dimension
        self.problem.free()  # COCO writes the last of its files now
        (log,) = Path(self._folder.name).glob("run/data_*/*.dat")
        text = log.read_text().split("\n", 1)[1]
        found = coco_summary.hits(text, dim) * dim
        self._folder.cleanup()
        return [round(hit) for hit in found if np.isfinite(hit)]


class BBOB(Functions):
    """A suite whose problems are functions without bounds."""

    modules = ("cocoex",)
    targets = TARGETS
    solvers = OPPONENTS
    functions: range

    def problems(self, dim: int) -> list[str]:
        """Return COCO's names of the functions."""
        return [f"f{number}" for number in self.functions]

    def budget(self, problem: str, dim: int) -> int:
        """Return 1000 d; more than 160 variables get less."""
        return (1000 if dim <= 160 else 300) * dim

    def problem(self, name: str, dim: int, seed: int) -> Problem:
        """Return an instance."""
        index = int(name[1:]) - self.functions[0] + 1
        observed = Observed(self.name, index, dim, seed)
        trial = Trial(self.name, name, dim, "", seed, 0)
        return Problem(
            observed.problem,
            lambda number: observed.start(number, trial.seed_of(number)),
            SIGMA0,
            np.full(dim, -5.0),
            np.full(dim, 5.0),
            reached=lambda: bool(observed.problem.final_target_hit),
            hits=observed.hits,
        )


class LargeScale(BBOB):
    """24 functions of many variables."""

    name = "bbob-largescale"
    about = "COCO's 24 functions of many variables"
    dims = (20, 40, 80, 160, 320, 640)
    functions = range(1, 25)

    def stored(self) -> Iterator[dict[str, Any]]:
        """Yield the runs of `fmnes coco` that docs/large-scale.md shows."""
        for trial, kept in _archives().items():
            record = kept.record
            versions = {name: record[name] for name in ("fmnes", "numpy", "cma") if name in record}
            rest = {"seconds": record["seconds"], "versions": versions}
            yield trial._asdict() | _reached(record, kept.hits * kept.dim) | rest

    def run_stored(self, trial: Trial) -> dict[str, Any]:
        """Run a trial as `fmnes coco` does."""
        record = _archives()[trial].record
        task = Task(*(record[name] for name in Task._fields))
        with tempfile.TemporaryDirectory() as folder:
            again = run(Path(folder), task)
            (log,) = Path(folder, task.folder).glob("data_*/*.dat")
            text = log.read_text().split("\n", 1)[1]
        return _reached(again, coco_summary.hits(text, trial.dim) * trial.dim)


@cache
def _archives() -> dict[Trial, coco_summary.Run]:
    runs = {}
    for one in coco_summary.read():
        name = _NAMES.get(one.solver, one.solver)
        budget = int(one.record["budget"] * one.dim)
        key = Trial("bbob-largescale", f"f{one.function}", one.dim, name, one.instance, budget)
        runs[key] = one
    return runs


def _reached(record: dict[str, Any], hits: Vector) -> dict[str, Any]:
    """Return what a run of `fmnes coco` reached; it does not keep the best value."""
    reached = [round(hit) for hit in hits if np.isfinite(hit)]
    return {"evaluations": record["evaluations"], "best": None, "hits": reached}


_NAMES = {"pycma-vd": "pycma VD", "cr-fm-nes-paper": "cr-fm-nes:paper"}


class Noisy(BBOB):
    """30 functions under noise of three kinds."""

    name = "bbob-noisy"
    about = "COCO's 30 functions under Gaussian, uniform and Cauchy noise"
    dims = (10, 20, 40)
    functions = range(101, 131)
    solvers: ClassVar = OPPONENTS | NOISY

    def budget(self, problem: str, dim: int) -> int:
        """Return 300 d."""
        return 300 * dim


class MixInt(Functions):
    """The problems and the solvers of benchmarks/mixint.py."""

    name = "bbob-mixint"
    about = "COCO's mixed-integer functions: four fifths of the variables are integers"
    dims = (10, 20, 40, 80, 160)
    modules = ("cocoex",)
    targets = TARGETS

    def __init__(self) -> None:
        packages = {"cmaes CMAwM": "cmaes", "cmaes CatCMAwM": "cmaes", "pycma": "cma"}
        self.solvers = {
            name: Solver(
                partial(self._solve, name),
                packages.get(name, "fmnes"),
                packages.get(name, "fmnes"),
            )
            for name in mixint.SOLVERS
        }

    @staticmethod
    def _solve(name: str, start: Start) -> None:
        low, high = start.problem.low, start.problem.high
        seed, factor = start.seed % 2**20, 2**start.number
        task = mixint.Task(start.fun, low, high, start.problem.integers, seed, factor)
        mixint.SOLVERS[name](task)

    def problems(self, dim: int) -> list[str]:
        """Return a dozen functions, some of each of COCO's five groups."""
        return [f"f{number}" for number in mixint.FUNCTIONS]

    def budget(self, problem: str, dim: int) -> int:
        """Return 300 d."""
        return 300 * dim

    def problem(self, name: str, dim: int, seed: int) -> Problem:
        """Return an instance."""
        import cocoex

        options = f"dimensions: {dim} function_indices: {name[1:]}"
        suite = cocoex.Suite("bbob-mixint", f"instances: {seed}", options)
        problem = suite[0]
        least = mixint.optimum(problem)

        def fun(x: Vector, _suite: Any = suite) -> float:  # the suite owns the problem
            return float(problem(x)) - least

        low, high = problem.lower_bounds, problem.upper_bounds
        middle = (low + high) / 2
        integers = problem.number_of_integer_variables
        return Problem(
            fun, lambda number: middle, 1.0, low, high, True, targets=TARGETS, integers=integers
        )


_METHODS = {"fmnes": "cma-es", "fmnes auto": "auto"}  # in benchmarks/constrained.py, and here


class Constrained(Suite):
    """The problems and the solvers of benchmarks/constrained.py."""

    name = "bbob-constrained"
    about = "COCO's 54 functions with linear and nonlinear constraints, instance 1"
    dims = (2, 5, 10, 20, 40)
    modules = ("cocoex",)
    targets = tuple(float(target) for target in constrained.TARGETS)

    def __init__(self) -> None:
        packages = {"cma-es": "fmnes", "auto": "fmnes", "pycma": "cma"}
        self.solvers = {
            (name := _METHODS.get(old, old)): Solver(
                solve, packages.get(name, "scipy"), packages.get(name, "scipy")
            )
            for old, solve in constrained.SOLVERS.items()
        }

    def problems(self, dim: int) -> list[str]:
        """Return the functions that benchmarks/constrained.py runs."""
        return [f"f{number}" for number in range(1, 55) if constrained.is_sampled(number, dim)]

    def budget(self, problem: str, dim: int) -> int:
        """Return the only budget here: that of benchmarks/constrained.py."""
        return constrained.BUDGET * dim

    def run(self, trial: Trial) -> dict[str, Any]:
        """Run a trial as benchmarks/constrained.py does."""
        import cocoex

        budget = self.budget(trial.problem, trial.dim)
        if (trial.seed, trial.budget) != (1, budget):
            raise ValueError(
                f"trials, budget: expected 1 and {budget} for bbob-constrained, "
                f"got {trial.seed} and {trial.budget}"
            )
        options = f"dimensions: {trial.dim} function_indices: {trial.problem[1:]}"
        suite = cocoex.Suite("bbob-constrained", "", f"{options} instance_indices:1")
        problem = constrained.Problem(suite[0], mixint.optimum(suite[0]))
        solved = constrained.solved(problem, self.solvers[trial.solver].run)
        return {"evaluations": solved.nfev, "best": None, "hits": solved.hits}

    def stored(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of benchmarks/constrained.py."""
        for row in row_files.read(constrained.RESULTS):
            budget = self.budget("", row["dim"])
            spent = row["hits"][-1] if len(row["hits"]) == len(self.targets) else budget
            name = f"f{row['function']}"
            solver = _METHODS.get(row["solver"], row["solver"])
            trial = Trial(self.name, name, row["dim"], solver, 1, budget)
            yield (
                trial._asdict()
                | {"evaluations": spent, "best": None, "hits": row["hits"]}
                | {"seconds": None, "versions": {}}
            )
