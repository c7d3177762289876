"""A search whose variables are split over processes: the search of one process, up to rounding."""

import sys

import numpy as np
import pytest
import torch
import torch.distributed as dist

import fmnes
from fmnes.integrations.torch_distributed import Shards
from gpu import processes
from gpu import shards as program

pytestmark = pytest.mark.arrays
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


def expected(name, generations):
    opt = program.alone(name)
    for _ in range(generations):
        opt.tell(program.PROBLEMS[name][0](opt.ask()))
    return program.numbers(opt.result)


def check(folder, name, size, generations):
    """Compare what every process saved with the search in one process."""
    wanted = expected(name, generations)
    for rank in range(size):
        found = np.load(folder / f"{name}-{rank}.npz")
        for key, value in wanted.items():
            scale = np.max(
                np.abs(value), axis=-1, keepdims=True, where=np.isfinite(value), initial=0
            )
            np.testing.assert_array_equal(np.isfinite(found[key]), np.isfinite(value), err_msg=key)
            close = np.abs(found[key] - value) <= 1e-10 * scale
            assert (close | ~np.isfinite(value)).all(), (name, rank, key)


def start(what, folder, group, rank, size):
    return processes.start("gpu.shards", what, folder, group, rank, size)


def run(what, folder, size):
    return [processes.outcome(p) for p in [start(what, folder, 0, r, size) for r in range(size)]]


@pytest.mark.parametrize("size", [2, 4])
def test_several_processes_follow_one(tmp_path, size):
    run("follow", tmp_path, size)
    for name in program.NAMES[size]:
        check(tmp_path, name, size, program.GENERATIONS[name])


@POSIX
@pytest.mark.parametrize("size", [2, 4])
def test_one_process_is_killed_and_loads_its_part(tmp_path, size):
    """With two processes from the memory of the other; with four, all go back to their files."""
    running = [start("interrupted", tmp_path, 0, rank, size) for rank in range(size)]
    assert processes.was_killed(running[-1])
    running[-1] = start("interrupted", tmp_path, 1, size - 1, size)
    found = [processes.outcome(process).strip() for process in running]
    again = program.KILLED_AT // program.EVERY[size] * program.EVERY[size]
    assert found == [f"[0, {again}] 1"] * (size - 1) + [f"[{again}] 1"]
    check(tmp_path, "ellipsoid", size, program.UNTIL)


def test_a_process_that_fails_last_enters_the_generation_of_the_others(tmp_path):
    k = program.KILLED_AT
    first, second = (text.splitlines() for text in run("late_failure", tmp_path, 2))
    assert first == [f"{k + 1} [{k + 1}]", f"{k + 1}"]
    assert second == [f"{k} [{k}, {k + 1}]", f"{k + 1}"]
    check(tmp_path, "ellipsoid", 2, program.UNTIL)


# === In this process, a group of its own ===


@pytest.fixture
def group(tmp_path):
    processes.join(tmp_path, 0, 0, 1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_a_group_of_one(tmp_path):
    program.follow(tmp_path, 1, 0, 1)
    for name in program.NAMES[1]:
        check(tmp_path, name, 1, program.GENERATIONS[name])


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_candidates_are_the_rows_of_the_population(monkeypatch, dtype):
    monkeypatch.setattr("fmnes.engines.sharded_draws._PIECE", 40)  # several pieces
    shards = Shards(torch.linspace(1, 3, 50), 1.0, popsize=10, rng=1)
    for _ in range(3):
        x = shards.ask()
        assert torch.equal(shards.ask(rows=slice(2, 5)), x[2:5])
        target = [torch.empty(7, 5, dtype=dtype), torch.empty(15, dtype=dtype)]
        shards.write_candidate(4, target)
        assert torch.equal(torch.cat([part.flatten() for part in target]), x[4].to(dtype))
        shards.tell((x * x).sum(dim=1))
    shards.write_mean(target)
    mean = shards.result.mean.to(dtype)
    assert torch.equal(torch.cat([part.flatten() for part in target]), mean)
    x0 = np.linspace(1, 3, 50, dtype=np.float32)
    opt = fmnes.Optimizer(x0, 1.0, method="cr-fm-nes", popsize=10, rng=1)
    for _ in range(3):
        opt.tell((opt.ask() ** 2).sum(axis=1))
    np.testing.assert_allclose(shards.result.mean, opt.result.mean, rtol=1e-4)


@pytest.mark.usefixtures("group")
def test_a_generation_exchanges_a_few_numbers_for_each_candidate(monkeypatch):
    shards, exchanged = Shards(torch.ones(5000), 1.0, popsize=20, rng=1), []
    gather = shards._group.gather
    counting = lambda part: exchanged.append(part.numel()) or gather(part)  # noqa: E731
    engine = shards._part._engine
    engine.share = engine.share._replace(gather=counting)
    monkeypatch.setattr(shards._group, "gather", counting)
    shards.tell(shards.total((shards.ask() ** 2).sum(dim=1)))
    assert sum(exchanged) <= 3 * shards.popsize + 25
    with pytest.raises(TypeError, match="values: expected an array of 20 real numbers"):
        shards.tell([1.0])
    assert shards.nit == 1


@pytest.mark.usefixtures("group")
def test_files(tmp_path):
    shards = program.split("ellipsoid", 0, 1)
    for _ in range(3):
        shards.tell(program.ellipsoid(shards.ask().numpy()))
        shards.save(tmp_path / "new")
    (path,) = (tmp_path / "new").iterdir()
    other = Shards.load(tmp_path / "new")
    assert (other.nit, other.nfev, other.dim) == (3, 3 * shards.popsize, program.DIM)
    assert torch.equal(other.ask(), shards.ask())
    with pytest.raises(ValueError, match=r"path: .*Shards\.load"):
        fmnes.Optimizer.load(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="folder: expected a file saved by fmnes"):
        Shards.load(tmp_path / "new")
    with pytest.raises(RuntimeError, match="folder: expected a generation that every process has"):
        Shards.load(tmp_path / "none")


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"x0": [1.0, 2.0]}, TypeError, "x0: expected a torch.Tensor, got a list"),
        ({"x0": torch.ones(2, 2)}, ValueError, "x0: expected a vector"),
        ({"method": "snes"}, ValueError, "method: expected cr-fm-nes .* got 'snes'"),
        ({"method": fmnes.CRFMNES(variant="paper")}, ValueError, "method: expected .* safe"),
        ({"popsize": 7}, ValueError, "popsize: expected an even number"),
        ({"sigma0": -1}, ValueError, "sigma0: expected"),
    ],
)
def test_what_is_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        Shards(**{"x0": torch.ones(4), "sigma0": 1.0} | arguments)


def test_without_a_group():
    with pytest.raises(RuntimeError, match="group: expected a process group, got none"):
        Shards(torch.ones(4), 1.0)
