"""Asynchronous searches in real processes: nobody waits, and faults cost one evaluation."""

import math
import os
import pathlib
import signal
import time
import zlib

import numpy as np
import pytest

import fmnes


def sphere(x):
    return float((x**2).sum())


def slow_first(x, folder):
    """The first call waits until the search has made some generations without it."""
    folder = pathlib.Path(folder)
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        return sphere(x)
    while not (folder / "enough").exists():
        time.sleep(0.005)
    return sphere(x)


def test_a_slow_evaluation_holds_up_nobody(tmp_path):
    nits = []

    def callback(result):
        nits.append(result.nit)
        if result.nit == 5:
            (tmp_path / "enough").touch()

    result = fmnes.minimize(
        slow_first, [3.0] * 5, 1.0, args=(str(tmp_path),), workers=2, asynchronous=True,
        maxiter=40, callback=callback, rng=1,
    )  # fmt: skip
    assert nits == list(range(1, 41))
    assert result.nfev == 40 * 8 + 1  # all values were told, that of the first call too
    assert sphere(result.x) == result.fun


def troubled(x, folder, trouble):
    """One call in the whole search meets trouble: it kills its worker, hangs or raises."""
    folder = pathlib.Path(folder)
    (folder / f"call-{time.monotonic_ns()}-{os.getpid()}").touch()
    if len(list(folder.glob("call-*"))) > 20:
        try:
            (folder / "trouble").touch(exist_ok=False)
        except FileExistsError:
            return sphere(x)
        if trouble == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "hangs":
            time.sleep(1000)
        raise ArithmeticError("no value")
    return sphere(x)


@pytest.mark.parametrize(("trouble", "failed"), [("dies", 0), ("hangs", 1), ("raises", 1)])
def test_trouble_costs_one_evaluation(tmp_path, trouble, failed):
    """A candidate whose worker died gets a second attempt; one that hangs or raises has failed."""
    with fmnes.Evaluator(
        2, timeout=2.0, on_error="penalize", asynchronous=True
    ) as evaluator:  # fmt: skip
        result = fmnes.minimize(
            troubled, [3.0] * 5, 1.0, args=(str(tmp_path), trouble), workers=evaluator, maxiter=10,
            rng=1,
        )  # fmt: skip
    assert (result.nfev, result.nfailed) == (81, failed)
    assert len(list(tmp_path.glob("call-*"))) == 81 + (trouble == "dies")
    assert result.first_error is None if trouble == "dies" else result.first_error


def test_an_error_ends_the_search():
    with pytest.raises(fmnes.EvaluationError, match="no value") as caught:
        fmnes.minimize(raises, [3.0] * 5, 1.0, workers=2, asynchronous=True, rng=1)
    assert caught.value.x.shape == (5,)
    assert caught.value.result.nit == 0


def raises(x):
    raise ArithmeticError("no value")


def with_constraint(x):
    return sphere(x), [1.0 - x[0]]


def test_constraints_and_restarts(tmp_path):
    """Each evaluation counts once, whichever run and generation it belongs to."""
    result = fmnes.minimize(
        with_constraint, [3.0] * 4, 1.0, workers=2, asynchronous=True, constraints=1, restarts=1,
        maxfevals=3000, stopping=fmnes.Stopping(tolx=1e-3), rng=1,
        checkpoint=tmp_path / "run.npz",
    )  # fmt: skip
    assert result.constr_violation == 0
    assert result.fun == pytest.approx(1.0, abs=0.05)
    assert len(result.restarts) == 2
    assert result.nfev == sum(run.nfev for run in result.restarts)
    assert np.diff(result.history["nfev"]).min() > 0
    assert result.history["nfev"][-1] == result.nfev


def sleeps(x, folder):
    """Take a lognormal time with coefficient of variation 1, which follows from x; log it."""
    luck = np.random.default_rng(zlib.crc32(x.tobytes()))
    begun = time.monotonic()  # one clock for all processes
    time.sleep(luck.lognormal(math.log(0.03) - math.log(2) / 2, math.sqrt(math.log(2))))
    line = f"{begun} {time.monotonic()}\n"
    (pathlib.Path(folder) / f"{zlib.crc32(x.tobytes())}-{begun}").write_text(line)
    return sphere(x)


def utilisation(folder, workers):
    """The share of the time, from the first evaluation to the last, that workers are busy."""
    files = list(folder.iterdir())
    begun, ended = np.array([file.read_text().split() for file in files], float).T
    return (ended - begun).sum() / (workers * (ended.max() - begun.min()))


def test_workers_are_busier_than_with_a_barrier(tmp_path):
    """In real processes, both searches in the same test: a busy machine slows down both."""
    busy = {}
    for asynchronous in (False, True):
        folder = tmp_path / str(asynchronous)
        folder.mkdir()
        with fmnes.Evaluator(
            4, asynchronous=asynchronous, chunksize=None if asynchronous else 1
        ) as evaluator:
            result = fmnes.minimize(
                sleeps, [3.0] * 5, 1.0, args=(str(folder),), workers=evaluator, popsize=8,
                maxfevals=241, rng=1, method="cr-fm-nes",
            )  # fmt: skip
        assert result.nfev == len(list(folder.iterdir())) == 241
        busy[asynchronous] = utilisation(folder, 4)
    assert busy[False] < busy[True] <= 1
