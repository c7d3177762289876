"""Trials in parallel processes: those not in the results yet, or some of those that are, again."""

import math
import platform
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import fmnes
from fmnes import kernels
from fmnes.experiments import extras
from fmnes.experiments.processes import pool
from fmnes.experiments.protocol import Trial, expected_seconds
from fmnes.experiments.results import Appender, Row, read, read_some
from fmnes.experiments.solvers import PACKAGES, solve

EVERY = 60.0  # seconds between lines of progress


def run_trial(trial: Trial) -> Row:
    """One trial; in a process of `pool` it gives the same number wherever it is run."""
    begun = time.perf_counter()
    outcome = solve(trial)
    seconds = time.perf_counter() - begun
    return Row(
        trial,
        trial.seed,
        outcome.evaluations,
        outcome.value <= trial.ftarget,
        outcome.value,
        seconds,
        _versions(trial),
    )


def _versions(trial: Trial) -> str:
    packages = ["numpy", *([PACKAGES[trial.solver]] if trial.solver in PACKAGES else [])]
    return "; ".join(
        [
            f"fmnes {fmnes.__version__} {kernels.in_use}",
            *(f"{name} {version(name)}" for name in packages),
            f"python {platform.python_version()}",
            *([_processor()] if trial.experiment == "time" else []),
        ]
    )


def _processor() -> str:
    """Its name, without which seconds say little."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.+)$", info.read_text(), re.M) if info.exists() else None
    return named[1] if named else platform.processor()


def run(trials: Iterable[Trial], path: Path, workers: int) -> int:
    """Run the trials that the file lacks, and add them to it; how many were run.

    Those that measure time come last, one at a time, so that no other trial disturbs them.
    """
    with Appender(path) as results:  # locked before it is read: no trial can be there twice
        done = read(path)
        missing = [trial for trial in trials if trial not in done]
        _require_packages(missing)
        with _Bar(missing) as bar:
            for timed, at_once in ((False, workers), (True, 1)):
                batch = [trial for trial in missing if (trial.experiment == "time") == timed]
                for row in _rows(batch, at_once):
                    results.add([row])
                    bar.update(row)
    return len(missing)


def _require_packages(trials: Iterable[Trial]) -> None:
    """Those of all trials: nobody wants to hear of one after hours."""
    needed = {PACKAGES[trial.solver] for trial in trials if trial.solver in PACKAGES}
    extras.require("paper", *sorted(needed))


def _rows(trials: list[Trial], workers: int) -> Iterator[Row]:
    """The rows of the trials, as they come; the longest ones are started first."""
    if not trials:
        return
    with pool(min(workers, len(trials))) as executor:
        ordered = sorted(trials, key=expected_seconds, reverse=True)
        trial_of = {executor.submit(run_trial, trial): trial for trial in ordered}
        pending = set(trial_of)
        while pending:
            ended, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                error = future.exception()
                if error is not None:
                    raise _failure(trial_of[future], error) from error
                yield future.result()


def _failure(trial: Trial, error: BaseException) -> RuntimeError:
    """What to say of a trial that did not end; of a user's solver, most likely."""
    if isinstance(error, BrokenExecutor):
        return RuntimeError(
            "a process that ran a trial was killed; what had ended is in the file, run again to "
            "go on"
        )
    return RuntimeError(f"{trial}: {type(error).__name__}: {error}")


class Difference(NamedTuple):
    """A row that did not come out the same when it was run again."""

    kept: Row
    again: Row


class Verified(NamedTuple):
    """How many rows were run again, and those that differ."""

    rows: int
    differences: list[Difference]


def verify(path: Path, count: int, workers: int, below: float, seed: int | None = None) -> Verified:
    """Run rows of a file again, chosen at random among those that took less than ``below`` seconds.

    Rows that measure time are left out: they cannot come out the same.
    """
    every = read_some(path).values()
    rows = [row for row in every if row.trial.experiment != "time"]
    if not rows:
        raise ValueError(
            f"{path}: expected a trial that measures no time, got {len(every)} that do"
        )
    short = [row for row in rows if row.seconds < below]
    if not short:
        least = min(row.seconds for row in rows)
        raise ValueError(
            f"--below: expected more than the {least:.3g} s of the shortest trial in {path}, "
            f"got {below:g}"
        )
    chosen = random.Random(seed).sample(short, min(count, len(short)))
    kept = {row.trial: row for row in chosen}
    _require_packages(kept)
    differences = []
    with _Bar(list(kept)) as bar:
        for again in _rows(list(kept), workers):
            bar.update(again)
            if not _same(kept[again.trial], again):
                differences.append(Difference(kept[again.trial], again))
    return Verified(len(kept), differences)


def _same(a: Row, b: Row) -> bool:
    """All but the seconds and the versions; not a number is the same as not a number."""
    value = a.value == b.value or (math.isnan(a.value) and math.isnan(b.value))
    return value and a[:4] == b[:4]


class _Bar:
    """Progress on standard error, by expected work, so that the time left means something.

    A line a minute where that is no terminal, or tqdm is not there.
    """

    def __init__(self, trials: list[Trial]) -> None:
        self._bar: Any = None
        self._ended, self._trials = 0, len(trials)
        self._work, self._total = 0.0, sum(map(expected_seconds, trials))
        self._begun = self._said = time.monotonic()
        if trials and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            form = "{percentage:3.0f}% |{bar}| {elapsed}, about {remaining} left, {postfix}"
            self._bar = tqdm(total=self._total, bar_format=form, dynamic_ncols=True)

    def update(self, row: Row) -> None:
        """One more has ended."""
        self._ended += 1
        self._work += expected_seconds(row.trial)
        said = f"{self._ended} of {self._trials} trials"
        if self._bar is not None:
            self._bar.set_postfix_str(said, refresh=False)
            self._bar.update(expected_seconds(row.trial))
        elif time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            left = (self._said - self._begun) * (self._total / self._work - 1)
            print(f"{said}, about {left / 60:.0f} minutes left", file=sys.stderr, flush=True)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._bar is not None:
            self._bar.close()
