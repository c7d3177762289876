"""The command line: list, run, report, verify."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fmnes._checks import did_you_mean, finite, integer
from fmnes.benchmarking.options import add_workers
from leaderboard import report, rows
from leaderboard.comparison import OWN
from leaderboard.opponents import OPPONENTS, missing, reason_against
from leaderboard.suites import SUITES
from leaderboard.trials import Suite, Trial


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.action(options)
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nleaderboard: interrupted; repeat a run to continue it", file=sys.stderr)
        return 130


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
    about = "names as in `list`; all by default"
    parser.add_argument("--suite", nargs="+", default=list(SUITES), help=about)
    parser.add_argument("--problem", nargs="+", help=about)
    parser.add_argument("--solver", nargs="+", help=about)
    parser.add_argument("--dims", nargs="+", type=int, help="numbers of variables; all by default")


def _chosen_suites(options: argparse.Namespace, others: Iterable[str] = ()) -> list[Suite]:
    """Return the suites that are asked for; a name that none of them has is an error."""
    _check("suite", options.suite, SUITES)
    suites = [SUITES[name] for name in options.suite]
    _check("dims", options.dims, sorted({dim for suite in suites for dim in suite.dims}))
    problems = [name for suite in suites for dim in suite.dims for name in suite.problems(dim)]
    _check("problem", options.problem, dict.fromkeys(problems))
    solvers = [name for suite in suites for name in suite.solvers]
    _check("solver", options.solver, dict.fromkeys([*solvers, *others]))
    return suites


def _check(argument: str, wanted: Iterable[object] | None, known: Iterable[object]) -> None:
    names = list(known)
    for one in wanted or ():
        if one not in names:
            hint = did_you_mean(str(one), map(str, names))
            listed = ", ".join(map(str, names))
            raise ValueError(f"{argument}: expected some of {listed}, got {one!r}{hint}")


def _list(options: argparse.Namespace) -> int:
    for suite in SUITES.values():
        reason = missing(suite.modules)
        found = rows.all_rows(suite, options.results)
        print(f"{suite.name}: {suite.about}{f' ({reason})' if reason else ''}")
        print(f"    {len(found)} trials stored, of {len({row['solver'] for row in found})} solvers")
        print(f"    solvers: {_solvers(suite)}")
        for dim in suite.dims:
            names = suite.problems(dim)
            budgets = sorted({suite.budget(name, dim) for name in names})
            here = sum(row["dim"] == dim for row in found)
            budget = " or ".join(f"{b:.3g}" for b in budgets)
            print(f"    d = {dim}: {_listed(names)}; {budget} evaluations; {here} trials stored")
    print("common solvers")
    for name, solver in OPPONENTS.items():
        reason = reason_against(solver, 1, 1)
        print(f"    {name}{f': {reason}' if reason else ''}")
    return 0


def _solvers(suite: Suite) -> str:
    common = suite.solvers.keys() >= OPPONENTS.keys()
    others = [name for name in suite.solvers if not common or name not in OPPONENTS]
    return ", ".join(["the common ones, below"] * common + others)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 5 else f"{len(names)} problems {names[0]}..{names[-1]}"


def plan(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that are asked for; what cannot run is named on standard error."""
    count = integer("trials", options.trials, least=1)
    if options.budget is not None:
        finite("budget", options.budget, above=0)
    trials, reasons = [], {}
    for suite in _chosen_suites(options):
        solvers = [name for name in options.solver or suite.solvers if name in suite.solvers]
        for dim, name in _problems(suite, options):
            if reason := missing(suite.needs(name)):
                reasons[f"{suite.name} {name}"] = reason
                continue
            budget = _budget(suite, name, dim, options.budget)
            for solver in solvers:
                if reason := reason_against(suite.solvers[solver], dim, budget):
                    reasons[f"{solver} on {suite.name}, d = {dim}"] = reason
                    continue
                seeds = range(1, count + 1)
                trials += [Trial(suite.name, name, dim, solver, s, budget) for s in seeds]
    _name_reasons("not run", reasons)
    return trials


def _problems(suite: Suite, options: argparse.Namespace) -> list[tuple[int, str]]:
    return [
        (dim, name)
        for dim in suite.dims
        if options.dims is None or dim in options.dims
        for name in suite.problems(dim)
        if options.problem is None or name in options.problem
    ]


def _budget(suite: Suite, name: str, dim: int, per_variable: float | None) -> int:
    return suite.budget(name, dim) if per_variable is None else max(1, int(per_variable * dim))


def _name_reasons(what: str, reasons: Mapping[str, str]) -> None:
    for name, reason in reasons.items():
        print(f"{what}: {name}: {reason}", file=sys.stderr)


def _run(options: argparse.Namespace) -> int:
    workers = integer("workers", options.workers, least=1)
    trials = plan(options)
    if options.again:
        rows.forget(trials, options.results)
    count = rows.run(trials, workers, options.results)
    print(f"{count} of {len(trials)} trials run; the others are stored or failed", file=sys.stderr)
    return 0


def _report(options: argparse.Namespace) -> int:
    print(report.write(options.results, options.out))
    return 0


def _verify(options: argparse.Namespace) -> int:
    suites = {suite.name: suite for suite in _chosen_suites(options, others=OWN)}
    chosen = (("problem", options.problem), ("solver", options.solver), ("dim", options.dims))
    reasons = {}

    def wanted(row: rows.Row) -> bool:
        if any(values and row[name] not in values for name, values in chosen):
            return False
        suite = suites[row["suite"]]
        solver = suite.solvers.get(row["solver"])  # other benchmarks have other ones too
        modules = suite.needs(row["problem"]) + ((solver.module,) if solver else ())
        if reason := missing(modules):
            reasons[f"{suite.name}, {row['solver']}"] = reason
        return reason is None

    count = integer("rows", options.rows, least=1)
    workers = integer("workers", options.workers, least=1)
    kept = rows.sample(suites, wanted, count, options.seed, options.results)
    _name_reasons("not verified", reasons)
    different = rows.verify(kept, workers, lambda line: print(line, flush=True))
    return 1 if different else 0
