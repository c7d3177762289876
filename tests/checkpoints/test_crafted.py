"""Checkpoints whose content was changed and whose checksum is right: refused by one kind of error.

Every value of the header is replaced by others, or removed. What loads all the same is a search
that can be used.
"""

import copy
import json
import math
import random
import shutil
import tracemalloc

import numpy as np
import pytest

import fmnes
from checkpoints.common import search, stairs
from fmnes.storage import npz
from fmnes.storage.npz import DamagedError

BOUNDS = [(-9.0, 9.0)] * 4 + [(3.0, 3.0)]
REMOVED = "removed"
NUMBERS = [True, -1, 0, 3, 2**31, 2**70, 0.5, -0.5, 1e308, math.inf, math.nan]
ARRAYS = [{"array": name, "library": "numpy"} for name in ("array0", "array1", "array9", "header")]
VALUES = [*NUMBERS, None, "", "x", [], [1], {}, {"dict": {}}, {"tuple": []}, *ARRAYS, REMOVED]


def content_of(path):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    del arrays["checksum"]
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(path, header, arrays):
    arrays = {**arrays, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    np.savez(path, **arrays, checksum=npz.checksum(arrays))


def places(value, place=("content",)):
    """The places of all values in a header."""
    yield place
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from places(value[key], (*place, key))


def changed(header, place, value):
    header = copy.deepcopy(header)
    parent = header
    for key in place[:-1]:
        parent = parent[key]
    if value == REMOVED:
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    return header


def changes(header, count):
    """Some changes of a header, always the same ones."""
    every = [(place, value) for place in places(header["content"]) for value in VALUES]
    for place, value in random.Random(1).sample(every, min(count, len(every))):
        yield changed(header, place, value)


def asked(method="cr-fm-nes"):
    opt = fmnes.Optimizer([3.0] * 5, 1.0, method=method, rng=1, bounds=BOUNDS)
    for _ in range(3):
        opt.tell(stairs(opt.ask()))
    return opt


@pytest.mark.parametrize("method", fmnes.METHODS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers beyond reason, which overflow
def test_any_change_of_a_search(method, tmp_path):
    path, outcomes = tmp_path / "search.npz", set()
    asked(method).save(path)
    header, arrays = content_of(path)
    for crafted in changes(header, 40):
        write(path, crafted, arrays)
        try:
            opt = fmnes.Optimizer.load(path)
        except DamagedError as error:
            assert str(path) in str(error)  # noqa: PT017  either way is right
            outcomes.add("refused")
            continue
        outcomes.add("read")
        opt.tell(stairs(opt.ask()))
        assert opt.result.nit == opt.nit
        assert isinstance(opt.stop(), dict)
    assert outcomes == {"refused", "read"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_any_change_of_a_checkpoint(tmp_path):
    """A ValueError may also say that the search is one of another problem."""
    whole, path = tmp_path / "whole.npz", tmp_path / "run.npz"
    options = {"restarts": 2, "bounds": BOUNDS, "stopping": fmnes.Stopping(tolx=0.2)}
    assert len(search(stairs, whole, maxfevals=700, **options).restarts) > 1
    header, arrays = content_of(whole)
    outcomes = set()
    for crafted in changes(header, 120):
        write(path, crafted, arrays)
        shutil.copy(f"{whole}.journal", f"{path}.journal")
        try:
            search(stairs, path, maxfevals=720, **options)
            outcomes.add("read")
        except ValueError as error:
            assert str(error).startswith("checkpoint: ")  # noqa: PT017
            outcomes.add(type(error))
        (tmp_path / "run.npz.previous").unlink(missing_ok=True)
    assert outcomes >= {"read", DamagedError}


@pytest.mark.parametrize("method", fmnes.METHODS)
def test_no_memory_is_taken_for_a_population_that_is_only_claimed(method, tmp_path):
    path = tmp_path / "search.npz"
    asked(method).save(path)
    header, arrays = content_of(path)
    write(path, changed(header, ("content", "dict", "popsize"), 2**24), arrays)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="popsize"):
            fmnes.Optimizer.load(path)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_no_memory_is_taken_for_a_matrix_that_is_only_claimed(tmp_path):
    """A mean of 100,000 variables, for a method whose matrix would take 80 GB."""
    path = tmp_path / "search.npz"
    opt = fmnes.Optimizer([3.0] * 5, 1.0, method="cma-es", rng=1)
    opt.save(path)
    header, arrays = content_of(path)
    mean = header["content"]["dict"]["setup"]["fields"]["mean"]["array"]
    write(path, header, {**arrays, mean: np.ones(10**5)})
    with pytest.raises(DamagedError, match=r"mean|deviations"):
        fmnes.Optimizer.load(path)
