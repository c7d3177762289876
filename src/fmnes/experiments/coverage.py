"""What was run and what was not, in words and as a table of counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from fmnes.experiments import protocol
from fmnes.experiments.names import name_of
from fmnes.experiments.protocol import EXPERIMENTS, Trial

Rows = Mapping[Trial, Any]


def sentences(rows: Rows) -> Iterator[str]:
    """One for the time, one for each dimension, and one for what a user put beside."""
    yield _about("d = 10 to 100", rows, {"time": _trials("time")})
    every = {name: _trials(name) for name in EXPERIMENTS if name != "time"}
    for dim in sorted({trial.dim for trials in every.values() for trial in trials}):
        here = {
            name: [trial for trial in trials if trial.dim == dim] for name, trials in every.items()
        }
        yield _about(f"d = {dim}", rows, {name: trials for name, trials in here.items() if trials})
    beside = rows.keys() - {*protocol.trials_of(EXPERIMENTS, protocol.full)}
    if beside:
        yield f"Beside the protocol: {_solvers(beside)}."


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
    """Trials of a solver at each population size in turn, by function; and who has none at all."""
    by_function = [(_sizes(trials, rows, function), function) for function in _functions(trials)]
    said = [
        f"{', '.join(function for _, function in same)} {sizes}"
        for sizes, same in groupby(by_function, key=lambda one: one[0])
    ]
    none = {trial.solver for trial in trials} - {trial.solver for trial in trials if trial in rows}
    if none:
        said.append("none of " + ", ".join(f"“{name}”" for name in sorted(map(name_of, none))))
    return "; ".join(said)


def _solvers(trials: Iterable[Trial]) -> str:
    """How many each has."""
    count = Counter(name_of(trial.solver) for trial in trials)
    return ", ".join(f"{name} {number} trials" for name, number in sorted(count.items()))


def _functions(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(trial.function for trial in trials))


def _sizes(trials: Sequence[Trial], rows: Rows, function: str) -> str:
    """How many trials each solver has, and at which population sizes; 1-3: not all the same.

    Those that measure time have one size, and many dimensions.
    """
    here = [trial for trial in trials if trial.function == function]
    field, sign = ("dim", "d") if here[0].experiment == "time" else ("popsize", "λ")
    wanted = Counter((getattr(trial, field), trial.solver) for trial in here)
    ran = Counter((getattr(trial, field), trial.solver) for trial in here if trial in rows)
    said: dict[str, list[str]] = {}
    for size in sorted({size for size, _ in wanted}):
        each = [(ran[cell], wanted[cell]) for cell in wanted if cell[0] == size]
        there, asked = (_range(side) for side in zip(*each, strict=True))
        said.setdefault("none" if there == "0" else f"{there} of {asked}", []).append(str(size))
    return ", ".join(f"{much} at {sign} = {', '.join(sizes)}" for much, sizes in said.items())


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"
