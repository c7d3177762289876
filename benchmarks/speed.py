"""Microseconds of one generation and peak memory, beside the peers, in one run.

Each cell (solver, number of variables) runs in a process of its own, which is killed at the time
limit. Rounds go over all solvers in turn, so that what else the machine does hits all alike; the
best of a cell's rounds counts. What holds is the ratio between solvers of one run.

    python benchmarks/speed.py                                  # all of it, about half an hour
    python benchmarks/speed.py --dims 80 1000 --seconds 0.2 --output trial.csv
    python benchmarks/speed.py --report                         # the tables of the stored rows
"""

import argparse
import csv
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from fmnes._config import config
from fmnes.algorithms._weights import even_default_popsize
from solvers import ALL, SOLVERS, Solver
from speed_report import plot, report

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "speed.csv"
FIELDS = (
    "solver", "d", "lambda", "threads", "best_us", "lower_quartile_us", "median_us", "repeats",
    "cores_busy", "peak_mib", "beyond_import_mib", "note", "date", "version",
)  # fmt: skip
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


# === The run ===


def run_cell(name: str, dim: int, seconds: float, limit: float) -> dict[str, Any]:
    """What one process of a cell reports, or a note on why it does not."""
    lam = even_default_popsize(dim)
    command = [sys.executable, HERE / "solvers.py", name, str(dim), str(lam), str(seconds)]
    environment = {**os.environ, **ONE_THREAD, **SOLVERS[name].environment}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"note": f"> {limit:.0f} s"}  # start included; some never return
    if done.returncode:
        message = (done.stderr.splitlines() or ["no message"])[-1]
        print(f"{name}, d = {dim}: {message}", file=sys.stderr)
        return {"note": f"failed: {message}"}
    return json.loads(done.stdout.splitlines()[-1])


def row_of(name: str, solver: Solver, dim: int, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The row of a cell, from what its rounds reported."""
    cell = {"solver": name, "d": dim, "lambda": even_default_popsize(dim)}
    cell |= {"threads": solver.threads, "date": datetime.date.today().isoformat()}
    measured = [one for one in rounds if "laps" in one]
    if not measured:
        return {**cell, "note": rounds[0]["note"]}
    laps = sorted(1e6 * lap for one in measured for lap in one["laps"])
    quartiles = statistics.quantiles(laps, n=4) if len(laps) > 1 else 3 * laps
    peak = max(one["peak_mib"] for one in measured)
    beyond = max(one["peak_mib"] - one["imported_mib"] for one in measured)
    return cell | {
        "best_us": f"{laps[0]:.2f}",
        "lower_quartile_us": f"{quartiles[0]:.2f}",
        "median_us": f"{quartiles[1]:.2f}",
        "repeats": len(laps),
        "cores_busy": f"{max(one['cores_busy'] for one in measured):.2f}",
        "peak_mib": f"{peak:.1f}",
        "beyond_import_mib": f"{beyond:.1f}",
        "version": measured[0]["version"],
    }


def run_all(
    dims: list[int], names: list[str], seconds: float, rounds: int, limit: float, output: Path
) -> None:
    """Every cell, and the file of rows written anew after each number of variables."""
    rows: list[dict[str, Any]] = []
    for dim in dims:
        here = [name for name in names if dim in SOLVERS[name].dims]
        cells: dict[str, list[dict[str, Any]]] = {name: [] for name in here}
        for number in range(rounds):
            for name in here:
                if number == 0 or "laps" in cells[name][-1]:
                    cells[name].append(run_cell(name, dim, seconds / rounds, limit))
            print(f"d = {dim}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        rows += [row_of(name, SOLVERS[name], dim, cells[name]) for name in here]
        write_rows(output, rows)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# === The machine ===


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    kernels = config()
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = cpu.get("flags", cpu.get("Features", "")).split()
    level = next((name for name in ("avx512f", "avx2", "asimd", "sse2") if name in flags), "")
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        number, kind, size = (
            (index / part).read_text().strip() for part in ("level", "type", "size")
        )
        caches[f"L{number} {kind.lower()}"] = size
    return {
        "cpu": cpu.get("model name", platform.processor()),
        "architecture": platform.machine(),
        "instruction_set": level,
        "cpus": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "caches": caches,
        "copy_gb_per_s": round(copy_speed(), 1),
        "system": platform.platform(terse=True),
        "compiler": kernels["compiler"],
        "kernels": kernels["level"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": datetime.date.today().isoformat(),
    }


def copy_speed() -> float:
    """Bytes read and written by a copy too large for the caches, in GB/s, best of ten."""
    source, target = np.ones(2**25), np.ones(2**25)
    best = np.inf
    for _ in range(10):
        begun = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - begun)
    return 2 * source.nbytes / best / 1e9


# === The command ===


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dims", type=int, nargs="+", default=list(ALL))
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--seconds", type=float, default=3.0, help="timed in each cell")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each cell")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds for each process")
    parser.add_argument(
        "--output",
        type=Path,
        default=RESULTS,
        help="the rows, a CSV file; .json, .md, .png beside it",
    )
    parser.add_argument(
        "--report", action="store_true", help="run nothing: tables and plot of the stored rows"
    )
    chosen = parser.parse_args()
    if not chosen.report:
        chosen.output.with_suffix(".json").write_text(json.dumps(machine(), indent=2) + "\n")
        run_all(
            chosen.dims, chosen.solvers, chosen.seconds, chosen.rounds, chosen.limit, chosen.output
        )
    with chosen.output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    tables = report(rows, json.loads(chosen.output.with_suffix(".json").read_text()))
    chosen.output.with_suffix(".md").write_text(tables + "\n")  # docs/speed.md includes it
    print(tables)
    plot(rows, chosen.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
