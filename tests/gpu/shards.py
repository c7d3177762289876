"""One process of a search whose variables are split over processes.

    python -m gpu.shards WHAT FOLDER GROUP RANK SIZE

WHAT is the name of a function below. The groups of a test are numbered.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import fmnes
from fmnes.integrations.torch_distributed import Shards
from gpu.processes import join

DIM, UNTIL, KILLED_AT = 37, 10, 7
# Which problems so many processes solve: together all of them, so that tests stay short.
NAMES = {
    1: ("ellipsoid", "rosenbrock", "ties"),
    2: ("ellipsoid", "ties"),
    4: ("rosenbrock", "ties"),
}
GENERATIONS = {"ellipsoid": 100, "rosenbrock": 100, "ties": 50}
EVERY = {2: 1, 4: 3}  # generations from one checkpoint to the next, by the number of processes


def ellipsoid(x):
    return np.sum(10 ** (3 * np.arange(DIM) / (DIM - 1)) * x * x, axis=1)


def rosenbrock(x):
    return np.sum(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2, axis=1)


def with_ties(x):
    """Half a digit of the ellipsoid, infeasible and failed ones, and some generations are flat."""
    f = np.round(2 * np.log10(ellipsoid(x)))
    f[x[:, 30] > 3] = np.inf
    f[x[:, 20] > 2.5] = np.nan
    return f if x[0, 36] < 3.2 else np.ones(len(x))


DEVIATIONS = np.geomspace(0.1, 2, DIM)
# By name: the function, sigma0, and the settings of the method for some variables.
PROBLEMS = {
    "ellipsoid": (ellipsoid, 1.0, lambda part: {}),
    "rosenbrock": (rosenbrock, DEVIATIONS, lambda part: {"eta_sigma": 0.7}),
    "ties": (with_ties, 0.5, lambda part: {"D": DEVIATIONS[part], "v": np.ones(DIM)[part]}),
}


def x0():
    return np.linspace(1, 3, DIM)


def alone(name):
    """The search in one process."""
    _, sigma0, settings = PROBLEMS[name]
    return fmnes.Optimizer(x0(), sigma0, method=fmnes.CRFMNES(**settings(slice(None))), rng=1)


def split(name, rank, size):
    """The part of one process: the last one gets what is left over."""
    _, sigma0, settings = PROBLEMS[name]
    n = DIM // size
    part = slice(rank * n, DIM if rank == size - 1 else (rank + 1) * n)
    sigma0 = sigma0 if np.isscalar(sigma0) else sigma0[part]
    method = fmnes.CRFMNES(**settings(part))
    return Shards(torch.from_numpy(x0()[part]), sigma0, method=method, rng=1)


def whole(part):
    """The columns of all processes, side by side; one exchange, because there are many of them."""
    part, size = torch.as_tensor(part), dist.get_world_size()
    most = DIM - (size - 1) * (DIM // size)
    padded = torch.nn.functional.pad(part, (0, most - part.shape[-1])).contiguous()
    parts = [torch.empty_like(padded) for _ in range(size)]
    dist.all_gather(parts, padded)
    parts = [*(other[..., : DIM // size] for other in parts[:-1]), parts[-1]]
    return torch.cat(parts, dim=-1).numpy()


def numbers(result):
    """What a search is compared by; every figure of all variables is part of the history."""
    rows = result.history.to_array()
    names = [name for name in rows.dtype.names if not name.startswith("seconds")]
    vectors = {name: getattr(result, name) for name in ("x", "mean", "stds")}
    vectors |= {"D": result.shape.D, "v": result.shape.v}
    return {name: np.asarray(value) for name, value in vectors.items()} | {
        "history": np.array([rows[name] for name in names])
    }


def save(folder, shards, name):
    found = numbers(shards.result)
    history = found.pop("history")
    found = {key: whole(value) for key, value in found.items()} | {"history": history}
    np.savez(folder / f"{name}-{dist.get_rank()}.npz", **found)


# === What the tests start ===


def follow(folder, group, rank, size):
    """Some problems, one after the other; the candidates are evaluated as a whole."""
    join(folder, group, rank, size)
    for name in NAMES[size]:
        function, shards = PROBLEMS[name][0], split(name, rank, size)
        for _ in range(GENERATIONS[name]):
            shards.tell(function(whole(shards.ask())))
        save(folder, shards, name)


def interrupted(folder, group, rank, size):
    """The last process kills itself in the first group, and loads its part in the second."""
    join(folder, group, rank, size)
    shards = Shards.load(folder) if group else split("ellipsoid", rank, size)
    begun = [shards.nit]
    scale = torch.from_numpy(10 ** (3 * np.arange(DIM) / (DIM - 1)))
    while shards.nit < UNTIL:
        before = numbers(shards.result)
        try:
            if shards.nit % EVERY[size] == 0:
                shards.save(folder)
            if shards.nit == KILLED_AT and rank == size - 1 and group == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            x = shards.ask()
            own = scale[shards.variables.start : shards.variables.stop]
            shards.tell(shards.total((own * x * x).sum(dim=1)))
        except RuntimeError as error:
            if "does not answer" not in str(error):
                raise
            after = numbers(shards.result)
            assert all(np.array_equal(before[key], after[key]) for key in before)
            group += 1
            join(folder, group, rank, size)
            shards.rejoin(folder)
            begun.append(shards.nit)
    save(folder, shards, "ellipsoid")
    print(begun, len(list(folder.glob(f"shard-{rank}-*"))))


def late_failure(folder, group, rank, size):
    """Process 1 fails after the very last exchange of a generation, which process 0 enters."""
    join(folder, group, rank, size)
    shards = split("ellipsoid", rank, size)
    fails = rank == 1
    while shards.nit < UNTIL:
        engine = shards._part._engine
        gather = engine.share.gather

        def fail(part, engine=engine, gather=gather):
            found = gather(part)
            if part is engine.state.sigma:
                raise RuntimeError("shards: a process of the group does not answer")
            return found

        if shards.nit == KILLED_AT and fails:
            engine.share = engine.share._replace(gather=fail)
            fails = False
        try:
            shards.tell(ellipsoid(whole(shards.ask())))
        except RuntimeError:
            print(shards.nit, sorted(shards._part.generations))
            group += 1
            join(folder, group, rank, size)
            shards.rejoin()
            print(shards.nit)
    save(folder, shards, "ellipsoid")


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    globals()[what](Path(where), *map(int, rest))
    dist.destroy_process_group()
