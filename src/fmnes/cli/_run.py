"""``fmnes run`` and ``fmnes resume``: a search from the command line, in a folder of its own."""

import argparse
import contextlib
import dataclasses
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fmnes
from fmnes import Result, Status
from fmnes._start import read_start
from fmnes.cli import _arguments as arguments
from fmnes.cli._command import add_command
from fmnes.cli._errors import UsageError, arguments_as_flags, in_one_line
from fmnes.cli._folder import Folder
from fmnes.cli._options import RunOptions
from fmnes.cli._recorder import Recorder

_RUN_USAGE = """\
fmnes run package.module:function --x0 X [X ...] --sigma0 S [S ...] [options]
       fmnes run --command PROGRAM --x0 X [X ...] --sigma0 S [S ...] [options]"""
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
output. An exit status other than 0 counts as a failed evaluation.

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
    add("--x0", nargs="+", required=True, metavar="X", help="initial mean: numbers, or @FILE")
    add("--dim", type=number, metavar="D", help="number of variables, if X is one number for all")
    sigma0_help = "initial standard deviation: one number, D numbers, or @FILE"
    add("--sigma0", nargs="+", required=True, metavar="S", help=sigma0_help)
    bounds_help = "LOW HIGH for all variables (inf for no bound), or @FILE with a pair for each"
    add("--bounds", nargs="+", metavar="B", help=bounds_help)
    add("--method", default="cr-fm-nes", help="one of `fmnes methods` (default: %(default)s)")
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
    timeout_help = "kill an evaluation that takes longer, and count it as failed"
    add("--evaluation-timeout", type=float, metavar="SECONDS", help=timeout_help)
    retries_help = "further attempts after a failed evaluation (default: 0)"
    add("--retries", type=number, default=0, metavar="N", help=retries_help)
    error_help = "a failure ends the search (default), or ranks last (default for programs)"
    add("--on-error", choices=("raise", "penalize"), help=error_help)


def _add_output(group: Any) -> None:
    group.add_argument("--quiet", action="store_true", help="show no progress")
    group.add_argument("--no-plot", action="store_true", help="do not draw plot.png at the end")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def number(text: str) -> float:  # argparse shows the name in its errors: "invalid number value"
    """Return an int for a whole number, such as 1e6, and a float for any other number."""
    try:
        return int(text)
    except ValueError:
        value = float(text)
    return int(value) if value.is_integer() else value


# === The commands ===


def run(parsed: argparse.Namespace) -> int:
    """Minimise a Python function, or the number that an external program prints.

    The flags are the arguments of fmnes.minimize. The run is kept in a folder: config.json,
    history.csv, the checkpoint, result.json and plot.png. Ctrl-C and SIGTERM end the search and
    keep its result so far.
    """
    options = RunOptions.from_arguments(parsed)
    return _search(Folder.new(parsed.out, options), options, parsed)


def resume(parsed: argparse.Namespace) -> int:
    """Continue a run that was interrupted, killed, or had ended.

    The flags replace those of the run.
    """
    folder = Folder(Path(parsed.dir).absolute())
    options = folder.read_options()
    if folder.is_running(options):
        raise UsageError(f"DIR: expected a run that no process is working on, got {parsed.dir}")
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
    return _search(folder, options, parsed)


def _search(folder: Folder, options: RunOptions, parsed: argparse.Namespace) -> int:
    """Check the options, run the search, and write the result."""
    if options.cwd not in sys.path:
        sys.path.insert(0, options.cwd)
    with in_one_line("--debug shows where", debug=parsed.debug):  # the user's module is imported
        objective = options.objective(folder.evaluations)
    evaluator, search = options.evaluator(), options.search()
    summary = _checked(search)
    shown = os.path.relpath(folder.path)
    folder.begin(options)
    if not parsed.quiet:
        print(f"{options.title}: {summary}, rng {options.rng}; in {shown}", file=sys.stderr)
    with (
        in_one_line(f"--debug shows where; fmnes resume {shown} continues", debug=parsed.debug),
        _logged(folder.log),
        evaluator or contextlib.nullcontext(),
        contextlib.closing(Recorder(folder)) as recorder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", fmnes.PopsizeWarning)  # `_checked` has shown it
        result = fmnes.minimize(
            objective,
            **search,
            restarts=arguments.restarts(options.restarts),
            vectorized=options.vectorized,
            workers=evaluator,
            callback=recorder,
            progress=not parsed.quiet,
            checkpoint=folder.checkpoint(options),
        )
        recorder.finish(result)
    folder.end(result)
    _show(result, shown)
    if not parsed.no_plot and len(result.history):
        try:
            fmnes.plot(result).savefig(folder.plot, dpi=150)
        except ImportError as error:
            print(f"fmnes: no plot.png ({error})", file=sys.stderr)
    return _EXIT.get(result.status, 0)


def _checked(search: dict[str, Any]) -> str:
    """Check the arguments of the search before the folder is made; return a summary of them."""
    with warnings.catch_warnings(record=True) as caught, arguments_as_flags():
        warnings.simplefilter("always", fmnes.PopsizeWarning)
        start = read_start(**search)
    for warning in caught:
        print(f"fmnes: {warning.message}", file=sys.stderr)
    return f"{start.setup.method}, dim {start.setup.mean.shape[0]}, popsize {start.popsize}"


def _show(result: Result, shown: str) -> None:
    """Print the Result, the first error, and how to continue an interrupted run."""
    print(result, flush=True)
    if result.first_error is not None:
        last = result.first_error.strip().splitlines()[-1]
        print(f"first failure: {last} (all of it: {shown}/first_error.txt)", file=sys.stderr)
    if result.status in (Status.INTERRUPTED, Status.TERMINATED):
        print(f"fmnes resume {shown} continues the run", file=sys.stderr)


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Write messages to the log of the run, and warnings to the terminal, each kind once."""
    logger = logging.getLogger("fmnes")
    file, terminal = logging.FileHandler(path), logging.StreamHandler()
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    terminal.setFormatter(logging.Formatter(f"fmnes: %(message)s (further ones: {path.name})"))
    terminal.setLevel(logging.WARNING)
    shown: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:  # a worker may be killed a thousand times
        known = record.msg in shown
        shown.add(record.msg)
        return not known

    terminal.addFilter(is_new)
    before = logger.level
    logger.setLevel(logging.INFO)
    for handler in (file, terminal):
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        for handler in (file, terminal):
            logger.removeHandler(handler)
            handler.close()
