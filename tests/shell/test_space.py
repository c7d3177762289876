"""Named variables: fmnes.Space in place of x0."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import fmnes
from fmnes import Choice, Int, Log, Real, Space

VARIABLES = {
    "lr": Log(1e-5, 1e-1),
    "layers": Int(1, 8),
    "width": Int(16, 100, step=16),
    "act": Choice(["relu", "gelu", "tanh"]),
    "bias": Choice([True, False]),
    "dropout": Real(0, 0.5, step=0.1),
    "w": Real(-1, 1, shape=(2, 3)),
    "shift": Real(),
    "kinds": Choice(["a", "b", "c", "d"], shape=2),
}


def space(**more):
    return Space(VARIABLES, **more)


def loss(p):
    """The optimum is 0."""
    return float(
        (math.log10(p["lr"]) + 3) ** 2
        + (p["layers"] - 3) ** 2
        + ((p["width"] - 48) / 16) ** 2
        + (p["act"] != "gelu")
        + p["bias"]
        + (p["dropout"] - 0.2) ** 2
        + ((p["w"] - np.arange(6).reshape(2, 3) / 10) ** 2).sum()
        + (p["shift"] + 2) ** 2
        + (p["kinds"] != np.array(["c", "a"])).sum()
    )


def check_values(p):
    assert list(p) == list(VARIABLES)
    assert type(p["lr"]) is float
    assert 1e-5 <= p["lr"] <= 1e-1
    assert type(p["layers"]) is int
    assert p["layers"] in range(1, 9)
    assert p["width"] in (16, 32, 48, 64, 80, 96)
    assert p["act"] in ("relu", "gelu", "tanh")
    assert type(p["bias"]) is bool
    assert min(abs(p["dropout"] - k / 10) for k in range(6)) < 1e-12
    assert p["w"].shape == (2, 3)
    assert p["w"].dtype == np.float64
    assert np.abs(p["w"]).max() <= 1
    assert type(p["shift"]) is float
    assert p["kinds"].shape == (2,)
    assert set(p["kinds"]) <= set("abcd")


# === minimize and Optimizer ===


@pytest.mark.parametrize("method", ["auto", "cr-fm-nes", "sep-cma", "vd-cma"])
def test_all_kinds_of_variables_are_optimized_together(method):
    result = fmnes.minimize(loss, space(), method=method, ftarget=1e-6, maxfevals=20_000, rng=1)
    assert result.success
    check_values(result.best)
    assert loss(result.best) == result.fun
    best = result.best
    assert (best["layers"], best["width"], best["act"], best["bias"]) == (3, 48, "gelu", False)
    assert best["kinds"].tolist() == ["c", "a"]


def test_the_objective_gets_python_values():
    seen = []
    fmnes.minimize(lambda p: seen.append(p) or loss(p), space(), maxiter=5, rng=1)
    assert len(seen) > 40
    for p in seen:
        check_values(p)
    assert {p["act"] for p in seen} == {"relu", "gelu", "tanh"}


def test_a_dataclass_may_take_the_values():
    @dataclass
    class Point:
        x: float
        n: int

    two = Space({"x": Real(-1, 1), "n": Int(0, 9)}, into=Point)
    result = fmnes.minimize(lambda p: p.x**2 + (p.n - 4) ** 2, two, maxfevals=200, rng=1)
    assert isinstance(result.best, Point)
    assert result.best.n == 4
    assert result.to_dict()["best"]["n"] == 4


@dataclass(slots=True)
class Slotted:
    x: float
    n: int


class Named(NamedTuple):
    x: float
    n: int


@pytest.mark.parametrize("into", [Slotted, Named])
def test_objects_of_a_class_are_accepted_wherever_a_dict_is(into):
    variables = {"x": Real(-1, 1), "n": Int(0, 9)}
    two = Space(variables, into=into, x0=into(0.25, 7))
    opt = fmnes.Optimizer(two, into(0.1, 2.0), rng=1, popsize=12)
    assert opt.result.best == into(0.25, 7)
    assert opt.result.to_dict()["best"] == {"x": 0.25, "n": 7}
    opt.inject(into(0.5, 3))
    opt.inject([into(0.75, 4)], [1.0])
    assert opt.ask()[:2] == [into(0.5, 3), into(0.75, 4)]
    points = [into(k / 20, k % 10) for k in range(20)]
    values = [p.x**2 + p.n for p in points]
    by_name = [{"x": p.x, "n": p.n} for p in points]
    means = [fmnes.Optimizer((two, X, values), rng=1).result.mean for X in (points, by_name)]
    np.testing.assert_array_equal(*means)
    with pytest.raises(TypeError, match="x0: expected a dict by name, got Named"):
        Space(variables, into=Slotted, x0=Named(0.25, 7))


@pytest.mark.parametrize("restarts", [0, 3])
def test_a_search_that_resumes_has_objects_of_the_class(tmp_path, restarts):
    """A file has no class: that of this call counts, also for runs that had ended."""
    two = Space({"x": Real(-1, 1), "n": Int(0, 9)}, into=Named)

    def search(**options):
        return fmnes.minimize(
            *(lambda p: (p.x - 0.5) ** 2 + (p.n - 4) ** 2, two),
            restarts=restarts,
            maxfevals=1500,
            rng=1,
            **options,
        )

    path, whole = tmp_path / "run.npz", search()
    search(checkpoint=path, callback=lambda result: result.nfev > (1200 if restarts else 100))
    resumed = search(checkpoint=path, callback=lambda result: not isinstance(result.best, Named))
    assert isinstance(resumed.best, Named)
    assert resumed.best == whole.best
    assert resumed.nfev == whole.nfev
    assert len(resumed.restarts) == len(whole.restarts) >= (2 if restarts else 1)


def test_ask_returns_dicts():
    opt = fmnes.Optimizer(space(), rng=1, maxfevals=300)
    while not opt.stop():
        candidates = opt.ask()
        assert len(candidates) == opt.popsize
        check_values(candidates[0])
        assert opt.ask(rows=slice(1, 2))[0]["lr"] == candidates[1]["lr"]
        opt.tell([loss(p) for p in candidates])
    assert loss(opt.result.best) == opt.result.fun
    with pytest.raises(ValueError, match="tell"):
        opt.tell(opt.ask(), [1.0] * opt.popsize)


def test_vectorized_functions_get_arrays():
    def batch(p):
        assert p["lr"].shape == (len(p["lr"]),)
        assert p["w"].shape == (len(p["lr"]), 2, 3)
        rows = [{name: values[i] for name, values in p.items()} for i in range(len(p["lr"]))]
        return [loss(row) for row in rows]

    more = {"maxfevals": 200, "rng": 1}
    vectorized = fmnes.minimize(batch, space(), vectorized=True, **more)
    np.testing.assert_array_equal(vectorized.x, fmnes.minimize(loss, space(), **more).x)


def test_x0_and_sigma0_by_name():
    start = space(x0={"lr": 1e-3, "act": "tanh", "bias": True, "w": 0.5, "kinds": ["b", "d"]})
    values = start.decode(fmnes.Optimizer(start, rng=1).result.mean)
    assert values["lr"] == pytest.approx(1e-3)
    assert (values["act"], values["bias"], values["kinds"].tolist()) == ("tanh", True, ["b", "d"])
    assert (values["w"] == 0.5).all()
    assert values["shift"] == 0
    opt = fmnes.Optimizer(start, {"lr": 0.1, "w": 0.01, "width": 32}, rng=1)
    # Steps are coordinates: 32 is two steps. The initial direction v adds a few percent.
    assert opt.result.stds[[0, 2]] == pytest.approx([0.1, 2.0], rel=0.2)


def test_a_result_continues_with_its_variables(tmp_path):
    first = fmnes.minimize(loss, space(), maxfevals=300, rng=1)
    first.save(tmp_path / "r.json")
    loaded = fmnes.Result.load(tmp_path / "r.json")
    assert loaded.space == first.space
    assert repr(loaded.best) == repr(first.best)
    seen = []
    more = fmnes.minimize(lambda p: seen.append(p) or loss(p), loaded, maxfevals=300, rng=2)
    check_values(seen[0])
    assert more.fun <= first.fun


def test_workers_and_resumed_runs_have_the_same_result(tmp_path):
    more = {"maxfevals": 400, "rng": 1}
    plain = fmnes.minimize(loss, space(), **more)
    with_workers = fmnes.minimize(loss, space(), workers=2, **more)
    np.testing.assert_array_equal(with_workers.x, plain.x)
    path = tmp_path / "c.npz"
    fmnes.minimize(loss, space(), maxfevals=150, rng=1, checkpoint=path)
    resumed = fmnes.minimize(loss, space(), checkpoint=path, **more)
    np.testing.assert_array_equal(resumed.x, plain.x)
    assert repr(resumed.best) == repr(plain.best)
    other = Space({**VARIABLES, "act": Choice(["relu", "gelu", "elu"])})
    with pytest.raises(ValueError, match="variables of the Space"):
        fmnes.minimize(loss, other, checkpoint=path, **more)


def test_a_saved_optimizer_keeps_its_variables(tmp_path):
    opt = fmnes.Optimizer(space(), rng=1)
    opt.tell([loss(p) for p in opt.ask()])
    opt.save(tmp_path / "s.npz")
    assert repr(fmnes.Optimizer.load(tmp_path / "s.npz").ask()) == repr(opt.ask())


def test_constraints_that_the_objective_returns():
    two = Space({"x": Real(0, 9), "n": Int(0, 9)})
    result = fmnes.minimize(
        lambda p: (-p["x"] - p["n"], [p["x"] + p["n"] - 7.5]), two, constraints=1,
        maxfevals=2000, rng=1,
    )  # fmt: skip
    assert result.fun == pytest.approx(-7.5, abs=0.05)


def test_constraint_functions_get_named_values():
    optimize = pytest.importorskip("scipy.optimize")
    two = Space({"x": Real(0, 9), "n": Int(0, 9)})
    more = {"maxfevals": 2000, "rng": 1}
    as_dict = {"type": "ineq", "fun": lambda p: 7.5 - p["x"] - p["n"]}
    as_object = optimize.NonlinearConstraint(lambda p: p["x"] + p["n"], -np.inf, 7.5)
    for constraints in (as_dict, [as_object]):
        result = fmnes.minimize(lambda p: -p["x"] - p["n"], two, constraints=constraints, **more)
        assert result.constr_violation == 0
        assert result.fun == pytest.approx(-7.5, abs=0.05)


# === Choices ===


def test_about_as_many_evaluations_as_catcma_of_the_package_cmaes():
    """Five reals and ten choices of five options, which interact: CatCMA's kind of problem."""
    cmaes = pytest.importorskip("cmaes")
    reals, choices, options = 5, 10, 5

    def value(x, picked):
        return float(((x - 0.1 * picked[:reals]) ** 2).sum() + (picked != 0).sum())

    spent, best = 0, math.inf
    peer = cmaes.CatCMA(np.full(reals, 3.0), 1.0, np.full(choices, options), seed=1)
    while best > 1e-6 and spent < 30_000:
        told = []
        for _ in range(peer.population_size):
            x, c = peer.ask()
            told.append(((x, c), value(x, np.argmax(c, axis=1))))
        peer.tell(told)
        spent += len(told)
        best = min(best, *(f for _, f in told))
    mine = Space(
        {"x": Real(shape=reals), "c": Choice(range(options), shape=choices)}, x0={"x": 3.0}
    )
    result = fmnes.minimize(
        lambda p: value(p["x"], p["c"].astype(int)), mine, {"x": 1.0},
        ftarget=1e-6, maxfevals=30_000, rng=1,
    )  # fmt: skip
    assert result.success
    assert result.nfev < 1.3 * spent


# === Files ===


def test_a_space_becomes_json_and_returns():
    one = space(x0={"act": "tanh", "w": np.full((2, 3), 0.25)})
    text = json.dumps(one.to_dict(), allow_nan=False)
    assert Space.from_dict(json.loads(text)) == one
    assert Space.from_dict({"x": {"type": "real", "low": -1, "high": 1}}) == Space(
        {"x": Real(-1, 1)}
    )


def test_infinite_options_are_numbers_in_files_too(tmp_path):
    """The order of a norm is 1, 2 or infinity, which JSON does not know."""
    norms = Space({"p": Choice([1, 2, np.inf, "inf"]), "x": Real(0, 1)}, x0={"p": np.inf})
    read = Space.from_dict(json.loads(json.dumps(norms.to_dict(), allow_nan=False)))
    assert read == norms
    assert read.variables["p"].options == (1, 2, np.inf, "inf")
    simple = Space({"p": Choice([1, 2, np.inf]), "x": Real(0, 1)}, x0={"p": np.inf})
    result = fmnes.minimize(lambda v: v["x"] - v["p"], simple, maxfevals=100, rng=1)
    result.save(tmp_path / "result.json")
    loaded = fmnes.Result.load(tmp_path / "result.json")
    assert loaded.best["p"] == result.best["p"] == np.inf
    best = json.loads((tmp_path / "result.json").read_text())["best"]
    assert (Space(simple.variables, x0=best).start() == result.x).all()


def test_the_command_line_reads_a_space(tmp_path, monkeypatch, capsys):
    from fmnes.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.json").write_text(
        json.dumps(
            {"n": {"type": "int", "low": 0, "high": 9}, "x": {"type": "real", "low": -1, "high": 1}}
        )
    )
    (tmp_path / "named_objective.py").write_text(
        "def f(p):\n    return (p['n'] - 4) ** 2 + p['x'] ** 2\n"
    )
    (tmp_path / "program.py").write_text(
        "import json, sys\np = json.load(sys.stdin)\nprint((p['n'] - 4) ** 2 + p['x'] ** 2)\n"
    )
    arguments = [
        "--space",
        "space.json",
        "--maxfevals",
        "120",
        "--rng",
        "1",
        "--quiet",
        "--no-plot",
    ]
    assert main(["run", "named_objective:f", *arguments, "--out", "a"]) == 0
    found = json.loads((tmp_path / "a/result.json").read_text())
    assert found["best"]["n"] == 4
    assert main(["resume", "a", "--maxfevals", "200", "--quiet", "--no-plot"]) == 0
    import sys

    command = ["--command", f"{sys.executable} program.py"]
    assert main(["run", *command, *arguments[:3], "20", *arguments[4:], "--out", "b"]) == 0
    assert "best: {'n'" in capsys.readouterr().out
    assert main(["run", "named_objective:f", *arguments, "--x0", "1"]) == 2
    assert main(["run", "named_objective:f", *arguments, "--dim", "2"]) == 2
    sigma0 = ["--sigma0", "n=2", "x=0.1"]
    assert main(["run", "named_objective:f", *arguments, *sigma0, "--out", "c"]) == 0
    assert json.loads((tmp_path / "c/config.json").read_text())["sigma0"] == {"n": 2, "x": 0.1}
    assert main(["resume", "c", "--maxfevals", "200", "--quiet", "--no-plot"]) == 0
    assert main(["run", "named_objective:f", *arguments, "--sigma0", "0.3", "--out", "d"]) == 0
    assert main(["run", "named_objective:f", *arguments, "--sigma0", "n=a", "--out", "e"]) == 2
    one = {"n": {"type": "int", "low": 0, "high": 9}}
    (tmp_path / "space.json").write_text(json.dumps(one))
    (tmp_path / "one_objective.py").write_text("def f(p):\n    return p['n']\n")
    assert main(["run", "one_objective:f", *arguments, "--out", "f"]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_first_generation_tries_other_step_sizes_in_a_space(seed):
    """Sigma0 is left out, and far too small: the trials build single candidates."""
    named = Space({"x": Real(shape=6), "act": Choice(["a", "b", "c"])})

    def far(p):
        return ((p["x"] - 40) ** 2).sum() + (p["act"] != "a")

    result = fmnes.minimize(far, named, maxfevals=800, rng=seed)
    assert result.fun < 1e-3 * far({"x": np.zeros(6), "act": "a"})
    alone = Space({"act": Choice(["a", "b", "c"])})
    result = fmnes.minimize(lambda p: "bca".index(p["act"]), alone, maxfevals=200, rng=seed)
    assert result.best == {"act": "b"}


def test_constraints_with_a_tolerance_in_a_space():
    at_least = {"type": "ineq", "fun": lambda p: p["x"] - 0.5}
    constraints = fmnes.Constraints(at_least, tolerance=1e-3)
    named = Space({"x": Real(0, 1), "n": Int(0, 5)})
    result = fmnes.minimize(
        lambda p: p["x"] + p["n"], named, constraints=constraints, maxfevals=400, rng=1
    )
    assert 0.499 <= result.best["x"] < 0.4995  # further than the constraint without a tolerance
    assert result.best["n"] == 0


def test_options_in_an_array():
    assert Choice(np.array([1, 2, 4])) == Choice([1, 2, 4])
    assert Choice(np.array(["a", "b"])) == Choice(["a", "b"])
    assert Choice([1, True, 0]).options == (1, True, 0)


# === Refusals ===


def kind(*arguments, **more) -> Any:
    cls = arguments[0]
    return lambda: cls(*arguments[1:], **more)


WRONG = [
    (kind(Real, 1, 1), "Real: expected low < high, got 1.0 and 1.0"),
    (kind(Int, 3, 3), "Int: expected low < high"),
    (kind(Log, 1, 1), "Log: expected low < high"),
    (kind(Log, 0, 1), "low: expected a number > 0, got 0"),
    (kind(Log, 1, math.inf), "high: expected a finite number"),
    (kind(Int, 0.5, 3), "low: expected a whole number, got 0.5"),
    (kind(Int, 0, math.inf), "high: expected a whole number, got inf"),
    (kind(Int, 0, 9, step=10), "step: expected at most 9"),
    (kind(Real, 0, 1, step=2), "step: expected two finite bounds"),
    (kind(Real, step=1), "step: expected two finite bounds"),
    (kind(Real, math.nan, 1), "low: expected a number, got nan"),
    (kind(Real, 0, 1, shape=(0,)), "shape: expected at least 1, got 0"),
    (kind(Real, 0, 1, shape="a"), "shape: expected a tuple"),
    (kind(Choice, ["a"]), "options: expected two or more"),
    (kind(Choice, ["a", "a"]), "options: expected two or more different"),
    (kind(Choice, "ab"), "options: expected a list"),
    (kind(Choice, [1, 1.0]), "options: expected two or more different"),
    (kind(Choice, [1.0, math.nan]), "options: expected numbers that can be compared, got nan"),
    (kind(Choice, np.ones((2, 2))), "options: expected a list"),
    (kind(fmnes.Optimizer, {"a": Int(0, 3)}), r"x0: expected .*got .'a': .*fmnes.Space"),
    (kind(Choice, [print, len]), "options: expected strings, numbers"),
    (kind(Space, {}), "variables: expected a dict of names"),
    (kind(Space, {"a": 3}), r"variables\['a'\]: expected fmnes.Real"),
    (kind(Space, {1: Int(0, 1)}), "variables: expected names that are strings, got 1"),
    (kind(space, x0={"act": "elu"}), r"x0\['act'\]: expected one of 'relu', .*got 'elu'"),
    (kind(space, x0={"layer": 3}), "x0: expected names among .*did you mean 'layers'"),
    (kind(space, x0={"layers": 9}), r"x0\['layers'\]: expected numbers between 1 and 8"),
    (kind(space, x0={"w": [1, 2]}), r"x0\['w'\]: expected shape \(2, 3\)"),
    (kind(space, x0={"lr": "a"}), r"x0\['lr'\]: expected numbers"),
    (kind(space, x0={"shift": math.nan}), r"x0\['shift'\]: expected finite numbers"),
    (kind(space, x0=[1]), "x0: expected a dict by name"),
    (kind(space, into=3), "into: expected a function, got 3"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_variables_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sigma0": {"atc": 1.0}}, "sigma0: expected names among"),
        ({"sigma0": {"act": 1.0}}, r"sigma0\['act'\]: expected none for a Choice"),
        ({"sigma0": {"lr": -1.0}}, r"sigma0\['lr'\]: expected finite numbers > 0"),
        ({"bounds": [(0, 1)]}, "bounds: expected None with a Space"),
        ({"integrality": 1}, "integrality: expected None with a Space"),
        ({"constraints": fmnes.Bounds(0, 1)}, "constraints: expected a number, a dict"),
    ],
)
def test_wrong_arguments_beside_a_space_are_refused(arguments, message):
    def never(p):
        raise AssertionError("evaluated before the arguments were checked")

    with pytest.raises((TypeError, ValueError), match=message):
        fmnes.minimize(never, space(), **arguments)


STEPS = [(0, 0.3, 0.1), (0, 2.1, 0.7), (-1, 1, 0.4), (0.1, 0.9, 0.1), (1e-3, 7e-3, 1e-3)]


@pytest.mark.parametrize(("low", "high", "step"), STEPS)
def test_all_values_of_a_range_with_steps_are_accepted(low, high, step):
    """The upper bound is a whole number of steps away, up to rounding errors."""
    count = round((high - low) / step)
    for k in range(count + 1):
        wanted = high if k == count else low + k * step
        searched = Space({"a": Real(low, high, step=step), "b": Real()}, x0={"a": wanted})
        opt = fmnes.Optimizer(searched, rng=1)
        opt.inject({"a": wanted, "b": 0.0})
        assert opt.ask()[0]["a"] == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("variable", [Real(0, 1, step=0.3), Int(0, 10, step=3)])
def test_numbers_beyond_the_last_step(variable):
    """x0 starts at the last step; an injected point belongs to its own value and is refused."""
    opt = fmnes.Optimizer(Space({"a": variable}, x0={"a": variable.high}), rng=1)
    assert opt.result.best["a"] == pytest.approx(0.9 * variable.high)
    with pytest.raises(ValueError, match=r"x\['a'\]: expected values of .*step="):
        opt.inject({"a": variable.high})
