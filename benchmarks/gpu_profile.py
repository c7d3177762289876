"""Where the time of a generation on one GPU goes.

python benchmarks/gpu_profile.py [--dims 1e3] [--solvers "fmnes PyTorch, streaming"] prints the time
of each kernel, by torch.profiler; of a solver with JAX, the time of the host's functions.
--tiles measures how long it takes to write a candidate, with several sizes of tiles.
"""

import argparse
import cProfile
import itertools
import pstats
import sys

from gpu_solvers import SOLVERS, optimizer, popsize_of


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

    opt = optimizer(dim, popsize_of(dim), method=fmnes.CRFMNES(store_draws=False))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dims", nargs="*", type=float, help="only these numbers of variables")
    parser.add_argument(
        "--solvers", nargs="*", default=["fmnes PyTorch", "fmnes PyTorch, streaming"]
    )
    parser.add_argument("--tiles", action="store_true", help="try sizes of tiles for streaming")
    options = parser.parse_args()
    if options.tiles:
        tiles(int(options.dims[0]) if options.dims else 10**8)
        return
    for name in options.solvers:
        for dim in options.dims or SOLVERS[name][1]:
            profile(name, int(dim))


if __name__ == "__main__":
    main()
