"""``fmnes run`` and ``fmnes resume``: a search from the command line, in a folder of its own."""

import argparse
import contextlib
import dataclasses
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import fmnes
from fmnes import Result, Status
from fmnes.arguments.start import read_point, read_start
from fmnes.cli import _arguments as arguments
from fmnes.cli._command import add_command
from fmnes.cli._errors import CommandError, UsageError, arguments_as_flags, in_one_line
from fmnes.cli._folder import Folder, result_json
from fmnes.cli._options import RunOptions
from fmnes.cli._output import logged, print_err, print_out
from fmnes.cli._recorder import Recorder
from fmnes.records.merging import error_summary
from fmnes.runs.evaluation import constraints_from

_RUN_USAGE = """\
fmnes run package.module:function --x0 X [X ...] [--sigma0 S [S ...]] [options]
       fmnes run --command PROGRAM --x0 X [X ...] [--sigma0 S [S ...]] [options]"""
_RUN_EPILOG = """\
examples:
  fmnes run mymodel:loss --x0 0 --dim 100 --sigma0 0.5 --maxfevals 20000 --rng 1
  fmnes run mymodel:loss --x0 1 2 3 --sigma0 0.1 0.2 0.1 --bounds -5 5 --workers 4
  fmnes run mymodel:loss --x0 @start.npy --sigma0 0.1 --method vd-cma --restarts 5
  fmnes run --command "./simulate {file}" --x0 @start.txt --sigma0 0.1 --workers 8 \\
      --evaluation-timeout 60 --retries 1 --out fit
  fmnes run --command "python simulate.py" --x0 0 --dim 30 --sigma0 1

@FILE is an .npy file, a .json file, or a text file of numbers separated by spaces, commas or line
breaks.

A program reads the variables, one number per line, from the file whose path replaces {file}, or
from its standard input if the command has no {file}. It prints the value on the last line of its
output, and after it, on the same line, the numbers of --constraints N, which have to be <= 0. An
exit status other than 0 counts as a failed evaluation.

exit status: 0 if the search ended by itself; 1 if it failed (the objective raised an error, or no
candidate was feasible); 2 for wrong arguments; 130 after Ctrl-C; 143 after SIGTERM. In all cases
but 2, `fmnes resume DIR` continues the run.
"""
_RESUME_EPILOG = """\
examples:
  fmnes resume fit                       the result is the same as without the interruption
  fmnes resume fit --maxfevals 50000     with a larger budget; the run may have ended before
"""
_EXIT = {
    Status.INFEASIBLE: 1,
    Status.INTERRUPTED: 130,
    Status.TERMINATED: 143,
}


# === The flags ===


def add_commands(commands: Any) -> None:
    """Add `run` and `resume` to the commands of the command line."""
    command = add_command(commands, run, usage=_RUN_USAGE, epilog=_RUN_EPILOG)
    add = command.add_argument
    add("function", nargs="?", metavar="package.module:function", help="the objective function")
    add("--command", metavar="PROGRAM", help='a program instead, such as "./simulate {file}"')
    _add_search(command.add_argument_group("the search"))
    _add_budget(command.add_argument_group("when to end"))
    _add_evaluation(command.add_argument_group("evaluations"))
    output = command.add_argument_group("output")
    output.add_argument("--out", metavar="DIR", help="folder of the run (default: a new one here)")
    output.add_argument("--checkpoint", metavar="FILE", help="checkpoint file (default: in DIR)")
    _add_output(output)

    command = add_command(commands, resume, epilog=_RESUME_EPILOG)
    command.add_argument("dir", metavar="DIR", help="folder of the run")
    _add_budget(command)
    command.add_argument("--workers", type=number, metavar="N", help="number of worker processes")
    _add_output(command)


def _add_search(group: Any) -> None:
    add = group.add_argument
    add("--x0", nargs="+", metavar="X", help="initial mean: numbers, or @FILE")
    space_help = (
        "named variables: a JSON file (docs/variables.md); then --x0 is @FILE.json with values by "
        "name, or left out"
    )
    add("--space", metavar="FILE", help=space_help)
    add("--dim", type=number, metavar="D", help="number of variables, if X is one number for all")
    sigma0_help = (
        "initial standard deviation: one number, D numbers, or @FILE (default: a sixth of the "
        "range between the bounds, else a third of the size of x0, else 1; less for D > 1000); "
        "with --space also NAME=S"
    )
    add("--sigma0", nargs="+", metavar="S", help=sigma0_help)
    bounds_help = "LOW HIGH for all variables (inf for no bound), or @FILE with a pair for each"
    add("--bounds", nargs="+", metavar="B", help=bounds_help)
    integrality_help = "1 if all variables are integers; or 0 and 1 for each variable, or @FILE"
    add("--integrality", nargs="+", metavar="I", help=integrality_help)
    constraints_help = (
        "package.module:function, whose numbers have to be <= 0, or the name of what minimize "
        "accepts; or the number of constraints that the objective returns or prints after its value"
    )
    add("--constraints", metavar="C", help=constraints_help)
    add("--method", default="auto", help="one of `fmnes methods` (default: %(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the method")
    add("--popsize", type=number, metavar="N", help="candidates per generation")
    restarts_help = "restarts with larger populations: N for IPOP, bipop:N for BIPOP (default: 0)"
    add("--restarts", default="0", metavar="N", help=restarts_help)
    add("--rng", type=number, metavar="SEED", help="random seed (default: a new one each time)")


def _add_budget(group: Any) -> None:
    add = group.add_argument
    add("--ftarget", type=float, metavar="F", help="objective value to reach")
    add("--maxfevals", type=number, metavar="N", help="maximum number of evaluations, such as 1e5")
    add("--maxiter", type=number, metavar="N", help="maximum number of generations of each run")
    add("--timeout", type=float, metavar="SECONDS", help="maximum duration of the whole search")


def _add_evaluation(group: Any) -> None:
    add = group.add_argument
    vectorized_help = "call the function with all candidates, an array of shape (popsize, D)"
    add("--vectorized", action="store_true", help=vectorized_help)
    add("--workers", type=number, metavar="N", help="number of worker processes")
    asynchronous_help = "do not let workers wait for the slowest candidate of a generation"
    add("--asynchronous", action="store_true", help=asynchronous_help)
    timeout_help = "kill an evaluation that takes longer, and count it as failed"
    add("--evaluation-timeout", type=float, metavar="SECONDS", help=timeout_help)
    retries_help = "further attempts after a failed evaluation (default: 0)"
    add("--retries", type=number, default=0, metavar="N", help=retries_help)
    error_help = "a failure ends the search (default), or ranks last (default for programs)"
    add("--on-error", choices=("raise", "penalize"), help=error_help)


def _add_output(group: Any) -> None:
    quiet_help = "show no progress, only the result and the folder"
    group.add_argument("--quiet", action="store_true", help=quiet_help)
    group.add_argument("--no-plot", action="store_true", help="do not draw plot.png at the end")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def number(text: str) -> float:
    """Return an int for a whole number, such as 1e6, and a float for any other number."""
    try:
        return int(text)
    except ValueError:
        value = float(text)
    return int(value) if value.is_integer() else value


# === The commands ===


def run(parsed: argparse.Namespace) -> int:
    """Minimize a Python function, or the number that an external program prints.

    The flags have the names of the arguments of fmnes.minimize. There are none for args, callback,
    history_size and stopping: call fmnes.minimize to use these. The run is kept in a folder:
    config.json, history.csv, the checkpoint, result.json and plot.png. Ctrl-C and SIGTERM end the
    search and keep its result so far.
    """
    options = RunOptions.from_arguments(parsed)
    summary = _checked(options, parsed)
    folder = Folder.new(parsed.out, options)
    with folder.claimed("--out"):
        folder.check_new()
        return _search(folder, options, summary, parsed)


def resume(parsed: argparse.Namespace) -> int:
    """Continue a run that was interrupted, killed, or had ended.

    The flags replace those of the run.
    """
    folder = Folder(Path(parsed.dir).absolute())
    folder.read_options()  # first: only the folder of a run is to be locked
    with folder.claimed("DIR"):
        options = folder.read_options()
        names = ("ftarget", "maxfevals", "maxiter", "timeout", "workers")
        new = {name: value for name, value in vars(parsed).items() if name in names}
        changes = {name: value for name, value in new.items() if value is not None}
        options = dataclasses.replace(options, **changes)
        try:
            os.chdir(options.cwd)
        except OSError as error:
            raise UsageError(
                f"DIR: expected a run whose working directory exists, got {options.cwd} ({error})"
            ) from None
        return _search(folder, options, _checked(options, parsed), parsed)


def _checked(options: RunOptions, parsed: argparse.Namespace) -> str:
    """Check the options before anything is written; return a summary of the search."""
    if options.cwd not in sys.path:
        sys.path.insert(0, options.cwd)
    with in_one_line(debug=parsed.debug):  # the user's module is imported
        options.objective(Path())
        constraints = options.constraints_of_search()
    options.evaluator()
    with warnings.catch_warnings(record=True) as caught, arguments_as_flags():
        warnings.simplefilter("always", fmnes.PopsizeWarning)
        search = options.search()
        start = read_start(**search, with_x0=True)
        constraints_from(constraints, read_point(search["x0"], start.setup), start.setup.space)
    for warning in caught:
        print_err(f"fmnes: {warning.message}")
    return f"{start.setup.method}, dim {start.setup.mean.shape[0]}, popsize {start.popsize}"


def _search(folder: Folder, options: RunOptions, summary: str, parsed: argparse.Namespace) -> int:
    """Run the search in a folder that this process has claimed, and write the result."""
    shown = folder.shown
    folder.begin(options)
    if not parsed.quiet:
        print_err(f"{options.title}: {summary}, rng {options.rng}; in {shown}")
    with in_one_line(debug=parsed.debug, run=shown):
        result = _minimized(folder, options, progress=not parsed.quiet)
    trouble = None
    try:
        folder.end(result)
    except OSError as error:
        trouble = f"{shown}/result.json was not written ({error.strerror}); it is printed above"
    _show(result, shown)
    if trouble is not None:
        print_out(result_json(result))
        raise CommandError(trouble)
    if not parsed.no_plot and len(result.history):
        try:
            fmnes.plot(result).savefig(folder.plot, dpi=150)
        except (ImportError, OSError) as error:
            print_err(f"fmnes: no plot.png ({error})")
    return _EXIT.get(result.status, 0)


def _minimized(folder: Folder, options: RunOptions, *, progress: bool) -> Result:
    """Return the result of the search, whose course is recorded in the folder."""
    evaluator = options.evaluator()
    with (
        logged(folder.log),
        evaluator or contextlib.nullcontext(),
        contextlib.closing(Recorder(folder)) as recorder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", fmnes.PopsizeWarning)  # `_checked` has shown it
        result = fmnes.minimize(
            options.objective(folder.evaluations),
            **options.search(),
            constraints=options.constraints_of_search(),
            restarts=arguments.restarts(options.restarts),
            vectorized=options.vectorized,
            workers=evaluator,
            callback=recorder,
            progress=progress,
            checkpoint=folder.checkpoint(options),
        )
        recorder.finish(result)
    return result


def _show(result: Result, shown: str) -> None:
    """Print the Result, the folder, the first error, and how to continue or to start again."""
    print_out(f"{result}\n{'folder':>9}: {shown}")
    if result.first_error is not None:
        summary = error_summary(result.first_error)
        print_err(f"first failure: {summary} (all of it: {shown}/first_error.txt)")
    if result.status in (Status.INTERRUPTED, Status.TERMINATED):
        print_err(f"fmnes resume {shown} continues the run")
    elif result.status == Status.INFEASIBLE:
        print_err(
            f"fmnes resume {shown} would evaluate nothing again: after a correction, start a new "
            "run in another folder"
        )
