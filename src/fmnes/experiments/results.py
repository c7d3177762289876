"""The rows of `fmnes paper`: comma-separated values in a `log`, one line per trial."""

import csv
import io
from pathlib import Path
from typing import NamedTuple

from fmnes import _checks as checks
from fmnes.benchmarking.lines import PathLike, read_lines
from fmnes.experiments.protocol import Trial
from fmnes.problems import PROBLEMS


class TrialResult(NamedTuple):
    """A trial and its result."""

    trial: Trial
    seed: int
    evaluations: int
    success: bool
    value: float  # the best
    seconds: float
    versions: str  # of Python and the packages involved; for times also the processor

    def to_line(self) -> str:
        """Return the fields as text that gives the same numbers back."""
        numbers = self.seed, self.evaluations, int(self.success), self.value, f"{self.seconds:.6g}"
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([*self.trial, *numbers, self.versions])
        return text.getvalue()

    @classmethod
    def from_fields(cls, fields: list[str]) -> "TrialResult":
        """Return the row whose line has these fields."""
        experiment, function, dim, popsize, method, variant, trial, *outcome = fields
        seed, evaluations, success, value, seconds, versions = outcome
        checks.choice("experiment", experiment, ("evaluations", "time"))
        checks.choice("function", function, list(PROBLEMS))
        checks.choice("success", success, ("0", "1"))
        return cls(
            Trial(experiment, function, int(dim), int(popsize), method, variant, int(trial)),
            int(seed),
            int(evaluations),
            success == "1",
            float(value),
            float(seconds),
            versions,
        )


HEADER = ",".join([*Trial._fields, *TrialResult._fields[1:]]) + "\n"


def read(path: PathLike) -> dict[Trial, TrialResult]:
    """Return all rows of a file by trial; none if there is no such file."""
    rows: dict[Trial, TrialResult] = {}
    for number, fields in enumerate(csv.reader(read_lines(path, HEADER)), start=2):
        try:
            row = TrialResult.from_fields(fields)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: expected a trial, got {fields} ({error})"
            ) from error
        if row.trial in rows:
            raise ValueError(f"{path}, line {number}: expected each trial once, got {row.trial}")
        rows[row.trial] = row
    return rows


def read_some(path: PathLike) -> dict[Trial, TrialResult]:
    """Return all rows of a file that has at least one."""
    rows = read(path)
    if not rows:
        got = "none" if Path(path).exists() else "no such file (`fmnes paper run` writes it)"
        raise ValueError(f"{path}: expected at least one trial, got {got}")
    return rows
