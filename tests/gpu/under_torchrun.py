"""A program for torchrun: both kinds of searches on several processes. Its argument is a folder."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import fmnes
from fmnes.integrations.torch_distributed import Replicas, Shards

DIM, GENERATIONS = 10, 5


def x0():
    return torch.linspace(1, 3, DIM, dtype=torch.float64)


def main():
    dist.init_process_group("gloo")  # rank and size come from torchrun
    rank, size = dist.get_rank(), dist.get_world_size()
    opt = fmnes.Optimizer(x0(), 1.0, method="cr-fm-nes", rng=1)
    replicas = Replicas(opt)
    for _ in range(GENERATIONS):
        replicas.step(lambda i: float((opt.ask()[i] ** 2).sum()))
    shards = Shards(x0().tensor_split(size)[rank], 1.0, method="cr-fm-nes", rng=1)
    for _ in range(GENERATIONS):
        shards.tell(shards.total((shards.ask() ** 2).sum(dim=1)))
    whole, part = np.asarray(opt.result.mean), np.asarray(shards.result.mean)
    start = shards.variables.start
    np.savez(Path(sys.argv[1]) / f"{rank}.npz", whole=whole, part=part, start=start)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
