"""A search on several processes of torch.distributed: the same search, also if one is killed."""

import pickle
import sys

import numpy as np
import pytest
import torch

import fmnes
from fmnes.integrations import _torch_transfer as transfer
from fmnes.integrations.torch_distributed import Replicas, state_fingerprint
from gpu import processes
from gpu import replicas as program

pytestmark = pytest.mark.arrays
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


@pytest.fixture(autouse=True)
def _triton_serves_every_device():
    """Tensors on the CPU are computed by the array engine, as in the processes that are started."""


def expected(generations, library):
    """The fingerprint of the search in one process."""
    opt = program.new_search(library)
    for _ in range(generations):
        opt.tell([program.ellipsoid(x) for x in opt.ask()])
    return state_fingerprint(opt)


def start(*arguments):
    return processes.start("gpu.replicas", *arguments)


def outcome(process):
    return [int(word) for word in processes.outcome(process).split()]


@pytest.mark.parametrize(
    ("size", "library", "why"),
    [
        (2, "numpy", "but no majority says that it is the right one"),
        (2, "torch", "but no majority says that it is the right one"),
        (3, "numpy", "which most processes have"),
    ],
)
def test_a_damaged_state_is_said_and_replaced(tmp_path, size, library, why):
    """The last process changes its state after generation 3; the check after 4 repairs it."""
    running = [start(tmp_path, 0, rank, size, 8, -2, library) for rank in range(size)]
    found, said = zip(*map(processes.outcome_and_errors, running), strict=True)
    found = [[int(word) for word in output.split()] for output in found]
    assert [row[:2] for row in found] == [[8, expected(8, library)]] * size
    assert [row[2] for row in found] == [0] * (size - 1) + [1]
    assert sum(row[3] for row in found) == 8 * 10  # no candidate is evaluated twice
    for errors in said:
        assert errors.count("RuntimeWarning: replicas") == 1
        assert f"the states of processes [{size - 1}] differ from that of process 0" in errors
        assert why in errors


def test_an_error_in_one_process_ends_the_generation_of_all(tmp_path):
    """The others say whose error it was, no search changes, and the generation can be repeated."""
    running = [start("failing", tmp_path, rank, 3) for rank in range(3)]
    first, failed, last = (processes.outcome(process).splitlines() for process in running)
    assert first == last
    assert [first[0], failed[0]] == [str(expected(4, "numpy"))] * 2
    sentence = (
        "2 RuntimeError: replicas: another process could not evaluate its candidates (process 1:"
    )
    assert first[1].startswith(f"{sentence} ZeroDivisionError: of process 1)")
    assert first[2].startswith(f"{sentence} ValueError: values: expected 3 numbers, got 1)")
    assert failed[1:] == [
        "2 ZeroDivisionError: of process 1",
        "2 ValueError: values: expected 3 numbers, got 1",
    ]


@pytest.mark.parametrize("check_every", [100, 3])
def test_a_process_whose_update_fails_is_one_generation_behind(tmp_path, check_every):
    """A value of one generation is never told in another; a check brings the process up to date."""
    running = [start("lagging", tmp_path, rank, 3, check_every) for rank in range(3)]
    first, failed, last = (processes.outcome(process).splitlines() for process in running)
    assert first == last
    assert [first[0], failed[0]] == [str(expected(6, "numpy"))] * 2
    assert [first[1], failed[1]] == ["0", "1"]  # how often a process got the state of another
    assert failed[2].startswith(f"{2 if check_every == 100 else 3} OutOfMemoryError: of process 1")
    later = "RuntimeError: replicas: expected the same generation in every process, got [3, 2, 3]"
    if check_every == 100:
        assert first[2].startswith(f"3 {later}")
        assert failed[3].startswith(f"2 {later}")
    else:
        assert (len(first), len(failed)) == (2, 3)


def test_no_candidate_is_built_to_pass_values(tmp_path, monkeypatch):
    """One row of a method with a full matrix would cost the whole population."""
    torch.distributed.init_process_group(
        "gloo", init_method=(tmp_path / "group").as_uri(), rank=0, world_size=1
    )
    try:
        opts = [fmnes.Optimizer(np.ones(5), 1.0, method="xnes", rng=1) for _ in range(2)]
        replicas, values = Replicas(opts[0]), np.arange(opts[0].popsize, dtype=float)
        monkeypatch.setattr(opts[0]._engine, "ask", lambda *args: pytest.fail("built candidates"))
        replicas.tell(values)
        opts[1].ask()
        opts[1].tell(values)
        assert state_fingerprint(opts[0]) == state_fingerprint(opts[1])
    finally:
        torch.distributed.destroy_process_group()


@POSIX
@pytest.mark.parametrize(("size", "killed", "library"), [(2, 0, "torch"), (4, 2, "numpy")])
def test_one_process_is_killed_and_started_again(tmp_path, size, killed, library):
    running = [
        start(tmp_path, 0, rank, size, 8, 3 if rank == killed else -1, library)
        for rank in range(size)
    ]
    assert processes.was_killed(running[killed])
    running[killed] = start(tmp_path, 1, killed, size, 8, -1, library)  # from the beginning
    found = [outcome(process) for process in running]
    assert [row[:2] for row in found] == [[8, expected(8, library)]] * size
    assert [row[2] for row in found] == [int(rank == killed) for rank in range(size)]


class Loopback:
    """A group of two in one process: what process 0 sends is what process 1 gets."""

    def __init__(self, rank, sent):
        self.rank, self.sent = rank, sent

    def object_from(self, source, own):
        if self.rank == source:
            self.sent.append(pickle.dumps(own))
        return pickle.loads(self.sent[0])

    def spread(self, source, flat, size, like):
        if self.rank == source:
            self.sent.append(flat.clone())
        else:
            flat.copy_(self.sent.pop(1))
        assert flat.numel() == size


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_vectors_are_not_part_of_the_pickled_state(library):
    x0 = program.LIBRARIES[library](np.linspace(1, 3, 5000))
    bounds = [(0, 4)] * 4999 + [(3, 3)]
    options = {"method": "cr-fm-nes", "popsize": 30, "bounds": bounds, "rng": 1}
    opts = [fmnes.Optimizer(x0, 1.0, **options) for _ in range(2)]
    opts[0].tell(opts[0].ask()[:, 0])
    sent = []
    for rank, opt in enumerate(opts):
        group, mean = Loopback(rank, sent), opt.setup.mean
        saved = transfer.received(group, 0, opt.to_saved(), mean, needed=rank == 1)
    assert len(sent[0]) < 20_000  # bytes; one vector has 40,000
    opts[1].__setstate__(saved)
    for opt in opts:
        opt.tell(opt.ask()[:, 0])
    assert state_fingerprint(opts[0]) == state_fingerprint(opts[1])
    assert np.array_equal(np.asarray(opts[0].result.x), np.asarray(opts[1].result.x))
    assert opts[0].result.fun == opts[1].result.fun


def test_one_bit_changes_the_fingerprint():
    opt = program.new_search()
    before = state_fingerprint(opt)
    saved = opt.to_saved()
    mean = np.array(saved["state"].mean)
    mean.view(np.int64)[7] ^= 1
    opt.__setstate__({**saved, "state": saved["state"]._replace(mean=mean)})
    assert state_fingerprint(opt) != before


def test_what_is_refused():
    with pytest.raises(TypeError, match="opt: expected an fmnes"):
        Replicas(fmnes.minimize)
    with pytest.raises(ValueError, match="opt: expected a search without timeout"):
        Replicas(fmnes.Optimizer(torch.ones(3), 1.0, method="cr-fm-nes", timeout=3))
    with pytest.raises(RuntimeError, match="group: expected a process group, got none"):
        Replicas(program.new_search())
