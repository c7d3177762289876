"""`fmnes paper`: list, run, report and verify the paper's experiments."""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fmnes.experiments import extras, protocol
from fmnes.experiments.protocol import EXPERIMENTS, SIZES, Trial, expected_seconds, trials_of
from fmnes.experiments.solvers import solver_of

_DESCRIPTION = """\
The experiments of the CR-FM-NES paper, and those that it asserts without showing.

  fmnes paper list                    what there is, what has been run, and how long the rest takes
  fmnes paper run                     the quick version: d = 80, two trials, smallest population
  fmnes paper run --full              the whole protocol (days of one core)
  fmnes paper run high-dimensional --kept --dims 200
  fmnes paper report                  a page with figures, tables and verdicts
  fmnes paper verify                  run 20 rows again and compare
"""


def add_command(commands: Any) -> None:
    """Add `paper` to the commands of the command line."""
    paper = commands.add_parser(
        "paper",
        help="run the experiments of the CR-FM-NES paper again",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = paper.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action, about in (
        (_list, "the experiments, and how much of each has been run"),
        (_run, "run what the results file lacks"),
        (_report, "write the page of figures, tables and verdicts"),
        (_verify, "run some rows again, and compare"),
    ):
        parser = actions.add_parser(action.__name__.strip("_"), help=about)
        parser.set_defaults(run=partial(_in_one_line, action))
        parser.add_argument(
            "--results",
            type=Path,
            default=Path("paper/results.csv"),
            metavar="FILE",
            help="the file of rows (default: %(default)s)",
        )
        _ARGUMENTS[action](parser)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Which trials: experiments, a size, and filters."""
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help=f"of {', '.join(EXPERIMENTS)} (default: all)",
    )
    size = parser.add_mutually_exclusive_group()
    size.set_defaults(size="quick")
    for name, rule in SIZES.items():
        about = (rule.__doc__ or "").partition("\n")[0]
        size.add_argument(f"--{name}", dest="size", action="store_const", const=name, help=about)
    parser.add_argument("--dims", nargs="+", type=int, help="only these dimensions")
    parser.add_argument("--functions", nargs="+", help="only these functions")
    parser.add_argument("--methods", nargs="+", help="only these methods")
    parser.add_argument(
        "--beside",
        nargs="+",
        default=[],
        metavar="SOLVER",
        help="others on the same problems: methods of THE TABLE (cr-fm-nes, or cr-fm-nes:paper for "
        "a variant), or your own as package.module:factory, where factory(x0, sigma0, popsize, "
        "seed), called by keyword, returns an object with ask(), tell(f) or tell(x, f), and stop()",
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes at a time (default: one for each core that we may use)",
    )


def _add_for_run(parser: argparse.ArgumentParser) -> None:
    _add_choice(parser)
    _add_workers(parser)


def _add_for_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (default: beside the results)"
    )


def _add_for_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="which ones; others each time by default")
    parser.add_argument(
        "--below",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="only rows whose trial took less than this, as the file says (default: %(default)g)",
    )
    _add_workers(parser)


def _in_one_line(action: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """What wrong arguments, files and missing packages raise is one line for a user."""
    try:
        return action(options)
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise SystemExit(f"fmnes paper: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(
            f"\nfmnes paper: interrupted; what had ended is in {options.results}, "
            "the same command goes on"
        ) from None


def _list(options: argparse.Namespace) -> int:
    """A line for each experiment."""
    from fmnes.experiments import results

    done = results.read(options.results)
    print(f"{'experiment':17} {'kept':>11} {'full':>13} {'core hours left of kept, full':>30}")
    for name, experiment in EXPERIMENTS.items():
        counts, hours = [], []
        for size in (protocol.kept, protocol.full):
            trials = trials_of([name], size)
            left = [trial for trial in trials if trial not in done]
            counts.append(f"{len(trials) - len(left)} of {len(trials)}")
            hours.append(sum(map(expected_seconds, left)) / 3600)
        print(f"{name:17} {counts[0]:>11} {counts[1]:>13} {hours[0]:>20.1f}, {hours[1]:.1f}")
        print(" " * 18 + (experiment.__doc__ or "").partition("\n")[0])
    return 0


def _run(options: argparse.Namespace) -> int:
    """Run what is chosen and not there yet."""
    from fmnes.experiments import runner

    _look_here_too()
    chosen = _chosen(options)
    count = runner.run(chosen, options.results, _workers(options))
    print(f"{len(chosen)} trials, {count} of them run now; results in {options.results}")
    return 0


def _look_here_too() -> None:
    """A user's factory may be in the current directory."""
    sys.path.insert(0, os.getcwd())


def _chosen(options: argparse.Namespace) -> list[Trial]:
    """The trials that the options ask for; every word of them has to mean something."""
    names = options.experiments or list(EXPERIMENTS)
    _known("EXPERIMENT", names, EXPERIMENTS)
    every = trials_of(names, protocol.full)
    matching = every
    for option, field in (("dims", "dim"), ("functions", "function"), ("methods", "method")):
        wanted = getattr(options, option)
        if wanted is not None:
            _known(f"--{option}", wanted, {getattr(trial, field) for trial in every})
            matching = [trial for trial in matching if getattr(trial, field) in wanted]
    chosen = _some(matching, options.size)
    others = [protocol.beside(chosen, solver_of(name)) for name in options.beside]
    return list(dict.fromkeys([*chosen, *(trial for one in others for trial in one)]))


def _some(matching: list[Trial], size: str) -> list[Trial]:
    """Those of a size; there has to be one."""
    if not matching:
        raise ValueError(
            "--dims, --functions, --methods: expected at least one trial that meets them all, got "
            "none, not even with --kept or --full"
        )
    chosen = list(filter(SIZES[size], matching))
    if not chosen:  # the other sizes have some of everything
        raise ValueError(
            "--quick, the default: expected at least one trial, got none: it has few methods, "
            f"and d = 80 but for time; --kept has {sum(map(protocol.kept, matching))}, "
            f"--full has {len(matching)}"
        )
    return chosen


def _known(argument: str, words: list[Any], known: Any) -> None:
    for word in words:
        if word not in known:
            names = ", ".join(map(str, sorted(known)))
            raise ValueError(f"{argument}: expected one of {names}; got {word}")


def _positive(argument: str, number: int) -> None:
    if number < 1:
        raise ValueError(f"{argument}: expected a number >= 1, got {number}")


def _workers(options: argparse.Namespace) -> int:
    """As many as are asked for, or as there are cores."""
    from fmnes.experiments.processes import cores

    if options.workers is None:
        return cores()
    _positive("--workers", options.workers)
    return int(options.workers)


def _report(options: argparse.Namespace) -> int:
    """Write the page."""
    extras.require("paper", "matplotlib", "scipy")
    from fmnes.experiments import report

    page = report.write(options.results, options.out or options.results.parent)
    print(page)
    return 0


def _verify(options: argparse.Namespace) -> int:
    """Say of each row whether it came out the same."""
    from fmnes.experiments import runner

    _look_here_too()
    _positive("--rows", options.rows)
    check = runner.verify(
        options.results, options.rows, _workers(options), options.below, options.seed
    )
    for kept, again in check.differences:
        print(f"{kept.trial}: expected {kept.evaluations} evaluations and {kept.value} with")
        print(f"  {kept.versions}; got {again.evaluations} and {again.value} with")
        print(f"  {again.versions}")
    print(f"{check.rows - len(check.differences)} of {check.rows} rows came out the same")
    return 1 if check.differences else 0


_ARGUMENTS: dict[Callable[[argparse.Namespace], int], Callable[[Any], None]] = {
    _list: lambda parser: None,
    _run: _add_for_run,
    _report: _add_for_report,
    _verify: _add_for_verify,
}
