"""Milliseconds of a generation on one GPU, of fmnes and of other packages, in one run.

make bench-gpu, or: python benchmarks/gpu.py [--dims 1e3 1e5] [--solvers NAME ...] [--out FILE]

Each solver of `gpu_solvers.py` runs in its own process, so that no other one holds memory of the
GPU; a solver whose package is missing, or that fails, is named with the reason.
`gpu_profile.py` says where the time goes.
"""

import argparse
import datetime
import gc
import importlib.metadata
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import gpu_goals
import pages
from gpu_solvers import MANY, SOLVERS, popsize_of

RESULTS = Path(__file__).parent / "results" / "gpu.json"
PAGE = Path(__file__).parents[1] / "docs" / "gpu.md"
LONGEST = 400  # seconds that one solver may take in all
PACKAGES = "torch", "triton", "jax", "jaxlib", "evosax", "evox"


def measured(name, dim):
    """One row: the median of some rounds, the time to start and compile, and the memory."""
    gc.collect()  # what the row before has left
    function, _ = SOLVERS[name]
    begun = time.perf_counter()
    generation = function(dim, popsize_of(dim))
    for _ in range(3):
        generation()
    first = time.perf_counter() - begun
    start_vectors = _vectors(dim)
    begun = time.perf_counter()
    generation()
    once = time.perf_counter() - begun
    count, seconds = max(1, min(100, int(0.2 / max(once, 1e-6)))), []
    for _ in range(7 if once < 0.5 else 3):
        begun = time.perf_counter()
        for _ in range(count):
            generation()
        seconds.append((time.perf_counter() - begun) / count)
    return {
        "solver": name,
        "dim": dim,
        "popsize": popsize_of(dim),
        "ms": round(1e3 * statistics.median(seconds), 4),
        "fastest_ms": round(1e3 * min(seconds), 4),
        "first_s": round(first, 2),
        "compile_s": getattr(generation, "compile_s", None),
        "start_vectors": start_vectors,
        "vectors": _vectors(dim),
    }


def _vectors(dim):
    """The largest memory that PyTorch has held, in vectors of float32; None without PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return round(most / 4 / dim, 2)


def run_solver(name, dims):
    """The rows of one solver, measured in this process, one JSON object a line."""
    for dim in dims:
        try:
            row = measured(name, dim)
        except Exception as error:  # noqa: BLE001 (the other solvers are still to be measured)
            row = {"solver": name, "dim": dim, "error": f"{type(error).__name__}: {error}"[:300]}
        print("ROW " + json.dumps(row), flush=True)


def in_a_process(name, dims):
    """The rows of one solver, from a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--dims", *map(str, dims)]
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        output, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output, errors = (late.stdout or b"").decode(), f"not done after {LONGEST} s"
    rows = [json.loads(line[4:]) for line in output.splitlines() if line.startswith("ROW ")]
    for dim in dims[len(rows) :]:
        rows.append({"solver": name, "dim": dim, "error": errors.strip()[-300:]})
    return rows


def machine():
    """What the figures were measured on."""
    command = [sys.executable, "-c", "import torch; print(torch.cuda.get_device_name())"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "device": done.stdout.strip() or None,
        **{package: _version(package) for package in PACKAGES},
        "python": sys.version.split()[0],
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", "benchmarks/gpu.py", *sys.argv[1:]]),
    }


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def table(figures):
    """Milliseconds of a generation, a row for each solver, in Markdown; with the machine."""
    rows = [row for row in figures["rows"] if row["solver"] != MANY]
    dims = sorted({row["dim"] for row in rows})
    shown = {(row["solver"], row["dim"]): f"{row['ms']:.3g}" for row in rows if "ms" in row}
    names = list(dict.fromkeys(row["solver"] for row in rows if "ms" in row))
    failed = {row["solver"]: row["error"] for row in rows if row["solver"] not in names}
    titles = ["ms a generation, d ="] + [f"10^{round(math.log10(dim))}" for dim in dims]
    cells = ([name, *(shown.get((name, dim), "") for dim in dims)] for name in names)
    versions = {
        "PyTorch": figures["torch"],
        "Triton": figures["triton"],
        "JAX": figures.get("jax"),
        "evosax": figures.get("evosax"),
        "EvoX": figures.get("evox"),
    }
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    where = (
        f"Measured on one {figures['device']} with {found} on {figures['date']}, in float32, by "
        f"`{figures['command']}`."
    )
    many = [
        f"256 searches of 100 variables under `vmap`, 500 generations: {row['ms'] / 1e3:.3g} s, "
        f"after {row['compile_s']:.3g} s of compilation."
        for row in figures["rows"]
        if row["solver"] == MANY and "ms" in row
    ]
    said = [f"Not measured: {name} ({error})." for name, error in failed.items()]
    return "\n\n".join([pages.table(titles, cells), *many, *said, where])


def tables():
    """The tables of docs/gpu.md by name."""
    figures = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {"gpu": table(figures), "gpu-goals": gpu_goals.table(figures)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dims", nargs="*", type=float, help="only these numbers of variables")
    parser.add_argument("--solvers", nargs="*", help=f"some of: {', '.join(SOLVERS)}")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--report", action="store_true", help="make the table of docs/gpu.md")
    parser.add_argument("--out", type=Path, help=f"the JSON file to write, such as {RESULTS.name}")
    options = parser.parse_args()
    dims = None if options.dims is None else [int(dim) for dim in options.dims]
    if options.one:
        run_solver(options.one, dims)
        return
    if options.report:
        page = pages.with_tables(PAGE.read_text(encoding="utf-8"), tables())
        PAGE.write_text(page, encoding="utf-8")
        return
    figures = {**machine(), "rows": []}
    for name in options.solvers or SOLVERS:
        served = [dim for dim in SOLVERS[name][1] if dims is None or dim in dims]
        for row in in_a_process(name, served) if served else []:
            figures["rows"].append(row)
            shown = row.get("error") or f"{row['ms']:10.3f} ms, {row['vectors']} vectors"
            print(f"{name:30} d = {row['dim']:.0e}  {shown}", flush=True)
        if options.out:
            options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
