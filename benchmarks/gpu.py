"""Milliseconds of a generation on one GPU, of fmnes and of other packages, in one run.

make bench-gpu, or: python benchmarks/gpu.py [--dims 1e3 1e5] [--solvers NAME ...] [--out FILE]

python benchmarks/gpu.py --solvers "fmnes PyTorch, streaming" --profile says where the time goes:
the time of each kernel, by torch.profiler; of a solver with JAX, the time of the host's functions.
--tiles measures how long it takes to write a candidate, with several sizes of tiles.

A generation is ask, a sphere function, and tell, in float32, with the default popsize of
CR-FM-NES for every solver. Each solver runs in its own process, so that no other one holds memory
of the GPU; a solver whose package is missing, or that fails, is named with the reason.
The streaming rows write every candidate once, in bfloat16, and evaluate nothing. Rows "in a scan"
run twenty generations in one compiled program. The row of many searches is the time of 500
generations of all of them.

A solver is a function that is registered in SOLVERS: called with (dim, popsize), it returns a
function that runs one generation and waits for its end.
"""

import argparse
import cProfile
import datetime
import gc
import importlib.metadata
import itertools
import json
import math
import os
import pstats
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import gpu_goals
import pages

RESULTS = Path(__file__).parent / "results" / "gpu.json"
PAGE = Path(__file__).parents[1] / "docs" / "gpu.md"
DIMS = [10**3, 10**5, 10**6, 10**7]
SOLVERS = {}
STREAMING_DIMS = [10**8, 10**9]
LONGEST = 400  # seconds that one solver may take in all
MANY = "fmnes.jax, 256 searches, 500 generations"
PACKAGES = "torch", "triton", "jax", "jaxlib", "evosax", "evox"


def solver(name, dims=tuple(DIMS)):
    """Register a function (dim, popsize) -> one generation, and the dimensions to measure."""

    def register(function):
        SOLVERS[name] = function, dims
        return function

    return register


def popsize_of(dim):
    """The default of CR-FM-NES."""
    popsize = 4 + math.floor(3 * math.log(dim))
    return popsize + popsize % 2


# === fmnes and PyTorch ===


def _optimizer(dim, popsize, method="cr-fm-nes"):
    import torch

    import fmnes

    x0 = torch.full((dim,), 3.0, device="cuda")
    return fmnes.Optimizer(x0, 2.0, method=method, popsize=popsize, rng=1)


@solver("fmnes PyTorch")
def fmnes_torch(dim, popsize, method="cr-fm-nes"):
    import torch

    opt = _optimizer(dim, popsize, method)

    def generation():
        opt.tell(torch.linalg.vector_norm(opt.ask(), dim=1) ** 2)

    return generation


@solver("fmnes PyTorch, array engine", dims=(10**3, 10**5, 10**6))
def fmnes_torch_array(dim, popsize, method="cr-fm-nes"):
    """The engine that serves without Triton."""
    from fmnes import engines

    engines.ENGINES = tuple(row for row in engines.ENGINES if row.name != "triton")
    return fmnes_torch(dim, popsize, method)


@solver("fmnes PyTorch, auto")
def fmnes_torch_auto(dim, popsize):
    return fmnes_torch(dim, popsize, "auto")


@solver("fmnes PyTorch, auto, array engine", dims=(10**3, 10**5))
def fmnes_torch_auto_array(dim, popsize):
    return fmnes_torch_array(dim, popsize, "auto")


@solver("fmnes PyTorch, streaming", dims=STREAMING_DIMS)
def fmnes_torch_streaming(dim, popsize):
    import numpy as np
    import torch

    import fmnes

    opt = _optimizer(dim, popsize, method=fmnes.CRFMNES(store_draws=False))
    candidate = torch.empty(dim, dtype=torch.bfloat16, device="cuda")
    values = np.random.default_rng(1)

    def generation():
        for i in range(popsize):
            opt.write_candidate(i, [candidate])
        opt.tell(values.normal(size=popsize))

    return generation


# === fmnes and JAX, and evosax ===


def _sphere():
    import jax

    return jax.jit(lambda x: (x * x).sum(axis=1))


@solver("fmnes JAX")
def fmnes_jax(dim, popsize, method="cr-fm-nes"):
    import jax.numpy as jnp

    import fmnes

    opt = fmnes.Optimizer(jnp.full(dim, 3.0), 2.0, method=method, popsize=popsize, rng=1)
    sphere = _sphere()

    def generation():
        opt.tell(sphere(opt.ask()))

    return generation


@solver("fmnes JAX, auto", dims=(10**3, 10**5))
def fmnes_jax_auto(dim, popsize):
    return fmnes_jax(dim, popsize, "auto")


def _scanned(step, state):
    """One generation of a program that runs twenty of them in one `scan`."""
    import jax

    run = jax.jit(lambda state: jax.lax.scan(lambda s, _: (step(s), None), state, length=20)[0])
    calls = 0

    def generation():
        nonlocal state, calls
        if calls % 20 == 0:
            state = jax.block_until_ready(run(state))
        calls += 1

    return generation


def _jax_search(key, dim, popsize):
    import jax.numpy as jnp

    import fmnes.jax

    return fmnes.jax.init(key, jnp.full(dim, 3.0), 2.0, method="cr-fm-nes", popsize=popsize)


@solver("fmnes.jax in a scan")
def fmnes_jax_program(dim, popsize):
    import jax
    import jax.numpy as jnp

    import fmnes.jax

    def step(search):
        return fmnes.jax.tell(search, jnp.sum(fmnes.jax.ask(search) ** 2, axis=1))[0]

    search = _jax_search(jax.random.key(1), dim, popsize)
    return _scanned(step, search)


@solver(MANY, dims=(100,))
def fmnes_jax_many(dim, popsize):
    import jax
    import jax.numpy as jnp

    import fmnes.jax

    def step(search, _):
        search, _ = fmnes.jax.tell(search, jnp.sum(fmnes.jax.ask(search) ** 2, axis=1))
        return search, None

    def one(key):
        search = _jax_search(key, dim, popsize)
        return jax.lax.scan(step, search, length=500)[0].best_f

    keys = jax.random.split(jax.random.key(1), 256)
    begun = time.perf_counter()
    run = jax.jit(jax.vmap(one)).lower(keys).compile()
    compile_s = time.perf_counter() - begun

    def generations():
        jax.block_until_ready(run(keys))

    generations.compile_s = round(compile_s, 2)
    return generations


def _evosax(dim, popsize):
    """One generation of evosax as a function of its state and key, and the first of them."""
    import jax
    import jax.numpy as jnp
    from evosax.algorithms import CR_FM_NES

    strategy = CR_FM_NES(population_size=popsize, solution=jnp.zeros(dim))
    params = strategy.default_params.replace(std_init=2.0)
    state, key = strategy.init(jax.random.key(1), jnp.full(dim, 3.0), params), jax.random.key(2)

    def step(state_and_key):
        state, key = state_and_key
        key, key_ask, key_tell = jax.random.split(key, 3)
        x, state = strategy.ask(key_ask, state, params)
        state, _ = strategy.tell(key_tell, x, jnp.sum(x * x, axis=1), state, params)
        return state, key

    return step, (state, key)


@solver("evosax CR_FM_NES")
def evosax_cr_fm_nes(dim, popsize):
    """ask, the sphere and tell in one compiled call."""
    import jax

    step, state = _evosax(dim, popsize)
    compiled = jax.jit(step)

    def generation():
        nonlocal state
        state = jax.block_until_ready(compiled(state))

    return generation


@solver("evosax CR_FM_NES in a scan")
def evosax_program(dim, popsize):
    return _scanned(*_evosax(dim, popsize))


# === EvoX ===


@solver("EvoX SNES")
def evox_snes(dim, popsize):
    """EvoX has no CR-FM-NES; SNES costs less for each generation, as it learns no direction."""
    import torch
    from evox.algorithms import SNES
    from evox.core import Problem
    from evox.workflows import StdWorkflow

    class Sphere(Problem):
        def evaluate(self, pop):
            return (pop * pop).sum(dim=1)

    torch.set_default_device("cuda")
    algorithm = SNES(popsize, torch.full((dim,), 3.0), sigma=2.0, device=torch.device("cuda"))
    workflow = StdWorkflow(algorithm, Sphere())
    workflow.init_step()
    step = torch.compile(workflow.step)

    def generation():
        step()
        torch.cuda.synchronize()

    return generation


# === Measuring ===


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


def profile(name, dim):
    """Print where the time of a solver goes: by kernel for PyTorch, on the host for JAX."""
    generation = SOLVERS[name][0](dim, popsize_of(dim))
    for _ in range(3):
        generation()
    if "torch" not in sys.modules:
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [generation() for _ in range(200)])
        print(f"{name}, d = {dim:.0e}: 200 generations", flush=True)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        return
    import torch
    from torch.profiler import ProfilerActivity

    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(3):
            generation()
        torch.cuda.synchronize()
    print(f"{name}, d = {dim:.0e}, popsize {popsize_of(dim)}: three generations", flush=True)
    print(seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=30), flush=True)


def tiles(dim):
    """Print the time to write one candidate, for several sizes of tiles and numbers of warps."""
    import torch

    import fmnes
    from fmnes.engines import triton_engine

    opt = _optimizer(dim, popsize_of(dim), method=fmnes.CRFMNES(store_draws=False))
    candidate = torch.empty(dim, dtype=torch.bfloat16, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for blocks, warps in itertools.product((128, 256, 512, 1024), (1, 2, 4, 8)):
        for programs in (132 * 16, 132 * 32, 132 * 256, 2**30):
            triton_engine._WRITE_BLOCKS, triton_engine._WRITE_WARPS = blocks, warps
            triton_engine._WRITE_PROGRAMS = programs
            opt.write_candidate(0, [candidate])
            begin.record()
            for i in range(1, 11):
                opt.write_candidate(i, [candidate])
            end.record()
            end.synchronize()
            ms = begin.elapsed_time(end) / 10
            print(
                f"{blocks:5} blocks {warps} warps {programs:10} programs {ms:8.3f} ms", flush=True
            )


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
    parser.add_argument("--profile", action="store_true", help="print the time of each kernel")
    parser.add_argument("--tiles", action="store_true", help="try sizes of tiles for streaming")
    parser.add_argument("--report", action="store_true", help="make the table of docs/gpu.md")
    parser.add_argument("--out", type=Path, help=f"the JSON file to write, such as {RESULTS.name}")
    options = parser.parse_args()
    dims = None if options.dims is None else [int(dim) for dim in options.dims]
    if options.one:
        run_solver(options.one, dims)
        return
    if options.tiles:
        tiles(10**8 if dims is None else dims[0])
        return
    if options.profile:
        for name in options.solvers or ["fmnes PyTorch", "fmnes PyTorch, streaming"]:
            for dim in SOLVERS[name][1] if dims is None else dims:
                profile(name, dim)
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
