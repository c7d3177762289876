"""The command line: list, run, report, verify."""

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from fmnes.benchmarking.options import add_workers
from leaderboard import report, rows
from leaderboard.opponents import OPPONENTS, reason_against
from leaderboard.suites import SUITES
from leaderboard.trials import Suite, Trial


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.action(options)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="leaderboard", description="Compare optimizers on the same problems and budgets."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="suites, problems, solvers, and what is stored")
    listing.set_defaults(action=_list)

    running = actions.add_parser("run", help="run trials that are not stored yet")
    _add_choice(running)
    running.add_argument("--budget", type=float, metavar="N", help="evaluations per variable")
    running.add_argument("--trials", type=int, default=1, metavar="N", help="seeds 1 to N")
    running.add_argument("--again", action="store_true", help="first forget what is stored of them")
    add_workers(running)
    running.set_defaults(action=_run)

    reporting = actions.add_parser("report", help="write docs/leaderboard.md and an HTML page")
    reporting.add_argument("--out", type=Path, default=Path("leaderboard.html"), metavar="FILE")
    reporting.set_defaults(action=_report)

    verifying = actions.add_parser("verify", help="run random stored rows again, and compare")
    _add_choice(verifying)
    verifying.add_argument("--rows", type=int, default=5, metavar="N")
    verifying.add_argument("--seed", type=int, default=0, help="which rows are chosen")
    add_workers(verifying)
    verifying.set_defaults(action=_verify)

    for one in (listing, running, reporting, verifying):
        one.add_argument("--results", type=Path, default=rows.FOLDER, metavar="DIR")
    return parser


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--problem", nargs="+", help="all by default")
    parser.add_argument("--solver", nargs="+", help="all by default")
    parser.add_argument("--dims", nargs="+", type=int, help="all by default")


def _list(options: argparse.Namespace) -> int:
    for suite in SUITES.values():
        missing = _missing(suite.modules)
        found = rows.all_rows(suite, options.results)
        print(f"{suite.name}: {suite.about}{f' ({missing})' if missing else ''}")
        print(f"    {len(found)} trials stored, of {len({row['solver'] for row in found})} solvers")
        if suite.solvers is not OPPONENTS:
            print(f"    solvers: {', '.join(suite.solvers)}")
        for dim in suite.dims:
            names = suite.problems(dim)
            budgets = sorted({suite.budget(name, dim) for name in names})
            here = sum(row["dim"] == dim for row in found)
            budget = " or ".join(f"{b:.3g}" for b in budgets)
            print(f"    d = {dim}: {_listed(names)}; {budget} evaluations; {here} trials stored")
    print("solvers of the other suites")
    for name, solver in OPPONENTS.items():
        reason = reason_against(solver, 1, 1)
        print(f"    {name}{f': {reason}' if reason else ''}")
    return 0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 5 else f"{len(names)} problems {names[0]}..{names[-1]}"


def _missing(modules: Sequence[str]) -> str | None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return f"{', '.join(missing)} is not installed" if missing else None


def plan(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that are asked for; what cannot run is named on standard error."""
    trials, reasons = [], {}
    for suite in map(SUITES.__getitem__, options.suite):
        for dim in _chosen("dims", options.dims, suite.dims, len(options.suite)):
            for name in suite.problems(dim):
                if options.problem and name not in options.problem:
                    continue
                if missing := _missing(suite.needs(name)):
                    reasons[f"{suite.name} {name}"] = missing
                    continue
                budget = _budget(suite, name, dim, options.budget)
                for solver in _solvers(suite, options.solver):
                    if reason := reason_against(suite.solvers[solver], dim, budget):
                        reasons[f"{solver} on {name}, d = {dim}"] = reason
                        continue
                    seeds = range(1, options.trials + 1)
                    trials += [Trial(suite.name, name, dim, solver, s, budget) for s in seeds]
    for what, reason in reasons.items():
        print(f"not run: {what}: {reason}", file=sys.stderr)
    return trials


def _budget(suite: Suite, name: str, dim: int, per_variable: float | None) -> int:
    return suite.budget(name, dim) if per_variable is None else int(per_variable * dim)


def _chosen(
    argument: str, wanted: Sequence[int] | None, possible: Sequence[int], suites: int
) -> Sequence[int]:
    """Return those that are asked for; what one of several suites lacks, another may have."""
    if wanted is None:
        return possible
    if suites == 1 and not set(wanted) <= set(possible):
        raise ValueError(f"{argument}: expected some of {[*possible]}, got {[*wanted]}")
    return [one for one in possible if one in wanted]


def _solvers(suite: Suite, wanted: Sequence[str] | None) -> list[str]:
    if wanted is None:
        return list(suite.solvers)
    known = {name for one in SUITES.values() for name in one.solvers}
    for name in wanted:
        if name not in known:
            raise ValueError(f"solver: expected some of {sorted(known)}, got {name!r}")
    return [name for name in wanted if name in suite.solvers]


def _run(options: argparse.Namespace) -> int:
    trials = plan(options)
    if options.again:
        rows.forget(trials, options.results)
    count = rows.run(trials, options.workers, options.results)
    print(f"{count} trials run; the others were stored already", file=sys.stderr)
    return 0


def _report(options: argparse.Namespace) -> int:
    print(report.write(options.results, options.out))
    return 0


def _verify(options: argparse.Namespace) -> int:
    def wanted(row: rows.Row) -> bool:
        chosen = (("problem", options.problem), ("solver", options.solver), ("dim", options.dims))
        return all(not values or row[name] in values for name, values in chosen)

    different = rows.verify(
        options.suite,
        wanted,
        options.rows,
        options.seed,
        options.workers,
        options.results,
        lambda line: print(line, flush=True),
    )
    return 1 if different else 0
