"""The benchmark suites of COCO, solved by our methods and by others: ``fmnes coco``.

N. Hansen, A. Auger, R. Ros, O. Mersmann, T. Tusar, D. Brockhoff: "COCO: a platform for comparing
continuous optimizers in a black-box setting", Optimization Methods and Software 36 (2021).

`run` solves problems in parallel processes and writes COCO's data, `report` packs them and has
cocopp draw its page. In the folder of a run are:

    problems/SOLVER/f001_d0020_i001/   one problem as COCO wrote it (`_coco_problems`)
    SOLVER.tgz                         all problems of a solver, merged (`_coco_data`)
    page/index.html                    cocopp's page

A run that was killed goes on where it was if it is started again. Solvers are named as
`_coco_solvers` says.
"""

import argparse
import itertools
import math
import os
import sys
from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from fmnes.experiments.extras import require
from fmnes.integrations import _coco_data as data
from fmnes.integrations import _coco_problems as problems
from fmnes.integrations._coco_problems import Task
from fmnes.integrations._coco_solvers import factory_of, label_of
from fmnes.storage.lock import Lock

SUITES = {  # their dimensions; both have 24 functions
    "bbob": (2, 3, 5, 10, 20, 40),
    "bbob-largescale": (20, 40, 80, 160, 320, 640),
}
_FUNCTIONS = range(1, 25)
# What wrong arguments, missing packages and failing solvers raise: a user reads one line.
_EXPECTED = (ImportError, OSError, RuntimeError, TypeError, ValueError)


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
    """Solve the problems that are not solved yet, solver after solver.

    Parameters
    ----------
    solvers : sequence of str
        Methods of `fmnes.METHODS` (``cr-fm-nes``, or ``cr-fm-nes:paper`` for a variant),
        ``pycma``, ``pycma:vd``, or ``package.module:factory`` of your own.
    folder : path
        Where the data go. What is there already is not run again.
    suite, dims, functions, instances
        The problems: of ``bbob`` or ``bbob-largescale``.
    budget : float
        Evaluations per variable, restarts included. A problem ends earlier when COCO's final
        target, 1e-8 above the optimum, is hit.
    workers : int, optional
        How many work at the same time; one for each core by default.
    """
    require("coco", "cocoex", "tqdm")
    tasks = _plan(solvers, suite, dims, functions, instances, budget)
    workers = _count(workers)
    root = Path(folder, "problems").resolve()
    root.mkdir(parents=True, exist_ok=True)
    with Lock(Path(folder, ".lock"), "folder"):  # leftovers must not be those of another run
        for name in solvers:
            (root / label_of(name)).mkdir(exist_ok=True)
            problems.clear_leftovers(root / label_of(name))
        todo = [task for task in tasks if not problems.is_done(task, root / label_of(task.solver))]
        if todo:
            _run_all(todo, root, min(workers, len(todo)), sum(t.maxfevals for t in tasks))
        else:
            print(f"all {len(tasks)} problems are solved already", file=sys.stderr)  # as the bar


def report(
    sources: Sequence[str | os.PathLike[str]], page: str | os.PathLike[str] | None = None
) -> Path:
    """Pack the data and write cocopp's page; returns the path of its index.

    Parameters
    ----------
    sources : sequence of path
        Folders of `run`, whose solvers are packed to archives first, or such archives. An archive
        is a solver, of the name of the folder in it.
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
    archives = []
    for solver in sorted((folder / "problems").glob("*")):
        if solved := sorted(solver.glob("f*")):
            archives.append(folder / f"{solver.name}.tgz")
            data.pack(solved, archives[-1])
    if not archives:
        raise FileNotFoundError(f"sources: expected a folder of `fmnes coco run`, got {folder}")
    return archives


def _plan(
    solvers: Sequence[str],
    suite: str,
    dims: Sequence[int],
    functions: Sequence[int],
    instances: Sequence[int],
    budget: float,
) -> list[Task]:
    """Every problem for every solver, after all checks."""
    if suite not in SUITES:
        raise ValueError(f"suite: expected one of {', '.join(SUITES)}, got {suite!r}")
    _check_numbers("dims", dims, SUITES[suite])
    _check_numbers("functions", functions, _FUNCTIONS)
    _check_numbers("instances", instances, range(1, 1000))
    if not 0 < budget < math.inf:
        raise ValueError(f"budget: expected a finite number > 0, got {budget!r}")
    if len(set(map(label_of, solvers))) < len(solvers):
        raise ValueError(f"solvers: expected each one once, got {[*solvers]}")
    for name in solvers:
        factory_of(name)
    return [
        Task(name, suite, function, dim, instance, float(budget))
        for name in solvers
        for dim in dims
        for function in functions
        for instance in instances
    ]


def _check_numbers(name: str, numbers: Sequence[int], possible: Sequence[int]) -> None:
    if not numbers or len(set(numbers)) < len(numbers) or not set(numbers) <= set(possible):
        listed = ", ".join(map(str, possible)) if len(possible) < 24 else f"1 to {possible[-1]}"
        wrong = [number for number in numbers if number not in possible] or [*numbers]
        raise ValueError(f"{name}: expected some of {listed}, each once, got {wrong}")


def _count(workers: int | None) -> int:
    from fmnes.experiments.processes import cores

    if workers is None:
        return cores()
    if workers < 1:
        raise ValueError(f"workers: expected a number >= 1, got {workers}")
    return workers


def _run_all(todo: Sequence[Task], root: Path, workers: int, evaluations: int) -> None:
    """The tasks on so many processes, with a bar that counts evaluations of the budget."""
    from tqdm import tqdm

    from fmnes.experiments.processes import pool

    done = evaluations - sum(task.maxfevals for task in todo)
    with (
        pool(workers) as executor,
        tqdm(total=evaluations, initial=done, unit=" evals", unit_scale=True) as bar,
    ):
        running = {
            executor.submit(problems.run, task, root / label_of(task.solver)): task for task in todo
        }
        for future in as_completed(running):
            error = future.exception()
            if error is not None:
                raise RuntimeError(f"{running[future]}: {type(error).__name__}: {error}") from error
            bar.update(running[future].maxfevals)


# === The command line ===

_DESCRIPTION = """\
Benchmark methods on the suites of COCO. A SOLVER is one of

  cr-fm-nes, vd-cma, ...      a method of this library
  cr-fm-nes:paper             one of its variants
  pycma, pycma:vd             pycma's CMA-ES, and its VD-CMA
  package.module:factory      your own: factory(x0=, sigma0=, seed=, restart=), called by name,
                              returns an object with ask(), tell(f) or tell(x, f), and stop()

  fmnes coco run cr-fm-nes pycma:vd --dims 20 40 --budget 1e3
  fmnes coco report coco      the page again, from the data so far
  fmnes coco report A.tgz B.tgz --out page

A run that was killed goes on where it was: start it again.
"""


def add_command(commands: Any) -> None:
    """Add `coco` to the commands of the command line."""
    coco = commands.add_parser(
        "coco",
        help="benchmark methods on the suites of COCO",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = coco.add_subparsers(title="actions", metavar="ACTION", required=True)

    parser = actions.add_parser("run", help="solve problems, then write cocopp's page")
    parser.set_defaults(run=_run_command)
    parser.add_argument("solvers", nargs="+", metavar="SOLVER")
    parser.add_argument("--suite", choices=SUITES, default="bbob-largescale")
    for option, default, what in (
        ("--dims", [20, 40], "numbers of variables"),
        ("--functions", [*_FUNCTIONS], "numbers or ranges such as 1-24"),
        ("--instances", [1, 2, 3, 4, 5], "numbers or ranges such as 1-5"),
    ):
        parser.add_argument(
            option, nargs="+", type=_numbers, action=_Flat, default=default, metavar="N", help=what
        )
    parser.add_argument("--budget", type=float, default=1e4, help="evaluations per variable")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all cores)")
    parser.add_argument("--out", default="coco", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--no-page", action="store_true", help="leave the data as they are")

    parser = actions.add_parser("report", help="pack data and write cocopp's page")
    parser.set_defaults(run=_report_command)
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="a folder of run, or a .tgz")
    parser.add_argument("--out", metavar="DIR", help="default: page/ in the first folder")


class _Flat(argparse.Action):
    """The lists of all words as one."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, list(itertools.chain(*values)))


def _numbers(text: str) -> list[int]:
    """The numbers of "1-3": 1, 2, 3."""
    first, dash, last = text.partition("-")
    try:
        return list(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected 3 or 1-5, got {text!r}") from None


def _run_command(options: argparse.Namespace) -> int:
    sys.path.insert(0, os.getcwd())  # where a user's factory may be
    try:
        run(
            options.solvers,
            options.out,
            suite=options.suite,
            dims=options.dims,
            functions=options.functions,
            instances=options.instances,
            budget=options.budget,
            workers=options.workers,
        )
        if not options.no_page:
            print(report([options.out]))
    except KeyboardInterrupt:
        raise SystemExit("fmnes coco: interrupted; the same command goes on from here") from None
    except _EXPECTED as error:
        raise SystemExit(f"fmnes coco: {error}") from None
    return 0


def _report_command(options: argparse.Namespace) -> int:
    try:
        print(report(options.sources, options.out))
    except _EXPECTED as error:
        raise SystemExit(f"fmnes coco: {error}") from None
    return 0
