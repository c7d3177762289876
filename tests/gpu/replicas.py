"""One process of a search on many: python replicas.py FOLDER GROUP RANK SIZE UNTIL KILL

The groups of a test are numbered; KILL is the generation in which this process ends itself.
"""

import datetime
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch.distributed as dist

import fmnes
from fmnes.integrations.torch_distributed import Replicas, fingerprint

DIM = 20


def new_search():
    return fmnes.Optimizer(np.linspace(1, 3, DIM), 1.0, popsize=10, rng=1)


def ellipsoid(x):
    return float(np.sum(10 ** (3 * np.arange(DIM) / (DIM - 1)) * x * x))


def join(folder, group, rank, size, opt):
    dist.init_process_group(
        "gloo",
        init_method=(folder / f"group{group}").as_uri(),
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=60),
    )
    return Replicas(opt, check_every=2)


def main():
    folder, group, rank, size, until, kill = Path(sys.argv[1]), *map(int, sys.argv[2:])
    opt = new_search()
    replicas = join(folder, group, rank, size, opt)
    evaluated = 0

    def evaluate(i):
        nonlocal evaluated
        evaluated += 1
        if opt.nit == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return ellipsoid(opt.ask(rows=slice(i, i + 1))[0])

    while opt.nit < until:
        try:
            replicas.step(evaluate)
        except RuntimeError as error:
            if "does not answer" not in str(error):
                raise
            dist.destroy_process_group()
            group += 1
            replicas = join(folder, group, rank, size, opt)
        if opt.nit == 3 and rank == 1 and group == 0 and kill < 0 and size == 2:
            opt._engine._compiled.mean[0] += 1e-9  # as a memory error would
    print(opt.nit, fingerprint(opt), replicas.repaired, evaluated)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
