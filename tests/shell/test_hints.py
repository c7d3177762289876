"""Messages that say what to do: the names that a user needs are in them."""

import signal

import numpy as np
import pytest

import fmnes
from fmnes import _minimize
from fmnes.records.merging import error_summary
from fmnes.records.status import _NOTHING_YET, _SO_FAR, Status

SPACE = fmnes.Space({"lr": fmnes.Log(1e-4, 1.0), "layers": fmnes.Int(1, 5)})


def sphere(x):
    return float((x**2).sum())


REFUSED = {
    "a dict for x0": ({"x0": {"lr": 0.1}}, r"fmnes\.Space"),
    "nothing for x0": ({"x0": None}, "got None"),
    "maximize": ({"x0": [0.0], "maximize": True}, "negative"),
    "a gradient": ({"x0": [0.0], "jac": sphere}, "values only"),
    "a folder as checkpoint": ({"x0": [0.0], "checkpoint": "."}, "checkpoint: expected"),
    "a number for x0": ({"x0": 3.0}, r"write \[3\.0\]"),
    "bounds for sigma0": ({"x0": [0.0] * 3, "sigma0": [(-1, 1)] * 3}, "bounds="),
    "sides as rows": ({"x0": [0.0, 0.0], "bounds": [[-5, -3], [5, 5]]}, r"fmnes\.Bounds\("),
    "sides that cross": ({"x0": [0.0, 0.0], "bounds": [[1, -3], [5, 5]]}, r"fmnes\.Bounds\("),
    "sides with nothing between": (
        {"x0": [-5.0, 5.0], "bounds": [[-5, -5], [5, 5]]},
        r"fmnes\.Bounds\(",
    ),
    "sides of a third variable": (
        {"x0": [0.0] * 3, "bounds": [[0] * 3, [1] * 3]},
        r"fmnes\.Bounds",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_often_mistaken(case):
    arguments, expected = REFUSED[case]
    with pytest.raises((OSError, TypeError, ValueError), match=expected):
        fmnes.minimize(sphere, **arguments)


@pytest.mark.parametrize("name", ["restarts", "workers", "callback", "checkpoint", "progress"])
def test_an_optimizer_sends_what_it_lacks_to_minimize(name):
    with pytest.raises(TypeError, match=rf"^{name}: .*fmnes\.minimize"):
        fmnes.Optimizer([1.0], 1.0, **{name: 1})
    with pytest.raises(TypeError, match=r"^x0: .*function.*ask\(\)"):
        fmnes.Optimizer(sphere, [1.0])


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_pair_without_constraints(vectorized):
    def fun(x):
        return (x**2).sum(axis=-1), 1 - x[..., 0]

    with pytest.raises(TypeError, match="constraints=m"):
        fmnes.minimize(fun, [1.0, 2.0], 1.0, vectorized=vectorized)


@pytest.mark.parametrize(
    "fun", [sphere, lambda p: p[0], lambda p: p["rate"], lambda p: p.lr, lambda p: p.mean()]
)
@pytest.mark.parametrize("workers", [None, fmnes.Evaluator()])
def test_an_objective_that_misreads_its_named_values(fun, workers):
    with pytest.raises(Exception, match=r".") as raised:
        fmnes.minimize(fun, SPACE, workers=workers, rng=1)
    text = "\n".join([str(raised.value), *raised.value.__notes__])
    assert all(name in text for name in ("'lr'", "'layers'"))


@pytest.mark.parametrize("workers", [None, fmnes.Evaluator()])
def test_an_objective_of_several_arguments(workers):
    with pytest.raises(Exception, match="missing") as raised:
        fmnes.minimize(lambda a, b: a + b, [1.0, 2.0], workers=workers, rng=1)
    assert "fun(x, *args)" in "\n".join([str(raised.value), *raised.value.__notes__])

    def inside(x):
        return len(3)

    with pytest.raises(TypeError) as other:
        fmnes.minimize(inside, [1.0, 2.0], rng=1)
    assert not any("fun(x" in note for note in getattr(other.value, "__notes__", []))


def test_other_errors_get_no_such_note():
    with pytest.raises(ZeroDivisionError) as raised:
        fmnes.minimize(lambda p: 1 / 0, SPACE, rng=1)
    assert not any("'lr'" in note for note in getattr(raised.value, "__notes__", []))


def test_if_every_evaluation_failed_the_message_has_the_first_error():
    def fun(x):
        raise OSError("no licence")

    policy = fmnes.Evaluator(on_error="penalize")
    result = fmnes.minimize(fun, [1.0, 2.0], 1.0, workers=policy, rng=1)
    assert (result.status, result.nfailed) == ("infeasible", result.nfev)
    assert "OSError: no licence" in result.message
    assert "OSError" not in fmnes.minimize(lambda x: np.nan, [1.0, 2.0], 1.0, rng=1).message


def test_an_error_in_one_line():
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 3\n    1/0\nKeyError: 3\na note\n'
    )
    assert error_summary(text) == "KeyError: 3 a note"
    assert error_summary("worker lost") == "worker lost"


@pytest.mark.parametrize("calls", [0, 1])
def test_an_interrupt_before_any_value_does_not_praise_x(calls):
    def fun(x):
        seen.append(1)
        if len(seen) > calls:
            raise KeyboardInterrupt
        return sphere(x)

    seen = []
    result = fmnes.minimize(fun, [1.0, 2.0], 1.0, rng=1)
    assert (result.status, result.nfev) == ("interrupted", calls)
    assert (_SO_FAR in result.message, _NOTHING_YET in result.message) == (calls > 0, calls == 0)


def test_a_search_that_ends_before_any_value_says_so(tmp_path):
    """Its time was over when it was resumed."""

    def interrupted(x):
        raise KeyboardInterrupt

    path = tmp_path / "run.npz"
    fmnes.minimize(interrupted, [1.0, 2.0], 1.0, rng=1, checkpoint=path)
    result = fmnes.minimize(sphere, [1.0, 2.0], 1.0, rng=1, checkpoint=path, timeout=1e-9)
    assert (result.status, result.nfev, _NOTHING_YET in result.message) == ("timeout", 0, True)


@pytest.mark.parametrize("name", ["read_start", "read_point", "read_restarts"])
def test_an_interrupt_while_the_search_is_set_up_gives_a_result(name, monkeypatch):
    """It does not show the insides of the packages that are imported meanwhile."""
    usual = getattr(_minimize, name)

    def interrupted(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return usual(*args, **kwargs)

    monkeypatch.setattr(_minimize, name, interrupted)
    result = fmnes.minimize(sphere, [1.0, 2.0], 1.0, rng=1)
    assert (result.status, result.nfev) == (Status.INTERRUPTED, 0)


def test_a_constraint_that_hangs_at_the_start_can_be_interrupted():
    def hangs(x):
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it was not interrupted")

    with pytest.raises(KeyboardInterrupt):
        fmnes.minimize(sphere, [1.0, 2.0], constraints={"type": "ineq", "fun": hangs})
