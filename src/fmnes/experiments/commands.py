"""`fmnes paper`: list, run, report and verify the paper's experiments."""

import argparse
from pathlib import Path

from fmnes import _checks as checks
from fmnes.benchmarking.options import add_action, add_workers
from fmnes.benchmarking.packages import require
from fmnes.experiments import protocol, report, runner
from fmnes.experiments.protocol import EXPERIMENTS, SIZES, Trial, expected_seconds, trials_of
from fmnes.experiments.results import read
from fmnes.experiments.solvers import solver_of

_DESCRIPTION = """\
Run the experiments of the CR-FM-NES paper, and test what the paper asserts without showing it.

  fmnes paper list                    the experiments, and how long the rest of each takes
  fmnes paper run                     the quick version: d = 80, two trials, smallest population
  fmnes paper run --full              the whole protocol (days of one core)
  fmnes paper run high-dimensional --kept --dims 200
  fmnes paper report                  a page with figures, tables and verdicts
  fmnes paper verify                  run 20 rows again and compare

If a run is killed, run the same command again: it resumes where it stopped.
"""


def add_arguments(paper: argparse.ArgumentParser) -> None:
    """Add the actions of `fmnes paper` to its parser."""
    paper.description = _DESCRIPTION
    actions = paper.add_subparsers(title="actions", metavar="ACTION", required=True)
    about = "list the experiments, and how much of each has been run"
    _add_results(add_action(actions, "paper", _list, about))

    parser = add_action(actions, "paper", _run, "run the trials that the results file lacks")
    _add_results(parser)
    _add_selection(parser)
    add_workers(parser)

    parser = add_action(actions, "paper", _report, "write a page of figures, tables and verdicts")
    _add_results(parser)
    about = "folder of the page (default: that of the results)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=about)

    parser = add_action(actions, "paper", _verify, "run some rows again, and compare")
    _add_results(parser)
    about = "number of rows (default: %(default)s)"
    parser.add_argument("--rows", type=int, default=20, metavar="N", help=about)
    about = "random seed of their selection (default: a new one each time)"
    parser.add_argument("--seed", type=int, help=about)
    about = "only rows that took less than this in the file (default: %(default)g)"
    parser.add_argument("--below", type=float, default=60.0, metavar="SECONDS", help=about)
    add_workers(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("paper/results.csv"),
        metavar="FILE",
        help="the file of rows (default: %(default)s)",
    )


def _add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that select trials: experiments, a size, and filters."""
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help=f"{', '.join(EXPERIMENTS)} (default: all)",
    )
    size = parser.add_mutually_exclusive_group()
    size.set_defaults(size="quick")
    for name, rule in SIZES.items():
        about = rule.__doc__ if rule else "All trials."
        size.add_argument(f"--{name}", dest="size", action="store_const", const=name, help=about)
    for option, field in (("--dims", "dim"), ("--functions", "function"), ("--methods", "method")):
        known = sorted({getattr(trial, field) for trial in trials_of(EXPERIMENTS)})
        about = f"only some of {', '.join(map(str, known))}"
        kind = int if field == "dim" else str
        parser.add_argument(option, nargs="+", type=kind, choices=known, metavar="X", help=about)
    parser.add_argument(
        "--beside",
        nargs="+",
        default=[],
        metavar="SOLVER",
        help="more solvers for the same problems: a method (cr-fm-nes, or cr-fm-nes:paper for "
        "a variant), or your own as package.module:factory, where factory(x0=, sigma0=, popsize=, "
        "seed=) returns an object with ask(), tell(f) or tell(x, f), and stop()",
    )


def _selected(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that the options ask for."""
    for name in options.experiments:
        checks.choice("EXPERIMENT", name, list(EXPERIMENTS))
    matching = [
        trial
        for trial in trials_of(options.experiments or EXPERIMENTS)
        if (options.dims is None or trial.dim in options.dims)
        and (options.functions is None or trial.function in options.functions)
        and (options.methods is None or trial.method in options.methods)
    ]
    selected = list(filter(SIZES[options.size], matching))
    if not selected:
        raise ValueError(
            "EXPERIMENT, --dims, --functions, --methods: expected at least one trial that "
            f"--{options.size} and these options select, got none; --kept selects "
            f"{sum(map(protocol.kept, matching))}, --full {len(matching)}"
        )
    others = [protocol.beside(selected, solver_of(name)) for name in options.beside]
    return list(dict.fromkeys([*selected, *(trial for one in others for trial in one)]))


def _list(options: argparse.Namespace) -> int:
    """Print two lines for each experiment."""
    done = read(options.results)
    print(f"{'experiment':17} {'kept':>11} {'full':>13} {'core hours left of kept, full':>30}")
    for name, (about, _) in EXPERIMENTS.items():
        counts, hours = [], []
        for size in (SIZES["kept"], SIZES["full"]):
            trials = trials_of([name], size)
            left = [trial for trial in trials if trial not in done]
            counts.append(f"{len(trials) - len(left)} of {len(trials)}")
            hours.append(sum(map(expected_seconds, left)) / 3600)
        print(f"{name:17} {counts[0]:>11} {counts[1]:>13} {hours[0]:>20.1f}, {hours[1]:.1f}")
        print(" " * 18 + about)
    return 0


def _run(options: argparse.Namespace) -> int:
    selected = _selected(options)
    count = runner.run(selected, options.results, options.workers)
    print(f"{len(selected)} trials, {count} of them run now; results in {options.results}")
    return 0


def _report(options: argparse.Namespace) -> int:
    require("paper", "matplotlib", "scipy")
    print(report.write(options.results, options.out or options.results.parent))
    return 0


def _verify(options: argparse.Namespace) -> int:
    pairs = runner.verify(
        options.results, options.rows, options.workers, options.below, options.seed
    )
    different = [pair for pair in pairs if not runner.same(*pair)]
    for kept, again in different:
        print(f"{kept.trial}: expected {kept.evaluations} evaluations and {kept.value} with")
        print(f"  {kept.versions}; got {again.evaluations} and {again.value} with")
        print(f"  {again.versions}")
    print(f"{len(pairs) - len(different)} of {len(pairs)} rows came out the same")
    return 1 if different else 0
