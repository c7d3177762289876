"""Trials in parallel processes: those that the results lack, or some that they have, once more."""

import math
import platform
import random
import re
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from fmnes import _checks as checks
from fmnes import kernels
from fmnes._version import __version__
from fmnes.benchmarking import lines
from fmnes.benchmarking.packages import require
from fmnes.benchmarking.processes import run_all, with_progress
from fmnes.experiments.protocol import Trial, expected_seconds
from fmnes.experiments.results import HEADER, TrialResult, read, read_some
from fmnes.experiments.solvers import PACKAGES, solve


def run_trial(trial: Trial) -> TrialResult:
    """Run one trial; the processes of `run_all` give the same result on every machine."""
    begun = time.perf_counter()
    evaluations, value = solve(trial)
    seconds = time.perf_counter() - begun
    success = value <= trial.ftarget
    return TrialResult(trial, trial.seed, evaluations, success, value, seconds, _versions(trial))


def _versions(trial: Trial) -> str:
    packages = ["numpy", *([PACKAGES[trial.solver]] if trial.solver in PACKAGES else [])]
    return "; ".join(
        [
            f"fmnes {__version__} {kernels.in_use}",
            *(f"{name} {version(name)}" for name in packages),
            f"python {platform.python_version()}",
            *([_processor()] if trial.experiment == "time" else []),
        ]
    )


def _processor() -> str:
    """Return the name of the processor, without which seconds mean little."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.+)$", info.read_text(), re.M) if info.exists() else None
    return named[1] if named else platform.processor()


def run(trials: Iterable[Trial], path: Path, workers: int) -> int:
    """Run the trials that the file lacks, add them to it, and return their number."""
    with lines.appending(path, "results", HEADER) as append:  # locked first: no trial is run twice
        done = read(path)
        missing = [trial for trial in trials if trial not in done]
        for row in _rows(missing, workers):
            append([row.to_line()])
    return len(missing)


def _rows(trials: list[Trial], workers: int) -> Iterator[TrialResult]:
    """Yield the rows of trials as they end.

    Long trials start first. Those that measure time come last, one at a time and undisturbed.
    """
    checks.integer("--workers", workers, least=1)
    needed = {PACKAGES[trial.solver] for trial in trials if trial.solver in PACKAGES}
    require("paper", *sorted(needed))  # of all trials, now rather than after hours
    ordered = sorted(trials, key=expected_seconds, reverse=True)
    timed = [trial for trial in ordered if trial.experiment == "time"]
    others = [trial for trial in ordered if trial.experiment != "time"]
    ended = chain(run_all(run_trial, others, workers), run_all(run_trial, timed, 1))
    for _, row in with_progress(ended, ordered, expected_seconds):
        yield row


def verify(
    path: Path, count: int, workers: int, below: float, seed: int | None = None
) -> list[tuple[TrialResult, TrialResult]]:
    """Run random rows of a file again; return each with the new one.

    They are chosen among those that took less than ``below`` seconds. Rows that measure time are
    left out, because they never come out the same.
    """
    checks.integer("--rows", count, least=1)
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
    return [(kept[row.trial], row) for row in _rows(list(kept), workers)]


def same(a: TrialResult, b: TrialResult) -> bool:
    """Compare all but the seconds and the versions; NaN equals NaN."""
    value = a.value == b.value or (math.isnan(a.value) and math.isnan(b.value))
    return value and a[:4] == b[:4]
