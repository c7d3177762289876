"""History: which generations have a row, what the rows say, and how they leave the library."""

import copy
import csv
import math
import sys

import numpy as np
import pytest

import fmnes
from fmnes import History
from fmnes.records import record
from fmnes.records.history import COLUMNS

SIZE = 16


def rows_of(best, seconds=1.0):
    """Rows of generations of ten evaluations, one for each best value of a generation."""
    lowest = np.minimum.accumulate(best)
    for g, (so_far, value) in enumerate(zip(lowest, best, strict=True), start=1):
        yield (g, 10 * g, so_far, value, value + 1, *[1.0] * 5, 0, seconds * g, 0.5)


def recorded(best, size=SIZE):
    history = History(size=size)
    for row in rows_of(best):
        history.append(row)
    return history


NOISE = np.random.default_rng(0).random((2000, 8))


def on_noise(done=0, **options):
    """A search on values that say nothing, from the ``done``-th generation on."""
    values = iter(NOISE[done:])
    options = {"stopping": fmnes.Stopping(tolsigmaup=math.inf), **options}
    fun = lambda x: np.resize(next(values), len(x))  # noqa: E731  for x0, too
    return fmnes.minimize(fun, [3.0] * 5, 1.0, vectorized=True, rng=1, **options)


def assert_rows_of(whole, thin):
    """All columns of a thinned history, but for the seconds, are those of the whole one."""
    kept = np.isin(whole["generation"], thin["generation"])
    for column in COLUMNS:
        if not column.startswith("seconds"):
            np.testing.assert_array_equal(thin[column], whole[column][kept], column)


# === Thinning ===


def test_a_long_history_is_thinned_out():
    """All of 16 generations, every second one to 32, every fourth to 64."""
    history = recorded(np.arange(50.0, 0, -1))
    expected = [*range(1, 17), *range(18, 33, 2), *range(36, 50, 4), 50]
    assert history["generation"].tolist() == expected
    assert len(history) == len(expected)
    assert [row.generation for row in history] == expected


@pytest.mark.parametrize("best_at", [1, 5, 17, 18, 33, 70, 99, 100])
def test_first_last_and_best_rows_are_exact(best_at):
    best = np.random.default_rng(1).random(100)
    best[best_at - 1] = -1.0
    every = {row[0]: row[:-2] for row in rows_of(best)}
    history = recorded(best)
    rows = {row.generation: tuple(row)[:-2] for row in history}
    assert {1, best_at, 100} <= rows.keys()
    for generation, row in rows.items():
        assert row == pytest.approx(every[generation], abs=0, rel=0)


@pytest.mark.parametrize("best_at", [1, 40, 41, 77, 98, 99])
def test_seconds_are_those_since_the_row_before(best_at):
    best = np.ones(99)
    best[best_at - 1] = 0.0
    history = recorded(best)
    generation, seconds = history["generation"], history["seconds_objective"]
    sums = np.cumsum(np.arange(1.0, 100))  # generation g takes g seconds
    np.testing.assert_array_equal(np.cumsum(seconds), sums[generation - 1])
    assert history["seconds_optimizer"].sum() == 99 * 0.5


def test_memory_is_bounded():
    """Each doubling of the generations adds half of `size`, and two rows may lie in between."""
    history = History(size=64)
    lengths = []
    for k, row in enumerate(rows_of(np.random.default_rng(2).random(64 * 2**6)), start=1):
        history.append(row)
        if k & (k - 1) == 0 and k >= 64:
            lengths.append(len(history.kept()))
    assert lengths == [64 + 32 * k for k in range(7)]
    assert len(history) <= lengths[-1] + 2


def test_a_snapshot_does_not_change():
    history, taken = History(size=4), []
    for row in rows_of(np.random.default_rng(3).random(60)):
        history.append(row)
        taken.append((history.snapshot(), history.to_array()))
    for snapshot, rows in taken:
        np.testing.assert_array_equal(snapshot.to_array(), rows)


def test_every_row_stays_if_asked_for():
    assert len(on_noise(maxiter=200, history_size=math.inf).history) == 200
    assert len(on_noise(maxiter=200, history_size=200).history) == 200


@pytest.mark.parametrize("size", [0, -1, 2.5, math.nan, "all", None, True])
def test_history_size_is_checked(size):
    with pytest.raises((TypeError, ValueError), match=r"^history_size:"):
        fmnes.Optimizer([1.0], 1.0, history_size=size)


def test_thinning_changes_nothing_else():
    """The stopping rules look at every generation of their windows."""
    whole, thin = on_noise(history_size=math.inf), on_noise(history_size=4)
    assert whole.status == thin.status == "stagnation"
    assert whole.nit == thin.nit == len(whole.history) > 10 * len(thin.history)
    assert_rows_of(whole.history, thin.history)


@pytest.mark.parametrize("stop", [1, 15, 17, 41, 97])
def test_an_interrupted_search_keeps_the_same_rows(stop, tmp_path):
    whole = on_noise(maxiter=100, history_size=SIZE)
    options = {"history_size": SIZE, "checkpoint": tmp_path / "run.npz"}
    on_noise(maxiter=stop, **options)
    resumed = on_noise(done=stop, maxiter=100, **options)
    assert len(resumed.history) == len(whole.history)
    assert_rows_of(whole.history, resumed.history)


def test_the_stopping_rules_go_on_after_an_interruption(tmp_path):
    whole = on_noise()
    assert whole.status == "stagnation"
    on_noise(maxiter=whole.nit - 3, checkpoint=tmp_path / "run.npz")
    resumed = on_noise(done=whole.nit - 3, checkpoint=tmp_path / "run.npz")
    assert (resumed.status, resumed.nit) == ("stagnation", whole.nit)


def test_a_rule_with_a_very_long_window_looks_at_some_of_its_values(monkeypatch):
    monkeypatch.setattr(record, "_MOST_RECENT", 10)
    recent = record.Recent(window=25)  # 9 values: every third one
    for generation in range(1, 31):
        assert recent.is_full == (generation > 27)
        recent.add(generation, generation, -generation)
    expected = np.array([6, 9, 12, 15, 18, 21, 24, 27, 30])
    np.testing.assert_array_equal(recent.columns(), (expected, -expected))
    again = record.Recent.from_saved(recent.to_saved())
    np.testing.assert_array_equal(again.columns(), (expected, -expected))
    np.testing.assert_array_equal(recent.resized(24).columns(), (expected[1:], -expected[1:]))
    assert len(recent.resized(5).columns()[0]) == 0  # these would be every generation's


def test_restarts_share_one_history():
    def run(size):
        return fmnes.minimize(
            lambda x: 1.0 + (x**2).sum(), [3.0] * 5, 1.0, restarts=2, rng=1, history_size=size
        )

    whole, thin = run(math.inf), run(SIZE)
    assert len(whole.history) == whole.nit
    assert len(thin.history) < 150 < whole.nit
    assert (thin.nit, thin.restarts) == (whole.nit, whole.restarts)
    assert_rows_of(whole.history, thin.history)


def test_checkpoints_of_long_searches_are_small(tmp_path):
    path = tmp_path / "run.npz"
    opt = fmnes.Optimizer([3.0] * 3, 1.0, rng=1, history_size=SIZE)
    sizes = []
    for target in (1000, 4000):
        while opt.nit < target:
            opt.ask()
            opt.tell(np.arange(opt.popsize) + 1.0)
        opt.save(path)
        sizes.append(path.stat().st_size)
    assert opt.nit == 4000
    # Two doublings: 16 rows of 97 bytes, and the values in the windows of the stopping rules.
    assert sizes[1] - sizes[0] < 3000


def test_copies_are_independent():
    best = np.arange(64.0, 0, -1)
    for duplicate in (copy.copy, copy.deepcopy, History.snapshot):
        history = recorded(best[:50])
        other = duplicate(history)
        for mine, theirs in list(zip(rows_of(best), rows_of(best - 100), strict=True))[50:]:
            other.append(theirs)
            history.append(mine)
        assert_rows_of(recorded(best), history)
        assert other["best"][-1] == -99


# === Out of the library ===


def test_a_data_frame_has_the_rows_and_their_types():
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'fmnes[dev]'")
    history = recorded(np.random.default_rng(5).random(77))
    frame = history.to_dataframe()
    assert list(frame.columns) == list(COLUMNS)
    for name, kind in COLUMNS.items():
        assert frame[name].dtype == kind
        np.testing.assert_array_equal(frame[name], history[name])
    np.testing.assert_array_equal(pd.DataFrame(history), frame)
    assert list(pd.DataFrame(history).columns) == list(COLUMNS)


def test_without_pandas_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        recorded(np.ones(3)).to_dataframe()


def test_csv_has_every_row(tmp_path):
    history = recorded(np.random.default_rng(5).random(77))
    history.to_csv(tmp_path / "history.csv")
    with (tmp_path / "history.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == list(COLUMNS)
    assert [tuple(map(float, line)) for line in lines] == [tuple(row) for row in history]
