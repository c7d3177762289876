"""Run methods on the benchmark suites of COCO: ``fmnes coco``.

N. Hansen, A. Auger, R. Ros, O. Mersmann, T. Tusar, D. Brockhoff: "COCO: a platform for comparing
continuous optimizers in a black-box setting", Optimization Methods and Software 36 (2021).

`run` solves problems in parallel processes and writes COCO's data. `report` packs the data and lets
cocopp write its page. The folder of a run contains:

    records.jsonl                      one line per solved problem
    problems/SOLVER/f001_d0020_i001/   the data of one problem as COCO wrote them (`_coco_problems`)
    SOLVER.tgz                         all problems of a solver, merged (`_coco_data`)
    page/index.html                    cocopp's page

If a run is killed, start it again: it resumes where it stopped. `_coco_solvers` describes how
solvers are named.
"""

import argparse
import itertools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fmnes import _checks as checks
from fmnes.benchmarking import lines
from fmnes.benchmarking.options import add_action, add_workers
from fmnes.benchmarking.packages import require
from fmnes.benchmarking.processes import run_all, with_progress
from fmnes.integrations import _coco_data as data
from fmnes.integrations import _coco_problems as problems
from fmnes.integrations._coco_problems import Task
from fmnes.integrations._coco_solvers import factory_of
from fmnes.kernels import available_cpus

SUITES = {  # their dimensions; both have 24 functions
    "bbob": (2, 3, 5, 10, 20, 40),
    "bbob-largescale": (20, 40, 80, 160, 320, 640),
}
_FUNCTIONS = range(1, 25)


def run(
    solvers: Sequence[str],
    folder: str | os.PathLike[str],
    *,
    suite: str = "bbob-largescale",
    dims: Sequence[int] = (20, 40),
    functions: Sequence[int] = _FUNCTIONS,
    instances: Sequence[int] = range(1, 6),
    budget: float = 1e4,
    workers: int | None = None,
) -> None:
    """Solve the problems that are not solved yet, solver by solver.

    Parameters
    ----------
    solvers : sequence of str
        Methods of `fmnes.METHODS` (``cr-fm-nes``, or ``cr-fm-nes:paper`` for a variant),
        ``pycma``, ``pycma:vd``, or ``package.module:factory`` of your own.
    folder : path
        Where the data go. Problems whose data are there are not solved again.
    suite, dims, functions, instances
        The problems of ``bbob`` or ``bbob-largescale``.
    budget : float
        Evaluations per variable, restarts included. A problem ends earlier when COCO's final
        target, 1e-8 above the optimum, is reached.
    workers : int, optional
        Number of worker processes; one for each core by default.
    """
    require("coco", "cocoex")
    tasks = _plan(solvers, suite, dims, functions, instances, budget)
    workers = available_cpus() if workers is None else checks.integer("workers", workers, least=1)
    root = Path(folder).resolve()
    with lines.appending(root / problems.RECORDS, "folder") as append:
        done = {task.folder: task for task, _ in problems.read_records(root)}
        for task in tasks:
            if done.get(task.folder, task) != task:
                raise ValueError(
                    f"solvers, suite, budget: expected {done[task.folder]}, which the folder "
                    f"contains, got {task}"
                )
        todo = [task for task in tasks if task.folder not in done]
        ended = run_all(partial(problems.run, root), todo, workers)
        for _, record in with_progress(ended, todo, lambda task: task.maxfevals):
            append([json.dumps(record)])
    if not todo:
        print(f"all {len(tasks)} problems are solved already", file=sys.stderr)


def report(
    sources: Sequence[str | os.PathLike[str]], page: str | os.PathLike[str] | None = None
) -> Path:
    """Pack the data, write cocopp's page, and return the path of its index.

    Parameters
    ----------
    sources : sequence of path
        Folders of `run`, whose solvers are packed to archives first, or such archives. The solver
        of an archive is named like the folder in it.
    page : path, optional
        The folder of the page: ``page`` in the first folder by default.
    """
    paths = [Path(source) for source in sources]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"sources: expected a folder or an archive, got {path}")
    folders = [path for path in paths if path.is_dir()]
    if page is None and not folders:
        raise ValueError(
            "page: expected a folder for the page of these archives (--out on the command line), "
            "got none"
        )
    archives: dict[str, Path] = {}
    for path in paths:
        for archive in _packed(path) if path.is_dir() else [path]:
            solver = data.solver_in(archive)
            if solver in archives:
                both = f"{archives[solver]} and {archive}"
                raise ValueError(f"sources: expected each solver once, got {solver} in {both}")
            archives[solver] = archive
    return data.write_page(archives, folders[0] / "page" if page is None else Path(page))


def _packed(folder: Path) -> list[Path]:
    """Pack the problems of each solver, and return the archives."""
    solved: dict[str, list[data.Solved]] = defaultdict(list)
    for task, record in problems.read_records(folder):
        solved[task.label].append((folder / task.folder, record))
    if not solved:
        raise FileNotFoundError(f"sources: expected a folder of `fmnes coco run`, got {folder}")
    for label, some in solved.items():
        data.pack(some, folder / f"{label}.tgz")
    return [folder / f"{label}.tgz" for label in sorted(solved)]


def _plan(
    solvers: Sequence[str],
    suite: str,
    dims: Sequence[int],
    functions: Sequence[int],
    instances: Sequence[int],
    budget: float,
) -> list[Task]:
    """Return every problem for every solver, after all checks."""
    checks.choice("suite", suite, list(SUITES))
    _check_numbers("dims", dims, SUITES[suite])
    _check_numbers("functions", functions, _FUNCTIONS)
    _check_numbers("instances", instances, range(1, 1000))
    budget = checks.finite("budget", budget, above=0)
    tasks = [
        Task(name, suite, *numbers, budget)
        for name in solvers
        for numbers in itertools.product(functions, dims, instances)
    ]
    if len({task.folder for task in tasks}) < len(tasks):
        raise ValueError(f"solvers: expected each one once, got {[*solvers]}")
    for name in solvers:
        factory_of(name)
    return tasks


def _check_numbers(name: str, numbers: Sequence[int], possible: Sequence[int]) -> None:
    if not numbers or len(set(numbers)) < len(numbers) or not set(numbers) <= set(possible):
        listed = ", ".join(map(str, possible)) if len(possible) < 24 else f"1 to {possible[-1]}"
        wrong = [number for number in numbers if number not in possible] or [*numbers]
        raise ValueError(f"{name}: expected some of {listed}, each once, got {wrong}")


# === The command line ===

_DESCRIPTION = """\
Benchmark methods on the suites of COCO. A SOLVER is one of

  cr-fm-nes, vd-cma, ...      a method of this library
  cr-fm-nes:paper             one of its variants
  pycma, pycma:vd             pycma's CMA-ES, and its VD-CMA
  package.module:factory      your own: factory(x0=, sigma0=, seed=, restart=) returns an object
                              with ask(), tell(f) or tell(x, f), and stop()

  fmnes coco run cr-fm-nes pycma:vd --dims 20 40 --budget 1e3
  fmnes coco report coco      write the page again, from the data so far
  fmnes coco report A.tgz B.tgz --out page

If a run is killed, run the same command again: it resumes where it stopped.
"""


def add_arguments(coco: argparse.ArgumentParser) -> None:
    """Add the actions of `fmnes coco` to its parser."""
    coco.description = _DESCRIPTION
    actions = coco.add_subparsers(title="actions", metavar="ACTION", required=True)

    parser = add_action(actions, "coco", _run, "solve problems, then write cocopp's page")
    parser.add_argument("solvers", nargs="+", metavar="SOLVER")
    parser.add_argument("--suite", choices=SUITES, default="bbob-largescale")
    for option, default, about in (
        ("--dims", [20, 40], "numbers of variables"),
        ("--functions", _FUNCTIONS, "numbers or ranges such as 1-24"),
        ("--instances", range(1, 6), "numbers or ranges such as 1-5"),
    ):
        parser.add_argument(
            option, nargs="+", type=_numbers, default=[default], metavar="N", help=about
        )
    parser.add_argument("--budget", type=float, default=1e4, help="evaluations per variable")
    add_workers(parser)
    parser.add_argument("--out", default="coco", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--no-page", action="store_true", help="write the data only")

    parser = add_action(actions, "coco", _report, "pack data and write cocopp's page")
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="a folder of run, or a .tgz")
    parser.add_argument("--out", metavar="DIR", help="default: page/ in the first folder")


def _numbers(text: str) -> Sequence[int]:
    """Return the numbers of "1-3": 1, 2, 3."""
    first, dash, last = text.partition("-")
    try:
        return range(int(first), int(last if dash else first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected 3 or 1-5, got {text!r}") from None


def _run(options: argparse.Namespace) -> int:
    run(
        options.solvers,
        options.out,
        suite=options.suite,
        dims=[*itertools.chain(*options.dims)],
        functions=[*itertools.chain(*options.functions)],
        instances=[*itertools.chain(*options.instances)],
        budget=options.budget,
        workers=options.workers,
    )
    if not options.no_page:
        print(report([options.out]))
    return 0


def _report(options: argparse.Namespace) -> int:
    print(report(options.sources, options.out))
    return 0
