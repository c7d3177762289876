"""``fmnes run`` and ``fmnes resume``: a search from the command line, in a folder of its own."""

import argparse
import contextlib
import dataclasses
import logging
import math
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fmnes
from fmnes import Result, Status
from fmnes.cli import _arguments as arguments
from fmnes.cli._config import Config
from fmnes.cli._errors import UsageError, arguments_as_flags
from fmnes.cli._folder import Folder, Recorder

_RUN = """\
Minimise a Python function, or what an external program prints. Flags are named as the arguments of
fmnes.minimize. Everything goes into a folder: config.json, history.csv, the checkpoint, result.json
and plot.png. Ctrl-C and SIGTERM end the search with its result so far.
"""
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
  fmnes run --command "python simulate.py" --x0 0 --dim 30 --sigma0 1     (numbers on its input)

files (@FILE): .npy, .json, or text with numbers separated by blanks, commas or line ends.

A program gets one number to a line, in the file that stands for {file} or on its standard input,
and prints the value on the last line of its output. A status other than 0 is a failed evaluation.

exit status: 0 ended by itself, 1 failed (an objective that raises, nothing feasible), 2 wrong
arguments, 130 ended by Ctrl-C, 143 ended by SIGTERM; `fmnes resume DIR` goes on after each of them.
"""
_RESUME_EPILOG = """\
examples:
  fmnes resume fit                       after a kill: to the bits of a run that was not disturbed
  fmnes resume fit --maxfevals 50000     with a larger budget, also when it had ended
"""
_EXIT = {
    Status.INFEASIBLE: 1,
    Status.INTERRUPTED: 130,
    Status.TERMINATED: 143,
}


def add_commands(commands: Any) -> None:
    """Add `run` and `resume` to the commands of the command line."""
    command = commands.add_parser(
        "run",
        help="minimise a function or a program",
        usage=_RUN_USAGE,
        description=_RUN,
        epilog=_RUN_EPILOG,
    )
    command.set_defaults(run=run, name="run")
    command.add_argument("function", nargs="?", metavar="package.module:function")
    command.add_argument("--command", metavar="PROGRAM", help='or a program: "simulate {file}"')
    _add_search(command.add_argument_group("the search"))
    _add_budget(command.add_argument_group("when to end"))
    _add_evaluation(command.add_argument_group("evaluations"))
    group = command.add_argument_group("output")
    group.add_argument("--out", metavar="DIR", help="folder of the run (default: a new one here)")
    group.add_argument(
        "--checkpoint", metavar="FILE", help="where the search is kept (default: in DIR)"
    )
    _add_output(group)

    command = commands.add_parser(
        "resume",
        help="go on with a run",
        description="Go on with the run in DIR, whatever ended it.",
        epilog=_RESUME_EPILOG,
    )
    command.set_defaults(run=resume, name="resume")
    command.add_argument("dir", metavar="DIR")
    _add_budget(command)
    command.add_argument("--workers", type=int, metavar="N", help="evaluate in N processes")
    _add_output(command)


def _add_search(group: Any) -> None:
    group.add_argument(
        "--x0", nargs="+", required=True, metavar="X", help="start: numbers, or @FILE"
    )
    group.add_argument("--dim", type=_positive, metavar="D", help="number of variables, with one X")
    group.add_argument(
        "--sigma0", nargs="+", required=True, metavar="S", help="initial deviation: one, or D"
    )
    group.add_argument("--bounds", nargs="+", metavar="B", help="low high, for all; or @FILE")
    group.add_argument("--method", default="cr-fm-nes", help="see `fmnes methods` (%(default)s)")
    group.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the method"
    )
    group.add_argument("--popsize", type=int, metavar="N", help="candidates per generation")
    group.add_argument("--restarts", default="0", metavar="N", help="IPOP; bipop:N (%(default)s)")
    group.add_argument("--rng", type=int, metavar="SEED", help="another one each time by default")


def _add_budget(group: Any) -> None:
    group.add_argument("--ftarget", type=float, metavar="F", help="a value that is good enough")
    group.add_argument("--maxfevals", type=_whole, metavar="N", help="evaluations, 1e5 for example")
    group.add_argument("--maxiter", type=_whole, metavar="N", help="generations of each run")
    group.add_argument("--timeout", type=float, metavar="SECONDS", help="of the whole search")


def _add_evaluation(group: Any) -> None:
    group.add_argument(
        "--vectorized", action="store_true", help="the function takes a whole (popsize, D) array"
    )
    group.add_argument("--workers", type=int, metavar="N", help="evaluate in N processes")
    group.add_argument(
        "--evaluation-timeout",
        type=_seconds,
        metavar="SECONDS",
        help="then an evaluation is killed",
    )
    group.add_argument(
        "--retries", type=int, default=0, metavar="N", help="attempts after a failure (%(default)s)"
    )
    group.add_argument(
        "--on-error",
        choices=("raise", "penalize"),
        help="a failure ends the search, or ranks last (default for programs)",
    )


def _add_output(group: Any) -> None:
    group.add_argument("--quiet", action="store_true", help="show no progress")
    group.add_argument("--no-plot", action="store_true", help="draw no plot.png at the end")
    group.add_argument("--debug", action="store_true", help="show tracebacks of what goes wrong")


def _whole(text: str) -> int:
    """1e6 is welcome."""
    try:
        number = float(text)
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return int(number)


def _positive(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number >= 1, got {text!r}")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds > 0, got {text!r}")
    return number


def run(options: argparse.Namespace) -> int:
    """A new run."""
    options.hint = "--debug shows where"  # whatever the user's module raises when it is imported
    config = Config.from_options(options)
    return _search(Folder.new(options.out, config), config, options)


def resume(options: argparse.Namespace) -> int:
    """Go on with a run, with what is new about its budget."""
    options.hint = "--debug shows where"
    folder = Folder(Path(options.dir).absolute())
    config = Config.read(folder.config)
    if folder.is_running(config):
        raise UsageError(f"DIR: expected a run that nobody is at work on, got {options.dir}")
    names = ("ftarget", "maxfevals", "maxiter", "timeout", "workers")
    new = {name: getattr(options, name) for name in names}
    changes: dict[str, Any] = {name: value for name, value in new.items() if value is not None}
    config = dataclasses.replace(config, **changes)
    try:
        os.chdir(config.cwd)
    except OSError as error:
        raise UsageError(
            f"DIR: expected a run whose working directory is there, got {config.cwd} "
            f"({error.strerror})"
        ) from None
    return _search(folder, config, options)


def _search(folder: Folder, config: Config, options: argparse.Namespace) -> int:
    """Check, search, and write down what came out."""
    if config.cwd not in sys.path:
        sys.path.insert(0, config.cwd)
    fun, evaluator = config.objective(folder.evaluations), config.evaluator()
    search = config.search()
    summary = _checked(search)
    shown = os.path.relpath(folder.path)
    folder.begin(config)
    options.hint = f"--debug shows where; fmnes resume {shown} goes on"
    if not options.quiet:
        print(f"{config.title}: {summary}, rng {config.rng}; in {shown}", file=sys.stderr)
    with (
        _logged(folder.log),
        evaluator or contextlib.nullcontext(),
        Recorder(folder) as recorder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", fmnes.PopsizeWarning)  # `_checked` has told it
        result = fmnes.minimize(
            fun,
            **search,
            restarts=arguments.restarts(config.restarts),
            vectorized=config.vectorized,
            workers=evaluator,
            callback=recorder,
            progress=not options.quiet,
            checkpoint=folder.checkpoint(config),
        )
        recorder.finish(result)
    folder.end(result)
    _tell(result, shown)
    if not options.no_plot:
        _draw(result, folder)
    return _EXIT.get(result.status, 0)


def _checked(search: dict[str, Any]) -> str:
    """Everything about the search that can be wrong is, before there is a folder; a summary."""
    with warnings.catch_warnings(record=True) as caught, arguments_as_flags():
        warnings.simplefilter("always", fmnes.PopsizeWarning)
        opt = fmnes.Optimizer(**search)
    for warning in caught:
        print(f"fmnes: {warning.message}", file=sys.stderr)
    return f"{opt.setup.method}, dim {opt.dim}, popsize {opt.popsize}"


def _tell(result: Result, shown: str) -> None:
    """The Result, and what is wrong with it."""
    print(result)
    sys.stdout.flush()
    if result.first_error is not None:
        last = result.first_error.strip().splitlines()[-1]
        print(f"first failure: {last} (all of it: {shown}/first_error.txt)", file=sys.stderr)
    if result.status in (Status.INTERRUPTED, Status.TERMINATED):
        print(f"fmnes resume {shown} goes on", file=sys.stderr)


def _draw(result: Result, folder: Folder) -> None:
    if len(result.history):
        try:
            fmnes.plot(result).savefig(folder.plot, dpi=150)
        except ImportError as error:
            print(f"fmnes: no plot.png ({error})", file=sys.stderr)


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Messages go to the log of the run, and warnings to the terminal, each kind of them once."""
    logger = logging.getLogger("fmnes")
    file, terminal = logging.FileHandler(path), logging.StreamHandler()
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    terminal.setFormatter(logging.Formatter(f"fmnes: %(message)s (further ones: {path.name})"))
    terminal.setLevel(logging.WARNING)
    terminal.addFilter(_Once())
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


class _Once(logging.Filter):
    """Lets the first message of each kind pass: a worker may be killed a thousand times."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        is_new = record.msg not in self._seen
        self._seen.add(record.msg)
        return is_new
