"""What the stored trials say: running times, shares of targets, profiles and ranks.

A `Run` knows after how many evaluations it reached each of its targets (infinite: never). For
problems without known minima, `with_targets` sets 51 targets between the first value and the best
one that any solver has found.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaderboard.trials import Vector

RESAMPLES = 1000
CLOSE = 0.02  # results within two per cent count as equal
RELATIVE = 10 ** np.linspace(0, -3, 51)  # targets, as a share of (first value - best known)


class Run(NamedTuple):
    """One trial, up to the budget at which it is compared."""

    problem: str
    dim: int
    solver: str
    seed: int
    budget: int
    evaluations: int
    hits: NDArray[np.float64]  # one for each target, infinite if not reached
    best: float | None  # the best value within the budget, infinite if all failed; None: not known


def read(
    rows: Iterable[Mapping[str, Any]],
    targets: Sequence[float],
    budget_of: Callable[[str, int], int],
) -> list[Run]:
    """Return the runs of rows, each up to the budget of its problem and dimension."""
    rows = list(rows)
    runs = []
    for row in rows:
        budget = budget_of(row["problem"], row["dim"])
        hits = np.full(len(targets), np.inf)
        reached = [hit for hit in row.get("hits", ()) if hit <= budget]
        hits[: len(reached)] = reached
        runs.append(
            Run(
                *(row[name] for name in ("problem", "dim", "solver", "seed")),
                budget=budget,
                evaluations=min(row["evaluations"], budget),
                hits=hits,
                best=_best(row, budget),
            )
        )
    return runs if targets else with_targets(runs, rows)


def _best(row: Mapping[str, Any], budget: int) -> float | None:
    """Return the best value; a failed evaluation, NaN, is worse than all others."""
    if "curve" in row:
        values = [value for spent, value in row["curve"] if spent <= budget]
        return min(map(_or_infinite, values), default=math.inf)
    if row["best"] is None or row["budget"] != budget:
        return None
    return _or_infinite(row["best"])


def _or_infinite(value: float) -> float:
    return math.inf if math.isnan(value) else float(value)


def with_targets(runs: Sequence[Run], rows: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Return runs with hits of targets between the median first value and the best known."""
    first, least = defaultdict(list), defaultdict(lambda: math.inf)
    for run, row in zip(runs, rows, strict=True):
        key = run.problem, run.dim
        first[key] += [value for _, value in row["curve"] if math.isfinite(value)][:1]
        least[key] = min(least[key], math.inf if run.best is None else run.best)
    found = []
    for run, row in zip(runs, rows, strict=True):
        key = run.problem, run.dim
        if not math.isfinite(least[key]):
            raise ValueError(f"curve: expected a finite value on {run.problem}, got none")
        targets = least[key] + (float(np.median(first[key])) - least[key]) * RELATIVE
        points = [(spent, _or_infinite(value)) for spent, value in row["curve"]]
        spent, values = np.array(points, dtype=float).reshape(-1, 2).T
        reached = values[:, None] <= targets
        at = np.where(reached, spent[:, None], np.inf).min(axis=0, initial=np.inf)
        found.append(run._replace(hits=np.where(at <= run.budget, at, np.inf)))
    return found


def running_time(runs: Sequence[Run], target: int = -1) -> float:
    """Return the expected running time: evaluations of all runs over the number of successes."""
    hits = np.array([run.hits[target] for run in runs])
    solved = np.isfinite(hits)
    spent = np.where(solved, hits, [run.evaluations for run in runs])
    return float(spent.sum() / solved.sum()) if solved.any() else math.inf


def share(runs: Sequence[Run]) -> float:
    """Return the share of all pairs of a run and a target that were reached."""
    return float(np.mean([np.isfinite(run.hits) for run in runs]))


def distribution(runs: Sequence[Run], evaluations: Vector) -> Vector:
    """Return the share of pairs reached within these evaluations per variable."""
    hits = np.sort(np.concatenate([run.hits / run.dim for run in runs]))
    return np.searchsorted(hits, evaluations, side="right") / hits.size


def area(runs: Sequence[Run]) -> float:
    """Return the area under the share of targets over log evaluations, from d to the budget.

    It is 1 for a run that has reached all targets with d evaluations, and 0 for one that never
    reaches any: how much is reached, and how soon. It begins at d, because some packages evaluate
    the starting point and others do not, which would weigh heavily on a log scale; with less than
    10 d evaluations it begins at a tenth of the budget.
    """
    parts = []
    for run in runs:
        begin = min(run.dim, run.budget / 10)
        spent = np.clip(run.hits, begin, run.budget) / begin
        parts.append(np.mean(1 - np.log(spent) / np.log(run.budget / begin)))
    return float(np.mean(parts))


def profile(times: Mapping[str, Sequence[float]], factors: Vector) -> dict[str, Vector]:
    """Return the share of problems that each solver solves within factors of the best time.

    ``times`` has the time of each solver on the same problems, infinite where it fails (E. Dolan,
    J. More, Mathematical Programming 91, 2002).
    """
    table = np.array(list(times.values()), dtype=float)
    best = table.min(axis=0)
    with np.errstate(invalid="ignore"):
        ratios = np.where(np.isfinite(table), table / best, np.inf)
    shares = (ratios[:, :, None] <= factors).mean(axis=1)
    return dict(zip(times, shares, strict=True))


class Rank(NamedTuple):
    """The mean rank of a solver over problems, and its 95 % interval by the bootstrap."""

    mean: float
    low: float
    high: float


def grouped(runs: Iterable[Run]) -> dict[tuple[str, int], dict[str, list[Run]]]:
    """Return the runs by problem and dimension, then by solver."""
    groups: dict[tuple[str, int], dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        groups[run.problem, run.dim][run.solver].append(run)
    return {key: dict(group) for key, group in groups.items()}


def common(runs: Iterable[Run], solvers: Sequence[str]) -> list[dict[str, list[Run]]]:
    """Return the problems that all of the solvers ran, and their runs."""
    groups = grouped(runs).values()
    return [
        {name: group[name] for name in solvers} for group in groups if set(solvers) <= group.keys()
    ]


def ranks(problems: Sequence[Mapping[str, Sequence[Run]]]) -> dict[str, Rank]:
    """Return the mean ranks of solvers, 1 for the best, by the area of each problem.

    The bootstrap draws problems, and for each of them runs of each solver.
    """
    names = list(problems[0])
    rng = np.random.default_rng(0)
    means, drawn = [], []  # of the areas: of all runs, and of each sample
    for problem in problems:
        areas = [np.array([area([run]) for run in problem[name]]) for name in names]
        if np.isnan(np.concatenate(areas)).any():
            raise ValueError(f"problems: expected areas, got NaN on {problem[names[0]][0].problem}")
        means.append([of.mean() for of in areas])
        drawn.append([rng.choice(of, (RESAMPLES, of.size)).mean(axis=1) for of in areas])
    mean = _ranks(np.array(means)).mean(axis=0)
    sampled = _ranks(np.array(drawn).transpose(2, 0, 1))  # by sample, problem and solver
    chosen = rng.integers(len(problems), size=(RESAMPLES, len(problems)))
    samples = np.take_along_axis(sampled, chosen[:, :, None], axis=1).mean(axis=1)
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    return {n: Rank(*map(float, three)) for n, *three in zip(names, mean, low, high, strict=True)}


def _ranks(areas: Vector) -> Vector:
    """Return the ranks along the last axis, 1 for the largest; equal ones share their ranks."""
    others, mine = areas[..., None, :], areas[..., :, None]
    equal = (others == mine).sum(axis=-1) - 1
    return np.asarray(1 + (others > mine).sum(axis=-1) + equal / 2)


def medians(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles; infinite values, of runs that failed, are allowed."""
    if np.isnan(values).any():
        raise ValueError(f"values: expected no NaN, got {[*values]}")
    with np.errstate(invalid="ignore"):
        found = np.percentile(values, [25, 50, 75])
    low, middle, high = np.where(np.isnan(found), np.inf, found)  # between infinite ones
    return float(middle), float(low), float(high)


def final(runs: Sequence[Run], targets: Sequence[float], *, exact: bool) -> tuple[float, float]:
    """Return the median of what runs ended with, and of the evaluations; smaller is better.

    The first is the best value if that is exact and known, and otherwise the last target reached.
    The second is infinite unless the last target was reached.
    """
    least = targets[-1] if targets else -math.inf
    spent = float(np.median([run.hits[-1] for run in runs])) if targets else math.inf
    bests = [run.best for run in runs if run.best is not None]
    if exact and len(bests) == len(runs):
        return float(np.median(np.maximum(bests, least))), spent
    if not targets:
        raise ValueError(f"best: expected values on {runs[0].problem}, got None")
    values = [math.inf, *targets]
    return float(np.median([values[int(np.isfinite(run.hits).sum())] for run in runs])), spent


def behind(ours: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether one `final` is more than two per cent worse than another."""
    mine, best = ours[0], other[0]
    if mine == best:
        return ours[1] > (1 + CLOSE) * other[1]
    return mine > best + CLOSE * abs(best)
