"""What was run and what was not, in words and as a table of counts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from fmnes.experiments import protocol
from fmnes.experiments.protocol import EXPERIMENTS, Trial

Rows = Mapping[Trial, Any]


def sentences(rows: Rows) -> Iterator[str]:
    """One for the time, and one for each dimension."""
    yield _about("d = 10 to 100", rows, {"time": _trials("time")})
    every = {name: _trials(name) for name in EXPERIMENTS if name != "time"}
    for dim in sorted({trial.dim for trials in every.values() for trial in trials}):
        here = {
            name: [trial for trial in trials if trial.dim == dim] for name, trials in every.items()
        }
        yield _about(f"d = {dim}", rows, {name: trials for name, trials in here.items() if trials})


def counts(rows: Rows) -> Iterator[tuple[str, str, int, int]]:
    """Experiment, dimensions, how many of its trials were run, and how many it has."""
    for name in EXPERIMENTS:
        trials = _trials(name)
        dims = sorted({trial.dim for trial in trials})
        for group in [dims] if name == "time" else [[dim] for dim in dims]:
            wanted = [trial for trial in trials if trial.dim in group]
            label = f"{group[0]} to {group[-1]}" if len(group) > 1 else str(group[0])
            yield name, label, _ran(wanted, rows), len(wanted)


def _trials(name: str) -> list[Trial]:
    return protocol.trials_of([name], protocol.full)


def _ran(trials: Sequence[Trial], rows: Rows) -> int:
    return sum(trial in rows for trial in trials)


def _about(what: str, rows: Rows, experiments: Mapping[str, Sequence[Trial]]) -> str:
    """Which experiments are complete, which are not there, and what there is of the others."""
    whole, none, parts = [], [], []
    for name, trials in experiments.items():
        ran = _ran(trials, rows)
        if ran == len(trials):
            whole.append(name)
        elif ran == 0:
            none.append(name)
        else:
            parts.append(f"{name} in part ({ran} of {len(trials)} trials: {_part(trials, rows)})")
    said = [f"{', '.join(whole)} complete"] * bool(whole) + parts
    said += [f"{', '.join(none)} not run"] * bool(none)
    return f"{what}: {'; '.join(said)}."


def _part(trials: Sequence[Trial], rows: Rows) -> str:
    """Trials of a solver at each population size in turn, by function."""
    by_function = [(_sizes(trials, rows, function), function) for function in _functions(trials)]
    return "; ".join(
        f"{', '.join(function for _, function in same)} {sizes}"
        for sizes, same in groupby(by_function, key=lambda one: one[0])
    )


def _functions(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(trial.function for trial in trials))


def _sizes(trials: Sequence[Trial], rows: Rows, function: str) -> str:
    """How many trials each solver has, and at which population sizes; 1-3: not all the same."""
    here = [trial for trial in trials if trial.function == function]
    wanted = Counter((trial.popsize, trial.solver) for trial in here)
    ran = Counter((trial.popsize, trial.solver) for trial in here if trial in rows)
    said: dict[str, list[str]] = {}
    for popsize in sorted({popsize for popsize, _ in wanted}):
        each = [(ran[cell], wanted[cell]) for cell in wanted if cell[0] == popsize]
        there, asked = (_range(side) for side in zip(*each, strict=True))
        said.setdefault("none" if there == "0" else f"{there} of {asked}", []).append(str(popsize))
    return ", ".join(f"{much} at λ = {', '.join(sizes)}" for much, sizes in said.items())


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"
