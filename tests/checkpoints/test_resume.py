"""A search resumes where it stopped: with the same bits, and no value is computed again."""

import struct
import time

import numpy as np
import pytest

import fmnes
from checkpoints.common import Counted, digest, names, rewritten, search, sphere, stairs

# === The same bits ===


@pytest.mark.parametrize(
    ("restarts", "vectorized"), [(fmnes.IPOP(2), False), (fmnes.BIPOP(2), True)], ids=repr
)
def test_it_ends_with_the_same_bits(path, restarts, vectorized):
    options = {
        "x0": [3.0] * 3,
        "stopping": fmnes.Stopping(tolx=1e-3),
        "restarts": restarts,
        "rng": 5,
        "vectorized": vectorized,
        "maxfevals": 2_000,
    }
    whole = search(stairs, **options)
    assert len(whole.restarts) >= 3
    ends = np.cumsum([run.nit for run in whole.restarts])
    for stop_at in (10, *ends[:2], ends[1] + 1, ends[-1] - 1):
        left = [stop_at]

        def stop(intermediate_result, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise StopIteration

        part = search(stairs, path, resume="never", callback=stop, **options)
        assert part.nit == stop_at
        resumed = search(stairs, path, resume="must", **options)
        assert digest(resumed) == digest(whole)


def test_every_method_resumes(method, path):
    whole = search(sphere, method=method, maxiter=30)
    with pytest.raises(RuntimeError, match="the end"):
        search(Counted(end_at=100), path, method=method, maxiter=30)
    assert digest(search(sphere, path, method=method, maxiter=30)) == digest(whole)


@pytest.mark.parametrize("end", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("end_at", [1, 2, 8, 9, 37, 40, 41])  # of 8 in a generation
def test_no_value_is_computed_twice(path, end_at, end):
    whole = Counted()
    expected = search(whole, maxiter=10)
    first, rest = Counted(end_at=end_at, end=end), Counted()
    if end is KeyboardInterrupt:
        assert search(first, path, maxiter=10).status == "interrupted"
    else:
        with pytest.raises(RuntimeError, match="the end"):
            search(first, path, maxiter=10)
    resumed = search(rest, path, maxiter=10, resume="must")
    assert digest(resumed) == digest(expected)
    assert first.calls + rest.calls == whole.calls


def test_a_generation_of_a_vectorized_objective_is_entered_at_once(path):
    whole, first, rest = Counted(stairs), Counted(stairs, end_at=7), Counted(stairs)
    expected = search(whole, vectorized=True, maxiter=20)
    with pytest.raises(RuntimeError, match="the end"):
        search(first, path, vectorized=True, maxiter=20)
    assert digest(search(rest, path, vectorized=True, maxiter=20)) == digest(expected)
    assert first.calls + rest.calls == whole.calls


def test_serial_may_go_on_vectorized_and_back(path):
    """What the journal knows of a generation is told, whatever is computed beside it."""

    def both(x):
        return (x**2).sum(axis=-1) if x.ndim == 2 else sphere(x)

    expected = search(both, maxiter=20)
    with pytest.raises(RuntimeError, match="the end"):
        search(Counted(end_at=30), path, maxiter=20)
    search(both, path, maxiter=10, vectorized=True)
    resumed = search(both, path, maxiter=20)
    np.testing.assert_allclose(resumed.x, expected.x, rtol=1e-9)


def test_what_failed_is_not_forgotten(path):
    """Counts and the first traceback, though the search ended within that generation."""

    def fun(x):
        if x[0] > 3.2:
            raise ArithmeticError(f"no value at {x[0]!r}")
        return sphere(x)

    def options(end_at=None):
        counted = Counted(fun, end_at, KeyboardInterrupt)
        return {"fun": counted, "workers": fmnes.Evaluator(on_error="penalize"), "maxiter": 20}

    whole = options()
    expected = search(**whole)
    assert expected.nfailed > 0
    assert "ArithmeticError: no value at" in expected.first_error
    for end_at in range(1, 12):
        first, rest = options(end_at), options()
        search(path=path, resume="never", **first)
        assert digest(search(path=path, **rest)) == digest(expected)
        assert first["fun"].calls + rest["fun"].calls == whole["fun"].calls


def test_a_larger_budget_goes_on(path):
    first = search(sphere, path, maxfevals=200)
    again = search(sphere, path, maxfevals=200)
    assert (first.nfev, first.status, again.nfev) == (194, "maxfevals", 194)
    assert digest(search(sphere, path, maxfevals=400)) == digest(search(sphere, maxfevals=400))


def test_the_target_of_this_call_decides_about_success(path):
    """Also about runs that ended in an earlier call, which had no target or another one."""

    def fun(x):
        return 1 + sphere(x)

    targets = {None: True, 0.5: False, 2.0: True, 0.25: False}
    for ftarget, success in targets.items():
        result = search(fun, path, restarts=1, ftarget=ftarget)
        assert len(result.restarts) == 2
        assert result.success == success


def test_tolerances_may_change(path):
    rough = search(sphere, path, stopping=fmnes.Stopping(tolx=1e-3))
    assert rough.status == "tolx"
    fine = search(sphere, path, stopping=fmnes.Stopping(tolx=1e-6))
    assert digest(fine) == digest(search(sphere, stopping=fmnes.Stopping(tolx=1e-6)))


def test_time_that_was_spent_counts(path):
    """timeout is for the whole search, over all its processes."""
    calls = []

    def slow(x):
        calls.append(x)
        time.sleep(0.01)
        return sphere(x)

    assert search(slow, path, timeout=0.3).status == "timeout"
    spent = len(calls)
    assert search(slow, path, timeout=0.3).status == "timeout"
    assert len(calls) == spent
    assert search(slow, path, timeout=1e6, maxfevals=spent + 16).nfev > spent


def test_a_budget_that_ends_before_the_journal_does_not_lose_it(path):
    with pytest.raises(RuntimeError, match="the end"):
        search(Counted(end_at=75), path, maxiter=20)
    short = search(Counted(), path, maxiter=3)
    assert (short.nit, short.status) == (3, "maxiter")
    rest = Counted()
    assert digest(search(rest, path, maxiter=20)) == digest(search(sphere, maxiter=20))
    assert len(rest.calls) == 2 + 20 * 8 - 74  # x0 twice


def test_a_seed_that_was_not_given_is_kept_from_the_start(path):
    first, rest = Counted(end_at=3), Counted()
    with pytest.raises(RuntimeError, match="the end"):
        search(first, path, rng=None, maxiter=5)
    search(rest, path, rng=None, maxiter=5)
    assert len(rest.calls) == 2 + 5 * 8 - 2
    with pytest.raises(ValueError, match=r"^checkpoint: .*rng"):
        search(sphere, path, rng=3, maxiter=5)


# === Other problems ===


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"x0": [3.0] * 6}, r"the number of variables \(5 there\)"),
        ({"x0": [3.0] * 4 + [2.0]}, "x0"),
        ({"x0": np.full(5, 3.0, np.float32)}, "x0"),
        ({"method": "vd-cma"}, "method"),
        ({"method": fmnes.CRFMNES(variant="paper")}, "settings"),
        ({"method": fmnes.CRFMNES(D=[1, 1, 1, 1, 2])}, "settings"),
        ({"method": fmnes.CRFMNES(D=np.array([1.0, 1, 1, 1, 2]))}, "settings"),
        ({"bounds": [(-9, 9)] * 5}, "bounds"),
        ({"popsize": 20}, r"popsize \(8 there\)"),
        ({"rng": 2}, "rng"),
        ({"sigma0": 1.5}, "sigma0"),
        ({"restarts": 3}, "restarts"),
    ],
)
def test_the_search_of_another_problem_is_refused(path, change, named):
    options = {"x0": [3.0] * 5, "sigma0": 1.0, "rng": 1, "maxiter": 5, "checkpoint": path}
    fmnes.minimize(sphere, **options)
    before = {name: (path.parent / name).read_bytes() for name in names(path.parent)}
    with pytest.raises(ValueError, match=f"^checkpoint: .*{named}"):
        fmnes.minimize(sphere, **{**options, **change})
    assert {name: (path.parent / name).read_bytes() for name in names(path.parent)} == before


def test_resume_words(path):
    with pytest.raises(FileNotFoundError, match=f"^checkpoint: .*{path.name}"):
        search(sphere, path, resume="must")
    assert names(path.parent) == []


def test_never_starts_anew_and_leaves_nothing_of_the_old(path):
    search(sphere, path, maxiter=9)
    counted = Counted(end_at=3)
    with pytest.raises(RuntimeError, match="the end"):
        search(counted, path, sigma0=2.0, resume="never")
    rest = Counted()
    resumed = search(rest, path, sigma0=2.0, maxiter=5)
    assert digest(resumed) == digest(search(sphere, sigma0=2.0, maxiter=5))
    assert len(rest.calls) == 2 + 5 * 8 - 2


def test_a_search_whose_files_were_all_removed_starts_anew(path):
    search(sphere, path, maxiter=9)
    for name in names(path.parent):
        (path.parent / name).unlink()
    counted = Counted()
    assert search(counted, path, maxiter=5).nit == 5
    assert len(counted.calls) == 2 + 5 * 8


def test_a_missing_folder_is_named_before_any_evaluation(tmp_path):
    counted = Counted()
    with pytest.raises(FileNotFoundError, match=r"^checkpoint: .*none"):
        search(counted, tmp_path / "none" / "run.npz")
    assert counted.calls == []


# === Other candidates ===


def test_values_of_other_candidates_are_not_told(path, caplog):
    """If the arithmetic differs, the journal's values belong to other candidates."""
    with pytest.raises(RuntimeError, match="the end"):
        search(Counted(end_at=60), path, maxiter=20)

    def other(record):
        if record[0] == 1 and struct.unpack_from("<BIQ", record)[2] >= 4:  # opens a generation
            *opening, mean_max = struct.unpack("<BIQIdd", record)
            return struct.pack("<BIQIdd", *opening, np.nextafter(mean_max, 9))
        return record

    journal = path.with_name("run.npz.journal")
    journal.write_bytes(rewritten(journal.read_bytes(), other))
    rest = Counted()
    resumed = search(rest, path, maxiter=20)
    assert digest(resumed) == digest(search(sphere, maxiter=20))
    assert len(rest.calls) == (20 - 4) * 8
    (record,) = caplog.records
    assert "generation 4" in record.getMessage()
