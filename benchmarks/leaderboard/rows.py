"""The stored trials: one line of JSON each, in a file for each suite that only grows."""

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import row_files
from fmnes.benchmarking.processes import run_all, with_progress
from leaderboard.opponents import quiet
from leaderboard.suites import SUITES
from leaderboard.trials import Suite, Trial, row_of
from row_files import Row

FOLDER = Path(__file__).parents[1] / "results/leaderboard"
OF_THE_MACHINE = ("seconds", "versions")  # what may differ when a trial is run again
Task = tuple[Trial, bool]  # to run again; true: as the other benchmark did that has stored it
Stored = Mapping[str, Sequence[Row]]  # the rows of each suite
FIELDS = (*Trial._fields, "evaluations", "best", *OF_THE_MACHINE)  # and hits, or a curve


def trial_of(row: Row) -> Trial:
    """Return the trial of a row."""
    return Trial(*(row[name] for name in Trial._fields))


def stored(suite: str, folder: Path = FOLDER) -> list[Row]:
    """Return the rows of a suite in its file."""
    return row_files.read(_file(suite, folder), FIELDS)


def _file(suite: str, folder: Path) -> Path:
    return folder / f"{suite}.jsonl"


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


def run_again(task: Task) -> Row:
    """Run a trial in this process as it was run for the stored row."""
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
    forgotten = set(trials)
    for name in {trial.suite for trial in trials}:
        row_files.keep(_file(name, folder), lambda row: trial_of(row) not in forgotten)


def run(trials: Sequence[Trial], workers: int, folder: Path = FOLDER) -> int:
    """Run the trials that are not stored yet, and return how many; failures are not stored."""
    count = 0
    for name in SUITES:
        asked = [trial for trial in trials if trial.suite == name]
        if not asked:
            continue
        with row_files.appending(_file(name, folder)) as append:
            done = {trial_of(row) for row in all_rows(SUITES[name], folder)}
            todo = [trial for trial in dict.fromkeys(asked) if trial not in done]
            ended = run_all(run_one, todo, workers)
            for trial, row in with_progress(ended, todo, lambda trial: trial.budget):
                if "error" in row:
                    print(f"failed: {' '.join(map(str, trial))}: {row['error']}", file=sys.stderr)
                else:
                    append(row)
                    count += 1
    return count


def sample(
    suites: Iterable[str], wanted: Callable[[Row], bool], count: int, seed: int, folder: Path
) -> dict[Task, Row]:
    """Return some of the wanted rows, which a seed chooses, by what has to be run again.

    Rows of other benchmarks are among them, as those in the archives of `fmnes coco`.
    """
    found = []
    for name in suites:
        own = stored(name, folder)
        found += [((trial_of(row), False), row) for row in own if wanted(row)]
        others = _of_others(SUITES[name], own)
        found += [((trial_of(row), True), row) for row in others if wanted(row)]
    return dict(random.Random(seed).sample(found, min(count, len(found))))


def verify(kept: dict[Task, Row], workers: int, say: Callable[[str], None]) -> int:
    """Run rows again, and return how many came out differently."""
    different = 0
    for task, again in run_all(run_again, list(kept), workers):
        row = kept[task]
        wrong = differences(row, again)
        different += bool(wrong)
        say(f"{'DIFFERENT' if wrong else 'the same '}  {' '.join(map(str, task[0]))}")
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
