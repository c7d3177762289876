"""history.csv of a long run, whose history is thinned out."""

import itertools
import math
import time

import numpy as np
import pytest

import fmnes
from cli.common import history
from fmnes.cli._folder import Folder
from fmnes.cli._recorder import Recorder

NOISE = np.random.default_rng(0).random((200, 8))
NOISE[:, 0] = np.where(np.arange(200) % 7, NOISE[:, 0], math.nan)  # every seventh has a failure


@pytest.fixture
def written_at_once(monkeypatch):
    """A clock that makes every row due."""
    seconds = iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: float(100 * next(seconds)))


def run(folder, maxiter, done=0, *, seen=None):
    values, recorder = iter(NOISE[done:]), Recorder(Folder(folder))

    def callback(result):
        recorder(result)
        if seen is not None:
            seen.append(history(folder)["generation"])

    result = fmnes.minimize(
        lambda x: np.resize(next(values)[::-1], len(x)),  # x0, too
        [3.0] * 5,
        1.0,
        vectorized=True,
        maxiter=maxiter,
        rng=1,
        history_size=16,
        callback=callback,
        checkpoint=folder / "checkpoint.npz",
    )
    recorder.finish(result)
    recorder.close()
    return result


def assert_file_is(result, folder):
    columns = history(folder)
    failed = np.cumsum(np.isnan(NOISE).any(axis=1))
    assert columns["nfailed"] == [failed[int(g) - 1] for g in columns["generation"]]
    for name, column in columns.items():
        if name != "nfailed":
            np.testing.assert_array_equal(column, result.history[name], name)


@pytest.mark.usefixtures("written_at_once")
def test_the_file_has_the_rows_of_the_history(tmp_path):
    seen = []
    result = run(tmp_path, 90, seen=seen)
    assert len(result.history) < 50
    assert_file_is(result, tmp_path)
    for earlier, later in itertools.pairwise(seen):
        assert later[: len(earlier)] == earlier  # `fmnes watch` reads only the new rows


@pytest.mark.usefixtures("written_at_once")
def test_a_resumed_run_knows_the_failures_before(tmp_path):
    run(tmp_path, 47)
    assert_file_is(run(tmp_path, 90, done=47), tmp_path)
