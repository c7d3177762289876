"""Time inside samplers of Optuna, a trial at a time: ours, RandomSampler and CmaEsSampler.

    python benchmarks/optuna_sampler.py

prints a table and writes benchmarks/results/optuna.json. Every sampler runs the same study in
memory, in turns with the others, and a wrapper adds up the processor time of its own methods; what
is left of a trial is Optuna's. The first trials, which hold what is set up once, are left out; 24
more are a whole generation of ours and of CMA-ES at d = 1000.
"""

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, CmaEsSampler, RandomSampler

import fmnes
from fmnes.integrations.optuna import FmnesSampler

RESULTS = Path(__file__).parent / "results" / "optuna.json"
METHODS = (
    "before_trial",
    "infer_relative_search_space",
    "sample_relative",
    "sample_independent",
    "after_trial",
)
SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "FmnesSampler": lambda: FmnesSampler(method="cr-fm-nes", seed=1),
    "RandomSampler": lambda: RandomSampler(seed=1),
    "CmaEsSampler": lambda: CmaEsSampler(seed=1),
    "CmaEsSampler(use_separable_cma)": lambda: CmaEsSampler(seed=1, use_separable_cma=True),
}


class Clock:
    """Adds up what the methods of a sampler take."""

    def __init__(self, sampler: BaseSampler) -> None:
        self.seconds = 0.0
        for name in METHODS:
            setattr(sampler, name, self._timed(getattr(sampler, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            begun = time.process_time()
            try:
                return method(*args)
            finally:
                self.seconds += time.process_time() - begun

        return call


def study_of(make: Callable[[], BaseSampler]) -> tuple[optuna.Study, Clock]:
    sampler = make()
    return optuna.create_study(sampler=sampler), Clock(sampler)


def measure(dim: int, trials: int, warm: int, samplers: list[str]) -> list[dict[str, Any]]:
    names = [f"x{i:04d}" for i in range(dim)]

    def objective(trial: optuna.Trial) -> float:
        x = np.array([trial.suggest_float(name, -5.0, 5.0) for name in names])
        return float(np.sum(x * x))

    studies = {name: study_of(SAMPLERS[name]) for name in samplers}
    for study, _ in studies.values():
        study.optimize(objective, n_trials=warm)
    inside: dict[str, list[float]] = {name: [] for name in studies}
    whole: dict[str, list[float]] = {name: [] for name in studies}
    for _ in range(trials):
        for name, (study, clock) in studies.items():
            clock.seconds, begun = 0.0, time.process_time()
            study.optimize(objective, n_trials=1)
            whole[name].append(time.process_time() - begun)
            inside[name].append(clock.seconds)
    return [
        {
            "sampler": name,
            "dim": dim,
            "trials": trials,
            "ms": 1e3 * statistics.fmean(inside[name]),
            "ms_whole_trial": 1e3 * statistics.fmean(whole[name]),
        }
        for name in studies
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """The page's table: milliseconds inside the sampler, and of a whole trial."""
    dims = sorted({row["dim"] for row in rows})
    lines = [
        "| sampler | " + " | ".join(f"d = {dim}" for dim in dims) + " |",
        "|---" * (len(dims) + 1) + "|",
    ]
    for name in dict.fromkeys(row["sampler"] for row in rows):
        cells = [
            f"{r['ms']:.2f} of {r['ms_whole_trial']:.2f}" for r in rows if r["sampler"] == name
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dims", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--warm", type=int, default=26)
    parser.add_argument("--samplers", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    rows = []
    for dim in options.dims:
        rows += measure(dim, options.trials, options.warm, options.samplers)
    print(table(rows))
    versions = {"fmnes": fmnes.__version__, "optuna": optuna.__version__, "numpy": np.__version__}
    machine = {"python": platform.python_version(), "machine": platform.machine(), **versions}
    options.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
