"""What the kept data of `fmnes coco` say: the tables and figures of docs/large-scale.md.

    python benchmarks/coco_summary.py                # makes them from benchmarks/results/coco
    python benchmarks/coco_summary.py --keep DIR     # first packs what is complete in DIR

DIR is the folder of all runs, which these commands make and continue (what is kept of a solver is
replaced by what is there):

    fmnes coco run SOLVER ... --dims 20 40 80 --budget 1e4 --out DIR --no-page
    fmnes coco run SOLVER ... --dims 160 --budget 1e3 --out DIR --no-page

A solver's dimension is kept when all its 120 problems are there. Evaluations are counted per
variable, as COCO does. Expected running time: evaluations of all runs over the number that reached
the target. Targets: 51 from 1e2 to 1e-8 above the optimum, as in COCO's figures.
"""

import argparse
import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.integrations._coco_data import pack
from fmnes.integrations._coco_problems import read_records
from pages import table, with_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results/coco"
PAGE = ROOT / "docs/large-scale.md"
ADVICE = ROOT / "docs/which-method.md"
FIGURES = ROOT / "docs/coco"

BUDGETS = {20: 1e4, 40: 1e4, 80: 1e4, 160: 1e3}  # evaluations per variable
INSTANCES = range(1, 6)
TARGETS = 10.0 ** ((10 - np.arange(51)) / 5)
STYLES: dict[str, dict[str, Any]] = {  # in the order of tables and legends
    "auto": {"color": "#9467bd", "linewidth": 1.6, "label": "auto"},
    "cr-fm-nes": {"color": "#d62728", "label": "cr-fm-nes"},
    "cr-fm-nes-paper": {"color": "#d62728", "linestyle": "--", "label": "cr-fm-nes:paper"},
    "vd-cma": {"color": "#1f4fd6", "label": "vd-cma"},
    "sep-cma": {"color": "#2ca02c", "label": "sep-cma"},
    "fm-nes": {"color": "#17becf", "label": "fm-nes"},
    "cma-es": {"color": "black", "label": "cma-es"},
    "pycma-vd": {"color": "#1f4fd6", "linestyle": "--", "label": "pycma:vd"},
}
FUNCTIONS = [
    *("sphere", "ellipsoid", "Rastrigin", "skew Rastrigin", "linear slope"),
    *("attractive sector", "step ellipsoid", "Rosenbrock", "rotated Rosenbrock"),
    *("rotated ellipsoid", "discus", "bent cigar", "sharp ridge", "different powers"),
    *("rotated Rastrigin", "Weierstrass", "Schaffer F7", "ill-conditioned F7"),
    *("Griewank-Rosenbrock", "Schwefel", "Gallagher 101", "Gallagher 21", "Katsuura", "Lunacek"),
]
ALL = range(1, len(FUNCTIONS) + 1)
GROUPS = {
    "separable": range(1, 6),
    "moderate condition": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multimodal": range(15, 20),
    "multimodal, weak structure": range(20, 25),
}


class Run(NamedTuple):
    """One problem, solved or not."""

    solver: str
    function: int
    dim: int
    instance: int
    record: dict[str, Any]
    hits: NDArray[np.float64]  # evaluations per variable until each target; infinite: not reached

    @property
    def evaluations(self) -> float:
        """All of them, per variable."""
        return float(self.record["evaluations"] / self.dim)

    @property
    def solved(self) -> bool:
        """Whether the last target was reached, where COCO ends the run."""
        return bool(np.isfinite(self.hits[-1]))


# === The data ===


def keep(folder: Path) -> None:
    """Pack the dimensions that are complete, solver by solver."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    solved = defaultdict(lambda: defaultdict(list))
    for task, record in read_records(folder):
        solved[task.label][task.dim].append((folder / task.folder, record))
    for solver, by_dim in solved.items():
        whole = [dim for dim, some in by_dim.items() if len(some) == len(ALL) * len(INSTANCES)]
        print(f"{solver}: d = {sorted(whole)} kept, {sorted({*by_dim} - {*whole})} not yet")
        if whole:
            kept = [problem for dim in whole for problem in by_dim[dim]]
            kept.sort(key=lambda problem: problem[0])
            pack(kept, RESULTS / f"{solver}.tgz")


def read(folder: Path = RESULTS) -> list[Run]:
    """All runs of all archives."""
    return [run for archive in sorted(folder.glob("*.tgz")) for run in _runs(archive)]


def _runs(archive: Path) -> Iterator[Run]:
    """The files of COCO list the instances in the order of the records."""
    records = defaultdict(list)
    logs: dict[tuple[int, int], list[str]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is None:  # a folder
                continue
            text = file.read().decode()
            if member.name.endswith("records.jsonl"):
                for line in text.splitlines():
                    record = json.loads(line)
                    records[record["function"], record["dim"]].append(record)
            elif found := re.search(r"_f(\d+)_DIM(\d+)\.dat$", member.name):
                logs[int(found[1]), int(found[2])] = re.split("^%.*\n", text, flags=re.M)[1:]
    for (function, dim), of_function in sorted(records.items()):
        for record, log in zip(of_function, logs[function, dim], strict=True):
            yield Run(archive.stem, function, dim, record["instance"], record, hits(log, dim))


def hits(log: str, dim: int) -> NDArray[np.float64]:
    """A line holds the evaluations and, third, the best value so far above the optimum."""
    lines = np.loadtxt(log.splitlines(), usecols=(0, 2), ndmin=2)
    first = np.argmax(lines[:, 1, None] <= TARGETS, axis=0)
    return np.where(lines[first, 1] <= TARGETS, lines[first, 0] / dim, np.inf)


def running_time(runs: Iterable[Run]) -> float:
    """Expected evaluations per variable until the last target; infinite if no run reached it."""
    runs = list(runs)
    solved = sum(run.solved for run in runs)
    spent = sum(float(run.hits[-1]) if run.solved else run.evaluations for run in runs)
    return spent / solved if solved else np.inf


def share(runs: Iterable[Run]) -> float:
    """Of all pairs of a run and a target, those that were reached."""
    return float(np.mean([np.isfinite(run.hits) for run in runs]))


class Data:
    """All runs, to choose from."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.dims = sorted({run.dim for run in runs})
        self.solvers = [name for name in STYLES if name in {run.solver for run in runs}]

    def of(self, solver: str, dim: int, functions: Iterable[int] = ALL) -> list[Run]:
        """The runs of a solver."""
        wanted = set(functions)
        return [r for r in self.runs if (r.solver, r.dim) == (solver, dim) and r.function in wanted]

    def solvers_at(self, dim: int) -> list[str]:
        """Those with data there."""
        return [name for name in self.solvers if self.of(name, dim, [1])]


# === Tables ===


def _solved_table(data: Data) -> str:
    """How many of the 120 problems each solver solved, by dimension."""
    rows = [
        [STYLES[name]["label"], *(_count(data.of(name, dim)) for dim in BUDGETS)]
        for name in data.solvers
    ]
    budgets = [f"d = {dim}, {budget:.0f} d" for dim, budget in BUDGETS.items()]
    return table(["", *budgets], rows)


def _count(runs: Sequence[Run]) -> str:
    return f"{sum(run.solved for run in runs)} of {len(runs)}" if runs else "not run"


def _groups_table(data: Data) -> str:
    """Per cent of the targets reached in each group of functions."""
    names = data.solvers
    rows = []
    for dim in data.dims:
        for group, functions in {**GROUPS, "all": ALL}.items():
            cells = [data.of(name, dim, functions) for name in names]
            percent = [f"{100 * share(runs):.0f}" if runs else "" for runs in cells]
            rows.append([dim, group, *_best_bold(percent, max)])
    return table(["d", "functions", *(STYLES[name]["label"] for name in names)], rows)


def _ratios_table(data: Data) -> str:
    """How many times the evaluations of cr-fm-nes others take where both solve every instance."""
    others = [name for name in data.solvers if name != "cr-fm-nes"]
    rows = [[dim, *(_ratio(data, name, dim) for name in others)] for dim in data.dims]
    return table(["d", *(STYLES[name]["label"] for name in others)], rows)


def _ratio(data: Data, name: str, dim: int) -> str:
    """The geometric mean over functions, and their number in brackets."""
    pairs = [[data.of(one, dim, [f]) for one in (name, "cr-fm-nes")] for f in ALL]
    times = [
        [running_time(runs) for runs in pair]
        for pair in pairs
        if all(runs and all(run.solved for run in runs) for runs in pair)
    ]
    if not times:
        return ""
    theirs, ours = np.log(times).T
    return f"{np.exp(np.mean(theirs - ours)):.2f} ({len(times)})"


def _functions_table(data: Data, dim: int) -> str:
    """Expected running time for each function; in brackets the solved ones, if not all five."""
    names = data.solvers_at(dim)
    rows = []
    for function, title in enumerate(FUNCTIONS, start=1):
        cells = [data.of(name, dim, [function]) for name in names]
        times = _best_bold([f"{running_time(runs):.0f}" for runs in cells], min)
        solved = [sum(run.solved for run in runs) for runs in cells]
        marked = [
            "-" if n == 0 else f"{time} ({n})" if n < len(INSTANCES) else time
            for time, n in zip(times, solved, strict=True)
        ]
        rows.append([f"f{function} {title}", *marked])
    return table(["function", *(STYLES[name]["label"] for name in names)], rows)


def _best_bold(texts: Sequence[str], best: Any) -> list[str]:
    """The best of several."""
    numbers = [text for text in texts if text not in ("", "inf")]
    winner = best(numbers, key=float) if len(texts) > 1 and len(numbers) > 1 else None
    return [f"**{text}**" if text == winner else text for text in texts]


def _shares_table(data: Data) -> str:
    """Per cent of all targets, for the page of advice."""
    rows = []
    for name in data.solvers:
        cells = [data.of(name, dim) for dim in data.dims]
        rows.append([f"`{STYLES[name]['label']}`", *(_percent(runs) for runs in cells)])
    return table(["", *(f"d = {dim}" for dim in data.dims)], rows)


def _percent(runs: Sequence[Run]) -> str:
    return f"{100 * share(runs):.0f} %" if runs else "not run"


def advised(page: str, data: Data) -> str:
    """The page of advice with its table made anew."""
    return with_tables(page, {"shares": _shares_table(data)})


def tables(data: Data) -> dict[str, str]:
    """All of the page, by name."""
    by_function = [f"### d = {dim}\n\n{_functions_table(data, dim)}" for dim in data.dims]
    return {
        "solved": _solved_table(data),
        "ratios": _ratios_table(data),
        "groups": _groups_table(data),
        "functions": "\n\n".join(by_function),
    }


# === Figures ===

_RC: Any = {
    "font.family": "serif",
    "mathtext.fontset": "cm",
    "font.size": 8,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
}


def figures(data: Data) -> "dict[str, Figure]":
    """The share of targets reached over evaluations: of all functions, and group by group."""
    compared = [dim for dim in data.dims if len(data.solvers_at(dim)) > 1]
    everything = {f"$d = {dim}$": (dim, ALL) for dim in compared}
    by_group = {
        f"$d = {dim}$, {group}": (dim, functions)
        for dim in compared
        for group, functions in GROUPS.items()
    }
    return {
        "all": _figure(data, everything, columns=len(compared)),
        "groups": _figure(data, by_group, columns=len(GROUPS)),
    }


def _figure(data: Data, panels: dict[str, tuple[int, range]], columns: int) -> "Figure":
    from matplotlib.figure import Figure

    rows = len(panels) // columns
    figure = Figure(figsize=(max(4.4, 1.9 * columns), 0.6 + 1.9 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, (title, (dim, functions)) in zip(grid.flat, panels.items(), strict=True):
        axes.set_title(title, fontsize=7)
        _panel(axes, data, dim, functions)
    for axes in grid[-1]:
        axes.set_xlabel("evaluations / $d$")
    for axes in grid[:, 0]:
        axes.set_ylabel("share of targets reached")
    lines = {line.get_label(): line for axes in grid.flat for line in axes.lines}
    figure.legend(
        handles=lines.values(), loc="outside lower center", ncols=7 if columns > 2 else 4,
        frameon=False, fontsize=7,
    )  # fmt: skip
    return figure


def _panel(axes: Any, data: Data, dim: int, functions: Iterable[int]) -> None:
    budget = BUDGETS[dim]
    evaluations = np.geomspace(1, budget, 300)
    for name in data.solvers_at(dim):
        hits = np.sort(np.concatenate([run.hits for run in data.of(name, dim, functions)]))
        reached = np.searchsorted(hits, evaluations, side="right") / hits.size
        axes.semilogx(evaluations, reached, **STYLES[name])
    axes.set(xlim=(1, budget), ylim=(0, 1))
    axes.grid(color="#dddddd", linewidth=0.4)
    axes.tick_params(labelsize=6)


def main() -> None:
    import matplotlib

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="pack what is complete there")
    options = parser.parse_args()
    if options.keep is not None:
        keep(options.keep)
    data = Data(read())
    PAGE.write_text(with_tables(PAGE.read_text(), tables(data)))
    ADVICE.write_text(advised(ADVICE.read_text(), data))
    FIGURES.mkdir(exist_ok=True)
    with matplotlib.rc_context(_RC):
        for name, figure in figures(data).items():
            figure.savefig(FIGURES / f"{name}.png", dpi=200)


if __name__ == "__main__":
    main()
