"""One process of a search on many: python -m gpu.replicas FOLDER GROUP RANK SIZE UNTIL KILL LIBRARY

The groups of a test are numbered; KILL is the generation in which this process ends itself. Without
a kill, the last process damages its own state after generation 3.
"""

import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import fmnes
from fmnes.integrations.torch_distributed import Replicas, state_fingerprint
from gpu.processes import join

DIM = 20
LIBRARIES = {"numpy": np.asarray, "torch": torch.asarray}


def new_search(library="numpy"):
    x0 = LIBRARIES[library](np.linspace(1, 3, DIM))
    return fmnes.Optimizer(x0, 1.0, method="cr-fm-nes", popsize=10, rng=1)


def ellipsoid(x):
    return float(np.sum(10 ** (3 * np.arange(DIM) / (DIM - 1)) * np.asarray(x) ** 2))


def damage(opt):
    """Change the state as a memory error would."""
    saved = opt.to_saved()
    mean = np.array(saved["state"].mean)
    mean[0] += 1e-9
    mean = LIBRARIES[type(opt.setup.mean).__module__](mean)
    opt.__setstate__({**saved, "state": saved["state"]._replace(mean=mean)})


def main():
    folder, library = Path(sys.argv[1]), sys.argv[7]
    group, rank, size, until, kill = map(int, sys.argv[2:7])
    opt, evaluated, damaged = new_search(library), 0, False
    join(folder, group, rank, size)
    replicas = Replicas(opt, check_every=2)

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
            group += 1
            join(folder, group, rank, size)
            replicas = Replicas(opt, check_every=2)
        if opt.nit == 3 and rank == size - 1 and kill == -2 and not damaged:
            damaged = True
            damage(opt)
    print(opt.nit, state_fingerprint(opt), replicas.repaired, evaluated)
    dist.destroy_process_group()


def failing(folder, rank, size):
    """Process 1 raises an error in generation 2, first in `evaluate`, then with wrong values."""
    join(folder, 0, rank, size)
    replicas = Replicas(new_search())
    opt = replicas.opt

    def evaluate(i):
        if opt.nit == 2 and rank == 1 and not told:
            raise ZeroDivisionError("of process 1")
        return ellipsoid(opt.ask(rows=slice(i, i + 1))[0])

    told = []
    while opt.nit < 4:
        try:
            if opt.nit == 2 and rank == 1 and len(told) == 1:
                replicas.tell([1.0])
            replicas.step(evaluate)
        except (RuntimeError, ValueError, ZeroDivisionError) as error:
            told.append(f"{opt.nit} {type(error).__name__}: {error}")
    print(state_fingerprint(opt), *told, sep="\n")
    dist.destroy_process_group()


def lagging(folder, rank, size, check_every):
    """In generation 2, `tell` fails in process 1, which goes on as if nothing had happened."""
    join(folder, 0, rank, size)
    opt, told = new_search(), []
    replicas, tell = Replicas(opt, check_every=check_every), opt.tell

    def tell_or_fail(values):
        if rank == 1 and opt.nit == 2 and not told:
            raise torch.OutOfMemoryError("of process 1")
        tell(values)

    opt.tell = tell_or_fail
    while opt.nit < 6:
        try:
            replicas.step(lambda i: ellipsoid(opt.ask(rows=slice(i, i + 1))[0]))
        except RuntimeError as error:  # an error of memory is one too
            told.append(f"{opt.nit} {type(error).__name__}: {error}")
            if "same generation" in str(error):
                replicas = Replicas(opt, check_every=check_every)
    print(state_fingerprint(opt), replicas.repaired, *told, sep="\n")
    dist.destroy_process_group()


SCENARIOS = {"failing": failing, "lagging": lagging}

if __name__ == "__main__":
    warnings.simplefilter("always")
    if sys.argv[1] in SCENARIOS:
        SCENARIOS[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        main()
