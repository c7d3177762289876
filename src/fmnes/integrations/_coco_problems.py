"""One problem of a suite, solved by one solver under COCO's observer.

The result depends on the task only. COCO writes the data to a folder of the task; a record in the
log of the run says that the folder is complete. Data without a record are those of a killed run.
"""

import json
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fmnes._version import __version__
from fmnes.benchmarking import lines
from fmnes.benchmarking.ask_tell import tell_both
from fmnes.integrations._coco_solvers import factory_of

SIGMA0 = 2.0  # a fifth of the domain [-5, 5]; COCO proposes where to start
RECORDS = "records.jsonl"
_TRIGGERS = 20  # targets per decade, as many as cocopp's reduce_size keeps; COCO's default is 100


class Task(NamedTuple):
    """A problem, and the solver that solves it."""

    solver: str
    suite: str
    function: int
    dim: int
    instance: int
    budget: float  # evaluations per variable

    @property
    def label(self) -> str:
        """The solver's name in data and figures: all file systems and COCO accept it."""
        return re.sub(r"[^\w.-]", "-", self.solver)

    @property
    def folder(self) -> str:
        """Where the data are, within the folder of the run."""
        problem = f"f{self.function:03d}_d{self.dim:04d}_i{self.instance:03d}"
        return f"problems/{self.label}/{problem}"

    @property
    def maxfevals(self) -> int:
        """The largest number of evaluations, all restarts together."""
        return int(self.budget * self.dim)

    def seeds(self, restart: int) -> tuple[int, int]:
        """Return the seeds of the start point and of the solver, the same for every solver."""
        key = [*self.suite.encode(), self.function, self.dim, self.instance, restart]
        start, search = np.random.SeedSequence(key).generate_state(2)
        return int(start), int(search >> 1) + 1  # to pycma a seed of 0 means none

    def __str__(self) -> str:
        return (
            f"{self.solver} on {self.suite} f{self.function}, instance {self.instance}, "
            f"{self.dim} variables, budget {self.budget:g}"
        )


def read_records(root: Path) -> list[tuple[Task, dict[str, Any]]]:
    """Return the solved problems in the folder of a run, ordered as COCO orders its data."""
    records = [json.loads(line) for line in lines.read_lines(root / RECORDS)]
    solved = [(Task(*(record[name] for name in Task._fields)), record) for record in records]
    return sorted(solved, key=lambda one: one[0].folder)


def run(root: Path, task: Task) -> dict[str, Any]:
    """Solve the problem, leave COCO's data in its folder, and return the record."""
    import cocoex

    cocoex.log_level("warning")
    folder = root / task.folder
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run left
    folder.parent.mkdir(parents=True, exist_ok=True)
    suite = cocoex.Suite(
        task.suite,
        f"instances: {task.instance}",
        f"dimensions: {task.dim} function_indices: {task.function}",
    )
    observer = cocoex.Observer(task.suite, observer_options(task, folder))
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
    return record


def observer_options(task: Task, folder: Path) -> str:
    """Return COCO's options: where it writes, under which name, and how much."""
    info = f"fmnes {__version__}, sigma0 = {SIGMA0}, at most {task.budget:g} d evaluations"
    return (
        f'outer_folder: "{folder.parent}" result_folder: {folder.name} '
        f'algorithm_name: {task.label} algorithm_info: "{info}" '
        f"number_target_triggers: {_TRIGGERS}"
    )


def solve(problem: Any, task: Task, observer: Any) -> int:
    """Restart the solver until it reaches the target or spends the budget; return the runs."""
    start = factory_of(task.solver)
    restart = 0
    while True:
        start_seed, seed = task.seeds(restart)
        np.random.seed(start_seed)  # noqa: NPY002 - COCO draws its proposal from it
        x0 = problem.initial_solution_proposal(restart)
        search = start(x0=x0, sigma0=SIGMA0, seed=seed, restart=restart)
        if _run_once(problem, search, task):
            return restart + 1
        restart += 1
        observer.signal_restart(problem)


def _run_once(problem: Any, search: Any, task: Task) -> bool:
    """Return whether this run was the last: at the target, or without another generation."""
    tell = tell_both(search)
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
        tell(x, f)
    if problem.evaluations == before:
        raise RuntimeError("the solver stopped before it asked for an evaluation")
    return False
