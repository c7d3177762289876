"""minimize: callbacks, interrupts, progress, workers, history, plots."""

import csv
import errno
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import fmnes
from fmnes import _progress


def sphere(x):
    return float((x**2).sum())


def shifted(x, a, b):
    return float(((x - a) ** 2).sum()) + b


@pytest.mark.parametrize("method", ["auto", "cr-fm-nes", "cma-es"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_candidates_that_the_objective_keeps_do_not_change(method, vectorized):
    kept, values = [], []

    def fun(x):
        kept.append(x)
        values.append((x**2).sum(axis=-1))
        return values[-1]

    options = {"method": method, "vectorized": vectorized, "maxfevals": 300, "rng": 1}
    result = fmnes.minimize(fun, np.ones(3), 1.0, **options)
    assert [(x**2).sum(axis=-1).tolist() for x in kept] == [value.tolist() for value in values]
    assert result.fun == min(np.min((x**2).sum(axis=-1)) for x in kept)


@pytest.mark.parametrize("vectorized", [False, True])
def test_candidates_stay_in_the_same_memory_if_nobody_keeps_them(vectorized):
    places = []

    def fun(x):
        places.append(x.ctypes.data)
        return (x**2).sum(axis=-1)

    fmnes.minimize(fun, np.ones(3), 1.0, vectorized=vectorized, maxiter=30, rng=1)
    assert len(set(places[-8:])) == (1 if vectorized else 8)
    assert len(set(places)) <= (2 if vectorized else 20)


def test_the_objective_gets_a_read_only_row_and_args():
    def fun(x, a, b):
        assert x.shape == (4,)
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1.0
        return shifted(x, a, b)

    result = fmnes.minimize(fun, [0.0] * 4, 1.0, args=(2.0, 5.0), rng=1)
    np.testing.assert_allclose(result.x, 2.0, atol=1e-6)
    assert result.fun == pytest.approx(5.0)


def test_vectorized_gets_rows_of_candidates_and_equals_the_plain_call():
    shapes = set()

    def fun(x):
        shapes.add(x.shape)
        assert not x.flags.writeable
        return (x**2).sum(axis=1)

    together = fmnes.minimize(fun, [3.0] * 4, 1.0, vectorized=True, maxiter=30, rng=1)
    alone = fmnes.minimize(sphere, [3.0] * 4, 1.0, maxiter=30, rng=1)
    assert shapes == {(10, 4), (8, 4)}  # with the first generation, x0 twice
    np.testing.assert_allclose(together.x, alone.x, rtol=1e-12)


def test_workers_give_the_same_bits_as_serial():
    serial = fmnes.minimize(shifted, [3.0] * 4, 1.0, args=(1.0, 2.0), maxiter=15, rng=1)
    workers = fmnes.minimize(shifted, [3.0] * 4, 1.0, args=(1.0, 2.0), maxiter=15, rng=1, workers=2)
    np.testing.assert_array_equal(serial.x, workers.x)
    assert serial.fun == workers.fun


def test_failed_evaluations_are_counted_and_the_first_traceback_kept():
    def fun(x):
        if x[0] > 3.5:
            raise RuntimeError("the simulator crashed")
        return sphere(x)

    with pytest.raises(RuntimeError, match="the simulator crashed"):
        fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1)
    evaluator = fmnes.Evaluator(on_error="penalize")
    result = fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1, workers=evaluator)
    assert result.success
    assert result.nfailed > 0
    assert "the simulator crashed" in result.first_error


@pytest.mark.parametrize("ends", ["by raising", "by returning True", "by returning np.True_"])
def test_callback_sees_every_generation_and_may_stop(ends):
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun))
        if len(seen) == 5 and ends == "by raising":
            raise StopIteration
        return np.equal(len(seen), 5) if ends == "by returning np.True_" else len(seen) == 5

    result = fmnes.minimize(sphere, [3.0] * 4, 1.0, callback=callback, rng=1)
    assert [nit for nit, _ in seen] == [1, 2, 3, 4, 5]
    assert result.status == "callback"
    assert result.nit == 5
    assert not result.success
    assert seen[-1][1] == result.fun


@pytest.mark.parametrize("answer", [1, 0, "stop", np.array([True]), 0.5])
def test_a_callback_that_returns_no_truth_value_is_refused(answer):
    with pytest.raises(TypeError, match="callback") as refused:
        fmnes.minimize(sphere, [3.0] * 4, 1.0, callback=lambda result: answer, rng=1)
    assert refused.value.result.nit == 1  # no work is lost


@pytest.mark.parametrize("answer", [None, False, np.False_])
def test_a_callback_that_returns_nothing_or_false_lets_the_search_continue(answer):
    result = fmnes.minimize(sphere, [3.0] * 4, 1.0, callback=lambda result: answer, maxiter=5)
    assert result.nit == 5


def test_an_error_of_the_callback_propagates():
    def callback(intermediate_result):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fmnes.minimize(sphere, [3.0] * 4, 1.0, callback=callback)


class Interrupted:
    """An objective that ends the search at some call, and notes what it returned until then."""

    def __init__(self, at, end=KeyboardInterrupt):
        self.at, self.end = at, end
        self.seen = []

    def __call__(self, x):
        if len(self.seen) + 1 == self.at:
            raise self.end("the end")
        self.seen.append((sphere(x), x.tolist()))
        return self.seen[-1][0]


@pytest.mark.parametrize("evaluator", [None, fmnes.Evaluator(on_error="penalize")])
@pytest.mark.parametrize("keep", [False, True], ids=["", "checkpoint"])
@pytest.mark.parametrize("at", [1, 2, 6, 9, 10, 100, 103])
def test_ctrl_c_returns_the_best_of_all_evaluations(at, keep, evaluator, tmp_path):
    """Also of the generation that it interrupted; x0 and 8 candidates are the first."""
    keep = tmp_path / "run.npz" if keep else None
    options = {"method": "cr-fm-nes", "rng": 1, "workers": evaluator, "checkpoint": keep}
    fun = Interrupted(at)
    result = fmnes.minimize(fun, [3.0] * 4, 1.0, **options)
    assert (result.status, result.success) == ("interrupted", False)
    assert (result.nfev, result.nit) == (at - 1, max(at - 2, 0) // 8)
    assert len(result.history) == result.nit
    if at > 1:
        assert (result.fun, result.x.tolist()) == min(fun.seen)
    assert result.restarts[-1].nfev == at - 1
    assert result.restarts[-1].fun == result.fun
    if keep:  # the search resumes exactly
        rest = Interrupted(at=-1)
        whole = fmnes.minimize(sphere, [3.0] * 4, 1.0, method="cr-fm-nes", rng=1, maxiter=20)
        resumed = fmnes.minimize(rest, [3.0] * 4, 1.0, maxiter=20, **options)
        assert len(fun.seen) + len(rest.seen) == whole.nfev == resumed.nfev
        assert resumed.x.tolist() == whole.x.tolist()


def test_an_exception_carries_the_best_of_all_evaluations():
    fun = Interrupted(103, end=ValueError)
    with pytest.raises(ValueError, match="the end") as raised:
        fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1)
    result = raised.value.result
    assert (result.nfev, result.fun) == (102, min(fun.seen)[0])
    assert result.x.tolist() == min(fun.seen)[1]


def test_a_failed_evaluation_of_an_interrupted_generation_is_counted():
    def fun(x):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return np.nan if len(calls) == 2 else sphere(x)

    calls = []
    result = fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1)
    assert (result.nfev, result.nfailed) == (5, 1)
    assert result.fun == sphere(result.x)


def test_an_interrupted_search_that_has_found_the_target_is_a_success():
    result = fmnes.minimize(Interrupted(8), [3.0] * 4, 1.0, ftarget=1e3, rng=1)
    assert (result.status, result.success) == ("interrupted", True)


INTERRUPTED = """
    import sys, time
    import fmnes

    def fun(x):
        print("go", flush=True)
        time.sleep(0.02)
        return float((x**2).sum())

    result = fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1)
    print("status", result.status, flush=True)
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        print("second", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_real_ctrl_c_and_a_second_one():
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    killer = threading.Timer(30, process.kill)
    killer.start()
    try:
        for _ in range(20):
            assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        line = "go\n"
        while line == "go\n":
            line = process.stdout.readline()
        assert line == "status interrupted\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert out == "second\n"
        assert err == ""
    finally:
        killer.cancel()
        process.kill()
        process.wait()


def test_progress_is_shown_on_standard_error_only_when_asked(capsys, monkeypatch):
    fmnes.minimize(sphere, [3.0] * 4, 1.0, maxiter=20, rng=1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fmnes.minimize(sphere, [3.0] * 4, 1.0, maxiter=20, maxfevals=1000, rng=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "evaluations" in err
    assert "sigma" in err


def test_progress_says_that_a_search_resumes(capsys, tmp_path):
    """Otherwise a search that had ended would seem to do nothing."""
    options = {"maxiter": 5, "rng": 1, "progress": True, "checkpoint": tmp_path / "run.npz"}
    fmnes.minimize(Interrupted(at=12), [3.0] * 4, 1.0, **options)
    assert "resumed" not in capsys.readouterr().err
    for known in (11, 42):  # of a generation and a half; of the whole search
        fmnes.minimize(sphere, [3.0] * 4, 1.0, **options)
        assert f"resumed at {known} evaluations" in capsys.readouterr().err


def test_progress_without_tqdm_is_one_line(capsys, monkeypatch):
    for module in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fmnes.minimize(sphere, [3.0] * 4, 1.0, maxiter=20, rng=1, progress=True)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.rpartition("\r")[2].startswith("162 evaluations, best ")


def test_the_warnings_of_tqdm_are_not_shown(monkeypatch, tmp_path):
    """It warns when it is imported in a notebook without ipywidgets."""
    (tmp_path / "tqdm").mkdir()
    (tmp_path / "tqdm" / "__init__.py").touch()
    text = "import warnings; warnings.warn('IProgress not found'); tqdm = dict"
    (tmp_path / "tqdm" / "auto.py").write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tqdm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _progress._tqdm_bar(10, 0, "evaluations")["total"] == 10
    for name in ("tqdm.auto", "tqdm"):
        monkeypatch.delitem(sys.modules, name)


def test_progress_in_a_notebook_is_the_bar_that_tqdm_chooses(monkeypatch):
    """tqdm.auto: a widget if ipywidgets is installed (see also tests/notebooks)."""
    auto, bars = pytest.importorskip("tqdm.auto"), []

    class Bar(auto.tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            bars.append(self)

    monkeypatch.setattr(auto, "tqdm", Bar)
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel="some kernel"))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    fmnes.minimize(sphere, [3.0] * 4, 1.0, maxfevals=162, rng=1, progress=True)
    assert [(bar.n, bar.total) for bar in bars] == [(162, 162)]


def test_progress_in_a_log_is_a_line_now_and_then(capsys):
    result = fmnes.minimize(sphere, [3.0] * 4, 1.0, maxfevals=402, rng=1, progress=True)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("10 evaluations, best ")
    assert last.startswith(f"402 evaluations, best {result.fun:.6g}, sigma {result.sigma:.3g}, ")
    phase = {1: "moving", 2: "adapting", 3: "converging"}[result.history["phase"][-1]]
    assert f", {phase}, " in last


@pytest.mark.parametrize("tqdm", [True, False])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_search_that_ended_shows_no_time_left(tqdm, is_terminal, capsys, monkeypatch):
    """Although it ended long before its budget."""
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    options = {"ftarget": 1e-2, "maxfevals": 10**7, "timeout": 3600, "rng": 1, "progress": True}
    fmnes.minimize(sphere, [3.0] * 4, 1.0, **options)
    end = re.split("[\r\n]", capsys.readouterr().err.strip())[-1]
    assert "best" in end
    assert "left" not in end
    assert "<" not in end  # tqdm's sign before the time left


def test_progress_that_cannot_be_shown_does_not_end_the_search(monkeypatch):
    """Standard error may be a file on a full disk."""

    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    result = fmnes.minimize(sphere, [3.0] * 4, 1.0, maxiter=20, rng=1, progress=True)
    assert result.nit == 20


# === History, Result and plots ===


def test_history_exports(tmp_path):
    result = fmnes.minimize(sphere, [3.0] * 5, 1.0, maxiter=50, rng=1)
    array = result.history.to_array()
    assert len(array) == 50
    np.testing.assert_array_equal(array["nfev"], 2 + 8 * np.arange(1, 51))
    assert (np.diff(array["best"]) <= 0).all()
    assert (array["generation_best"] >= array["best"]).all()
    assert (array["median"] >= array["generation_best"]).all()
    assert (array["condition"] >= 1).all()
    assert set(array["phase"]) <= {1, 2, 3}
    assert (array["deviation_min"] <= array["deviation_max"]).all()
    result.history.to_csv(tmp_path / "history.csv")
    with open(tmp_path / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["best"]) for row in rows] == array["best"].tolist()
    with pytest.raises(KeyError, match=r"column: .*generation.*sigm"):
        result.history["sigm"]


def test_a_printed_result_reads_well():
    result = fmnes.minimize(sphere, [3.0] * 5, 1.0, ftarget=1e-3, rng=1)
    text = str(result)
    assert result.message in text
    assert "5 variables" in text
    assert f"nfev: {result.nfev}" in text
