"""The stored trials: one line of JSON each, in a file for each suite that only grows."""

import json
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fmnes._files import replacing
from fmnes.benchmarking import lines
from fmnes.benchmarking.processes import run_all, with_progress
from leaderboard.opponents import quiet
from leaderboard.suites import SUITES
from leaderboard.trials import Suite, Trial, row_of

FOLDER = Path(__file__).parents[1] / "results/leaderboard"
OF_THE_MACHINE = ("seconds", "versions")  # what may differ when a trial is run again
Row = dict[str, Any]


def trial_of(row: Row) -> Trial:
    """Return the trial of a row."""
    return Trial(*(row[name] for name in Trial._fields))


def stored(suite: str, folder: Path = FOLDER) -> list[Row]:
    """Return the rows of a suite in its file."""
    return [json.loads(line) for line in lines.read_lines(folder / f"{suite}.jsonl")]


def all_rows(suite: Suite, folder: Path = FOLDER) -> list[Row]:
    """Return the rows of a suite, those of other benchmarks too."""
    own = stored(suite.name, folder)
    return own + _of_others(suite, own)


def _of_others(suite: Suite, own: Sequence[Row]) -> list[Row]:
    known = {trial_of(row) for row in own}
    return [row for row in suite.stored() if trial_of(row) not in known]


def run_one(trial: Trial) -> Row:
    """Run a trial in this process, and return its row; of one that fails only its error."""
    return _row(trial, SUITES[trial.suite].run)


def run_again(task: tuple[Trial, bool]) -> Row:
    """Run a trial in this process; true: as the other benchmark did that has stored it."""
    trial, of_other = task
    suite = SUITES[trial.suite]
    return _row(trial, suite.run_stored if of_other else suite.run)


def _row(trial: Trial, run: Callable[[Trial], Row]) -> Row:
    quiet()
    try:
        return row_of(SUITES[trial.suite], trial, run)
    except Exception as error:  # noqa: BLE001 - other packages may raise anything
        return {"error": f"{type(error).__name__}: {error}"}


def forget(trials: Sequence[Trial], folder: Path = FOLDER) -> None:
    """Remove the rows of these trials from their files, because a solver has changed."""
    for name in {trial.suite for trial in trials}:
        kept = [row for row in stored(name, folder) if trial_of(row) not in set(trials)]
        with replacing(folder / f"{name}.jsonl") as part:
            Path(part).write_text("".join(f"{json.dumps(row)}\n" for row in kept))


def run(trials: Sequence[Trial], workers: int, folder: Path = FOLDER) -> int:
    """Run the trials that are not stored yet, and return how many; failures are not stored."""
    count = 0
    for name in SUITES:
        asked = [trial for trial in trials if trial.suite == name]
        if not asked:
            continue
        with lines.appending(folder / f"{name}.jsonl", "suite") as append:
            done = {trial_of(row) for row in all_rows(SUITES[name], folder)}
            todo = [trial for trial in dict.fromkeys(asked) if trial not in done]
            ended = run_all(run_one, todo, workers)
            for trial, row in with_progress(ended, todo, lambda trial: trial.budget):
                if "error" in row:
                    print(f"failed: {' '.join(map(str, trial))}: {row['error']}", file=sys.stderr)
                else:
                    append([json.dumps(row)])
                    count += 1
    return count


def verify(
    suites: Iterable[str],
    wanted: Callable[[Row], bool],
    count: int,
    seed: int,
    workers: int,
    folder: Path,
    say: Callable[[str], None],
) -> int:
    """Run some of the rows again, and return how many came out differently.

    Rows of other benchmarks are among them, as those in the archives of `fmnes coco`.
    """
    found = []
    for name in suites:
        own = stored(name, folder)
        found += [(row, False) for row in own if wanted(row)]
        found += [(row, True) for row in _of_others(SUITES[name], own) if wanted(row)]
    chosen = random.Random(seed).sample(found, min(count, len(found)))
    kept = {(trial_of(row), of_other): row for row, of_other in chosen}
    different = 0
    for task, again in run_all(run_again, list(kept), workers):
        row, (trial, _) = kept[task], task
        wrong = differences(row, again)
        different += bool(wrong)
        say(f"{'DIFFERENT' if wrong else 'the same '}  {' '.join(map(str, trial))}")
        if "error" in again:
            say(f"    it fails: {again['error']}")
            continue
        for name in wrong:
            say(f"    {name}: expected {_short(row[name])}, got {_short(again.get(name))}")
        if wrong and row["versions"] != again["versions"]:
            say(f"    versions: stored {row['versions']}, here {again['versions']}")
    return different


def differences(row: Row, again: Row) -> list[str]:
    """Return the names of the fields that differ; what depends on the machine is left out."""
    again = json.loads(json.dumps(again))  # tuples become lists, as in the file
    known = [name for name in row if name not in OF_THE_MACHINE and row[name] is not None]
    return [name for name in known if row[name] != again.get(name)]


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 100 else f"{text[:97]}..."
