"""Milliseconds of a generation of `Optimizer` on JAX arrays, for every method.

python benchmarks/jax_engine.py [--dim 50] [--x64] [--out FILE]

A generation is ask, a compiled sphere function, and tell. The first two generations, which compile,
are shown apart. The figures kept in benchmarks/results/jax_engine.json are those of a CPU.
"""

import argparse
import json
import platform
import time

import jax
import jax.numpy as jnp

import fmnes


def generations(opt, objective, count):
    begun = time.perf_counter()
    for _ in range(count):
        opt.tell(objective(opt.ask()))
    return time.perf_counter() - begun


def measured(method, dim, rounds=20, count=30):
    """Seconds to create the optimizer and compile, and the best milliseconds of a generation."""
    objective = jax.jit(lambda x: (x**2).sum(axis=1))
    begun = time.perf_counter()
    opt = fmnes.Optimizer(jnp.full(dim, 3.0), 2.0, method=method, rng=1)
    generations(opt, objective, 2)
    first = time.perf_counter() - begun
    best = min(generations(opt, objective, count) for _ in range(rounds)) / count
    return {"first_s": round(first, 2), "generation_ms": round(1e3 * best, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--x64", action="store_true", help="double precision")
    parser.add_argument("--out", help="write the figures to this JSON file")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.x64)
    figures = {
        "device": jax.devices()[0].device_kind,
        "machine": platform.machine(),
        "jax": jax.__version__,
        "dim": options.dim,
        "dtype": str(jnp.zeros(1).dtype),
        "methods": {},
    }
    for method in fmnes.METHODS:
        figures["methods"][method] = row = measured(method, options.dim)
        print(f"{method:10} {row['generation_ms']:8.3f} ms, the first two {row['first_s']:.1f} s")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
