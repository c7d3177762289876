"""One problem of a suite, solved by one solver under COCO's observer.

It is the unit of work: it depends on nothing but its own name, it is written to a folder of its
own, and that folder gets its final name when all is in it. So a killed run has whole problems and
leftovers, and what is whole is never run again.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fmnes
from fmnes.experiments.ask_tell import takes_candidates
from fmnes.integrations._coco_solvers import factory_of, label_of

SIGMA0 = 2.0  # a fifth of the domain [-5, 5]; COCO proposes where to start
_TRIGGERS = 20  # targets a decade, as many as cocopp's reduce_size keeps; COCO's default is 100
_PART = ".part-"
RECORD = "record.json"


class Task(NamedTuple):
    """A problem and who solves it."""

    solver: str
    suite: str
    function: int
    dim: int
    instance: int
    budget: float  # evaluations per variable

    @property
    def folder(self) -> str:
        """Where its data are, within the solver's folder."""
        return f"f{self.function:03d}_d{self.dim:04d}_i{self.instance:03d}"

    @property
    def maxfevals(self) -> int:
        """The most evaluations, all restarts together."""
        return int(self.budget * self.dim)

    def seeds(self, restart: int) -> tuple[int, int]:
        """Seeds of the start point and of the solver; every solver gets the same ones."""
        key = [*self.suite.encode(), self.function, self.dim, self.instance, restart]
        start, search = np.random.SeedSequence(key).generate_state(2)
        return int(start), int(search >> 1) + 1  # pycma takes a seed of 0 for none

    def __str__(self) -> str:
        return (
            f"{self.solver} on {self.suite} f{self.function}, instance {self.instance}, "
            f"{self.dim} variables"
        )


def is_done(task: Task, folder: Path) -> bool:
    """Whether its data are in the solver's folder; they must be those of the same task."""
    try:
        record = json.loads((folder / task.folder / RECORD).read_text())
    except FileNotFoundError:
        return False
    for name in ("solver", "suite", "budget"):
        wanted, found = getattr(task, name), record[name]
        if wanted != found:
            raise ValueError(
                f"{name}: expected {found!r}, with which {folder / task.folder} was run, "
                f"got {wanted!r}"
            )
    return True


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed run had begun in the solver's folder."""
    for part in folder.glob(f"{_PART}*"):
        shutil.rmtree(part)


def run(task: Task, folder: Path) -> None:
    """Solve the problem and leave its data in the solver's folder."""
    import cocoex

    cocoex.log_level("warning")
    part = Path(tempfile.mkdtemp(prefix=_PART, dir=folder))
    suite = cocoex.Suite(
        task.suite,
        f"instances: {task.instance}",
        f"dimensions: {task.dim} function_indices: {task.function}",
    )
    observer = cocoex.Observer(task.suite, observer_options(task, part / task.folder))
    problem = suite.get_problem_by_function_dimension_instance(
        task.function, task.dim, task.instance
    )
    problem.observe_with(observer)
    begun = time.perf_counter()
    runs = solve(problem, task, observer)
    record = task._asdict() | {
        "evaluations": problem.evaluations,
        "runs": runs,
        "hit": bool(problem.final_target_hit),
        "seconds": round(time.perf_counter() - begun, 3),
    }
    for module in ("fmnes", "cocoex", "numpy", "cma"):
        if module in sys.modules:
            record[module] = sys.modules[module].__version__
    problem.free()  # COCO writes the last of its files now
    (part / task.folder / RECORD).write_text(json.dumps(record) + "\n")
    (part / task.folder).rename(folder / task.folder)
    part.rmdir()


def observer_options(task: Task, folder: Path) -> str:
    """How COCO logs the task: to which folder, under which name, how much."""
    info = f"fmnes {fmnes.__version__}, sigma0 = {SIGMA0}, at most {task.budget:g} d evaluations"
    return (
        f'outer_folder: "{folder.parent}" result_folder: {folder.name} '
        f'algorithm_name: {label_of(task.solver)} algorithm_info: "{info}" '
        f"number_target_triggers: {_TRIGGERS}"
    )


def solve(problem: Any, task: Task, observer: Any) -> int:
    """Run after run until the target is hit or the budget is spent; their number."""
    start = factory_of(task.solver)
    restart = 0
    while True:
        start_seed, seed = task.seeds(restart)
        np.random.seed(start_seed)  # noqa: NPY002 - COCO's proposal is drawn from it
        x0 = problem.initial_solution_proposal(restart)
        search = start(x0=x0, sigma0=SIGMA0, seed=seed, restart=restart)
        if _run_once(problem, search, task):
            return restart + 1
        restart += 1
        observer.signal_restart(problem)


def _run_once(problem: Any, search: Any, task: Task) -> bool:
    """One run; whether it was the last: the target is hit, or no generation fits any more."""
    both = takes_candidates(search)
    before = problem.evaluations
    while not search.stop():
        x = search.ask()
        if problem.evaluations + len(x) > task.maxfevals:
            if problem.evaluations == 0:  # COCO writes no files then
                raise ValueError(
                    f"budget: expected at least {len(x)} evaluations, the first generation, "
                    f"got {task.maxfevals} ({task.budget:g} per variable)"
                )
            return True
        f = [problem(row) for row in x]
        if problem.final_target_hit:
            return True
        if both:
            search.tell(x, f)
        else:
            search.tell(f)
    if problem.evaluations == before:
        raise RuntimeError("the solver stopped before it asked for an evaluation")
    return False
