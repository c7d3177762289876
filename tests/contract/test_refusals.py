"""Wrong arguments: refused before the first evaluation, with a message of one form.

The form is "NAME: expected ..., got ...": the argument, what was expected and what came.
"""

import math
import re

import numpy as np
import pytest
from scipy import optimize

import fmnes
from fmnes import _checks as checks

DIM = 6
X0 = np.full(DIM, 3.0)
BAD = (TypeError, ValueError)  # where either says enough


def assert_refused(named, error, came, call, **arguments):
    """The error names the argument and what came."""
    with pytest.raises(error) as caught:
        call(**arguments)
    name, expected, rest = str(caught.value).partition(": expected ")
    assert expected, caught.value
    assert "\n" not in rest
    assert len(rest) < 400
    assert name.partition("[")[0].partition(".")[0] == named
    assert came in rest.partition(", got ")[2]


def never(x):
    raise AssertionError("evaluated before the arguments were checked")


# === minimize ===

# The argument that is named, the arguments, the error, and what the message says came.
MINIMIZE = [
    ("fun", {"fun": 3}, TypeError, "3"),
    ("x0", {"x0": []}, ValueError, "shape (0,)"),
    ("x0", {"x0": X0[:, None]}, ValueError, "shape (6, 1)"),
    ("x0", {"x0": X0[None, :]}, ValueError, "shape (1, 6)"),
    ("x0", {"x0": 3.0}, ValueError, "shape ()"),
    ("x0", {"x0": [3.0, np.nan]}, ValueError, "x0[1] = nan"),
    ("x0", {"x0": np.ma.array([3.0, 1.0], mask=[0, 1])}, ValueError, "x0[1] = nan"),
    ("x0", {"x0": [np.inf, 3.0]}, ValueError, "x0[0] = inf"),
    ("x0", {"x0": X0 * 1j}, TypeError, "complex128"),
    ("x0", {"x0": [1j, 2.0]}, TypeError, "[1j, 2.0]"),
    ("x0", {"x0": ["a", "b"]}, TypeError, "['a', 'b']"),
    ("x0", {"x0": ["1", "2"]}, TypeError, "['1', '2']"),  # text that NumPy would convert
    ("x0", {"x0": [[1.0], [1.0, 2.0]]}, TypeError, "[[1.0], [1.0, 2.0]]"),
    ("x0", {"x0": {}}, TypeError, "{}"),
    ("x0", {"x0": np.array("3")}, TypeError, "dtype <U1"),
    ("x0", {"x0": [10**400]}, TypeError, "list"),
    ("x0", {"x0": None}, BAD, ""),
    ("x0", {"x0": ([[1.0, np.nan], [0.0, 1.0]], [1.0, 2.0])}, ValueError, "[0, 1] = nan"),
    ("x0", {"x0": ([[1.0, 2.0], [0.0, 1.0]], [np.inf, np.nan])}, ValueError, "inf and 1 others"),
    ("x0", {"x0": X0.astype(np.float16)}, TypeError, "float16"),
    ("sigma0", {"sigma0": 0}, ValueError, "sigma0 = 0.0"),
    ("sigma0", {"sigma0": -1.0}, ValueError, "sigma0 = -1.0"),
    ("sigma0", {"sigma0": np.nan}, ValueError, "sigma0 = nan"),
    ("sigma0", {"sigma0": np.inf}, ValueError, "sigma0 = inf"),
    ("sigma0", {"x0": np.full(3, 1e17)}, ValueError, "2;"),  # below the spacing of numbers at x0
    ("sigma0", {"x0": np.full(3, 1e8, np.float32)}, ValueError, "2;"),
    ("sigma0", {"sigma0": 1e307}, ValueError, "1e+307"),  # no room for samples
    ("sigma0", {"sigma0": 1e-309}, ValueError, "1e-309"),
    ("sigma0", {"x0": np.zeros(3, np.float32), "sigma0": 1e50}, ValueError, "1e+50"),
    ("sigma0", {"x0": np.zeros(3, np.float32), "sigma0": 1e-50}, ValueError, "1e-50"),
    (
        "sigma0",  # the ratio overflows
        {"x0": np.zeros(2, np.float32), "sigma0": [1e-30, 1e30]},
        ValueError,
        "1e-30 and 1e+30",
    ),
    ("x0", {"x0": np.full(3, -1e307)}, ValueError, "1e+307"),
    ("x0", {"x0": np.full(3, 1e37, np.float32)}, ValueError, "1e+37"),
    ("sigma0", {"sigma0": "0.5"}, TypeError, "'0.5'"),
    ("sigma0", {"sigma0": 1j}, TypeError, "1j"),
    ("sigma0", {"sigma0": np.ones(6) * 1j}, TypeError, "complex128"),
    ("sigma0", {"sigma0": [1.0] * 7}, ValueError, "shape (7,)"),
    ("sigma0", {"sigma0": [1, 1, 0, 1, 1, 1]}, ValueError, "sigma0[2] = 0"),
    ("args", {"args": [1]}, TypeError, "[1]"),
    ("method", {"method": "cmaes"}, ValueError, "'cmaes' (did you mean 'cma-es'?)"),
    ("method", {"method": "CRFMNES"}, ValueError, "(did you mean 'cr-fm-nes'?)"),
    ("method", {"method": "CMA-ES"}, ValueError, "(did you mean 'cma-es'?)"),
    *(
        ("method", {"method": name}, ValueError, f"{name!r} (a method of scipy.optimize.minimize)")
        for name in ("Nelder-Mead", "nelder-mead", "L-BFGS-B", "CG", "trust-constr")
    ),
    *(
        ("method", {"method": name}, ValueError, f"{name!r} (see scipy.optimize.{name})")
        for name in ("differential_evolution", "dual_annealing")
    ),
    ("method", {"method": "CMA"}, ValueError, "'CMA' (did you mean 'cma-es'?)"),
    ("method", {"method": fmnes.CRFMNES}, TypeError, "CRFMNES"),
    ("method", {"method": None}, TypeError, "None"),
    ("bounds", {"bounds": [(0, 9)] * 5}, ValueError, "5 rows of length 2"),
    ("bounds", {"bounds": [[0] * 6, [9] * 6]}, ValueError, "write fmnes.Bounds(lower, upper)"),
    ("bounds", {"bounds": [(0, 9, 9)] * 6}, ValueError, "6 rows of length 3"),
    ("bounds", {"bounds": [("0", "9")] * 6}, TypeError, "[('0', '9'), ('0', '9')"),
    ("bounds", {"bounds": [(9, 0)] * 6}, ValueError, "(9.0, 0.0)"),
    ("bounds", {"bounds": [(np.nan, 9)] * 6}, ValueError, "NaN"),
    ("bounds", {"bounds": 3}, TypeError, "3"),
    ("bounds", {"integrality": 1}, ValueError, "(-inf, inf)"),
    ("bounds", {"integrality": 1, "bounds": [(0, 9)] * 5 + [(0, None)]}, ValueError, "(0.0, inf)"),
    ("bounds", {"integrality": 1, "bounds": [(0, 1e17)] * 6}, ValueError, "(0.0, 1e+17)"),
    ("bounds", {"integrality": 1, "bounds": [(2.9, 3.1)] * 5 + [(2.1, 2.9)]}, ValueError, "(2.1"),
    ("integrality", {"integrality": [0] * 5}, ValueError, "shape (5,)"),
    ("integrality", {"integrality": [[0] * 6]}, ValueError, "shape (1, 6)"),
    ("integrality", {"integrality": 2}, ValueError, "2"),
    ("integrality", {"integrality": [0, 1, 0, 0, 0, 0.5]}, ValueError, "0.5"),
    ("integrality", {"integrality": "int"}, TypeError, "'int'"),
    ("bounds", {"bounds": [0, 2]}, TypeError, "[0, 2]"),
    ("bounds", {"bounds": "abc"}, TypeError, "'abc'"),
    ("bounds", {"bounds": fmnes.Bounds([0, 0], 9)}, ValueError, "shape (2,)"),
    ("bounds", {"bounds": [(3, 3)] * 6}, ValueError, "none"),
    ("bounds", {"bounds": [(-1e308, 1e308)] * 6}, ValueError, "-1e+308"),
    ("bounds", {"bounds": [(-1e308, 1e308)] * 6, "sigma0": None}, ValueError, "-1e+308"),
    ("bounds", {"bounds": [(0, 1e37)] * 6, "x0": np.ones(6, np.float32)}, ValueError, "1e+37"),
    ("bounds", {"bounds": [(0, 1e-170)] * 6, "x0": np.zeros(6)}, ValueError, "1e-171"),
    ("bounds", {"bounds": [(0, 1e160)] * 6, "sigma0": 1e160}, ValueError, "1e+159"),
    (
        "bounds",  # no number of 32 bits between them
        {"bounds": [(300.00001, 300.00002)] * 6, "x0": np.full(6, 300, np.float32)},
        ValueError,
        "(300.00001, 300.00002)",
    ),
    ("x0", {"bounds": [(0, 1)] * 6}, ValueError, "x0[0] = 3.0 outside [0.0, 1.0]"),
    ("popsize", {"popsize": 9}, ValueError, "9"),
    ("popsize", {"popsize": 1}, ValueError, "1"),
    ("popsize", {"popsize": 2**31}, ValueError, "2147483648"),
    ("popsize", {"popsize": -4}, ValueError, "-4"),
    ("popsize", {"popsize": 4.5}, TypeError, "4.5"),
    ("popsize", {"popsize": "8"}, TypeError, "'8'"),
    ("popsize", {"popsize": True}, TypeError, "True"),
    ("ftarget", {"ftarget": np.nan}, ValueError, "nan"),
    ("ftarget", {"ftarget": "0"}, TypeError, "'0'"),
    ("ftarget", {"ftarget": False}, TypeError, "False"),
    ("ftarget", {"ftarget": -(10**400)}, ValueError, "int"),
    ("ftarget", {"ftarget": np.complex128(1)}, TypeError, "1+0j"),
    ("maxfevals", {"maxfevals": 1}, ValueError, "1: x0 is evaluated, one generation has"),
    ("maxfevals", {"maxfevals": "9"}, TypeError, "'9'"),
    ("maxfevals", {"maxfevals": np.inf}, TypeError, "inf"),
    ("maxiter", {"maxiter": 0}, ValueError, "0"),
    ("maxiter", {"maxiter": "3"}, TypeError, "'3'"),
    ("maxiter", {"maxiter": True}, TypeError, "True"),
    ("timeout", {"timeout": 0}, ValueError, "0"),
    ("timeout", {"timeout": np.nan}, ValueError, "nan"),
    ("timeout", {"timeout": True}, TypeError, "True"),
    ("timeout", {"timeout": "60"}, TypeError, "'60'"),
    ("stopping", {"stopping": {}}, TypeError, "{}"),
    ("vectorized", {"vectorized": "no"}, TypeError, "'no'"),
    ("vectorized", {"vectorized": 1}, TypeError, "1"),
    ("workers", {"workers": 0}, ValueError, "0"),
    ("workers", {"workers": -2}, ValueError, "-2"),
    ("workers", {"workers": "2"}, TypeError, "'2'"),
    ("workers", {"workers": 2, "vectorized": True}, ValueError, "2"),
    ("asynchronous", {"workers": 2, "asynchronous": 1}, TypeError, "1"),
    ("workers", {"asynchronous": True}, ValueError, "None"),
    (
        "workers",
        {"workers": fmnes.Evaluator.from_map(lambda f, x: map(f, x)), "asynchronous": True},
        ValueError,
        "from_map",
    ),
    (
        "chunksize",
        {"workers": fmnes.Evaluator(2, chunksize=3), "asynchronous": True},
        ValueError,
        "3",
    ),
    ("restarts", {"restarts": -1}, ValueError, "-1"),
    ("restarts", {"restarts": "2"}, TypeError, "'2'"),
    ("restarts", {"restarts": "ipop"}, TypeError, "'ipop' (for a schedule, pass IPOP(9)"),
    ("restarts", {"restarts": True}, TypeError, "True"),
    ("restarts", {"restarts": fmnes.IPOP}, TypeError, "IPOP"),
    ("rng", {"rng": "seed"}, BAD, "'seed'"),
    ("rng", {"rng": 1.5}, BAD, "1.5"),
    ("rng", {"rng": -1}, BAD, "-1"),
    ("rng", {"rng": True}, TypeError, "True"),
    ("rng", {"rng": np.bool_(False)}, TypeError, "False"),
    ("callback", {"callback": 3}, TypeError, "3"),
    ("callback", {"callback": lambda: None}, TypeError, "parameters ()"),
    ("callback", {"callback": lambda a, b, c: None}, TypeError, "parameters (a, b, c)"),
    ("progress", {"progress": "yes"}, TypeError, "'yes'"),
    ("checkpoint", {"checkpoint": 3}, TypeError, "3"),
    ("checkpoint", {"checkpoint": ""}, TypeError, "''"),
    ("checkpoint", {"resume": "must"}, ValueError, "None"),
    ("resume", {"resume": "yes"}, ValueError, "'yes'"),
    ("resume", {"resume": True}, ValueError, "True"),
]


def label(value):
    """The same in every process: a function's address is not part of it."""
    shown = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return shown[:50] if isinstance(value, dict) else ""


@pytest.mark.parametrize(("named", "wrong", "error", "came"), MINIMIZE, ids=label)
def test_minimize_refuses_before_any_evaluation(named, wrong, error, came):
    arguments = {"fun": never, "x0": X0, "sigma0": 2.0, "rng": 1, **wrong}
    assert_refused(named, error, came, fmnes.minimize, **arguments)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("seed", "rng"),
        ("random_state", "rng"),
        ("popsizes", "popsize"),
        ("max_fevals", "maxfevals"),
        ("tol", "stopping"),
        ("maxfun", "maxfevals"),
        ("jac", None),
    ],
)
def test_an_option_that_does_not_exist(name, meant):
    """The message says which one may be meant."""
    came = "1" if meant is None else f"1 (did you mean {meant!r}?)"
    assert_refused(name, TypeError, came, fmnes.minimize, fun=never, x0=X0, sigma0=2.0, **{name: 1})
    assert_refused(name, TypeError, came, fmnes.Optimizer, x0=X0, sigma0=2.0, **{name: 1})


def test_the_methods_of_scipy_are_known():
    """All that the documentation of `scipy.optimize.minimize` lists, and functions that exist."""
    here = {name for name, place in checks._OF_SCIPY.items() if place.startswith("a method")}
    listed = re.findall(r"^\s+- '([\w-]+)'", optimize.minimize.__doc__, re.M)
    assert set(listed) <= here
    assert listed
    assert all(hasattr(optimize, name) for name in checks._OF_SCIPY.keys() - here)


def test_the_options_of_scipy_are_arguments():
    options = {"maxiter": 3}
    came = f"{options} (give each option as an argument"
    assert_refused(
        "options", TypeError, came, fmnes.minimize, fun=never, x0=X0, sigma0=2.0, options=options
    )


@pytest.mark.parametrize("path", [3, None, b"file", ""], ids=repr)
def test_a_path_that_is_none(path):
    opt = fmnes.Optimizer(X0, 2.0)
    assert_refused("path", TypeError, repr(path), opt.save, path=path)
    assert_refused("path", TypeError, repr(path), fmnes.Optimizer.load, path=path)


# === Settings ===


def started(settings):
    """A class of settings whose arrays are checked where a search starts."""
    return lambda **arguments: fmnes.Optimizer([3.0] * 5, 2.0, method=settings(**arguments))


def checkpoint(**arguments):
    return fmnes.Checkpoint(**{"path": "run.npz", **arguments})


DIMS = (0, -1, 2.5, "x", True)  # no number of variables
SETTINGS = [
    (fmnes.CRFMNES, {"variant": "fast"}, "'fast'"),
    (fmnes.CRFMNES, {"eta_B": -1}, "-1"),
    (fmnes.CRFMNES, {"c_1": np.nan}, "nan"),
    (fmnes.CRFMNES, {"eta_sigma": "1"}, "'1'"),
    (fmnes.CRFMNES, {"distance_weights": 0}, "0"),
    (fmnes.SepCMA, {"rates": "new"}, "'new'"),
    (fmnes.SNES, {"eta_sigma": -1}, "-1"),
    (fmnes.SNES, {"eta_sigma": np.nan}, "nan"),
    (fmnes.R1NES, {"eta": 2}, "2"),
    (fmnes.XNES, {"eta_B": -1}, "-1"),
    (fmnes.XNES, {"eta_sigma": np.inf}, "inf"),
    (fmnes.DXNESIC, {"eta_B": np.nan}, "nan"),
    (fmnes.FMNES, {"c_1": -0.1}, "-0.1"),
    (started(fmnes.CRFMNES), {"D": np.ones(4)}, "shape (4,)"),
    (started(fmnes.CRFMNES), {"D": np.zeros(5)}, "0"),
    (started(fmnes.CRFMNES), {"D": np.full(5, 1e307)}, "1e+307"),
    (started(fmnes.CRFMNES), {"D": "abc"}, "'abc'"),
    (started(fmnes.CRFMNES), {"D": ["1"] * 5}, "dtype <U1"),
    (started(fmnes.CMAES), {"C": [[1.0], []]}, "[[1.0], []]"),
    (started(fmnes.VDCMA), {"v": np.zeros(5)}, "zeros"),
    (started(fmnes.R1NES), {"v": [np.inf] * 5}, "inf"),
    (started(fmnes.SepCMA), {"D": np.ones((5, 5))}, "shape (5, 5)"),
    (started(fmnes.CMAES), {"C": np.ones(5)}, "shape (5,)"),
    (started(fmnes.CMAES), {"C": -np.eye(5)}, "-1"),
    (started(fmnes.FMNES), {"C": np.triu(np.ones((5, 5)))}, "1"),
    (fmnes.Stopping, {"tolx": -1}, "-1"),
    (fmnes.Stopping, {"tolx": True}, "True"),
    (fmnes.Stopping, {"tolfun": np.nan}, "nan"),
    (fmnes.Stopping, {"tolfun": "1e-9"}, "'1e-9'"),
    (fmnes.Stopping, {"tolsigmaup": None}, "None"),
    # These would hold after the first generation, tolx and tolfun as a success.
    (fmnes.Stopping, {"tolx": 1.0}, "1.0"),
    (fmnes.Stopping, {"tolfun": math.inf}, "inf"),
    (fmnes.Stopping, {"tolsigmaup": 1}, "1"),
    (fmnes.Stopping, {"flat": 0}, "0"),
    (fmnes.Stopping, {"infeasible": 0}, "0"),
    (fmnes.Stopping, {"flat": "20"}, "'20'"),
    (fmnes.Stopping, {"flat": True}, "True"),
    (fmnes.Stopping, {"flat": 2.5}, "2.5"),
    (fmnes.Stopping, {"flat": None}, "None"),
    (fmnes.Stopping, {"flat": np.ones(2)}, "array"),
    (fmnes.Stopping, {"stagnation": -1}, "-1"),
    (fmnes.Stopping, {"stagnation": np.nan}, "nan"),
    (fmnes.Stopping, {"infeasible": np.nan}, "nan"),
    (fmnes.Stopping, {"infeasible": "no"}, "'no'"),
    (fmnes.IPOP, {"n": -1}, "-1"),
    (fmnes.IPOP, {"n": "2"}, "'2'"),
    (fmnes.IPOP, {"n": True}, "True"),
    (fmnes.IPOP, {"n": 1, "factor": 0.5}, "0.5"),
    (fmnes.IPOP, {"n": 1, "factor": np.nan}, "nan"),
    (fmnes.IPOP, {"n": 1, "factor": np.inf}, "inf"),
    (fmnes.IPOP, {"n": 1, "factor": "2"}, "'2'"),
    (fmnes.BIPOP, {"n": 1.5}, "1.5"),
    (fmnes.BIPOP, {"n": None}, "None"),
    (fmnes.Auto, {"adapt": np.array([1, 2])}, "array([1, 2])"),
    (fmnes.Bounds, {"lb": "low"}, "'low'"),
    (fmnes.Bounds, {"lb": 0.0, "ub": "high"}, "'high'"),
    (fmnes.Bounds, {"lb": [[0.0]]}, "[[0.0]]"),
    (fmnes.Bounds, {"ub": np.nan}, "nan"),
    (fmnes.Constraints, {"functions": "a"}, "str: 'a'"),
    (fmnes.Constraints, {"functions": 1}, "int: 1"),
    (fmnes.Constraints, {"functions": [never]}, "function"),
    (fmnes.Constraints, {"inequalities": 1, "tolerance": "x"}, "'x'"),
    (fmnes.Constraints, {"inequalities": 1, "tolerance": -1.0}, "-1.0"),
    (fmnes.Constraints, {"inequalities": -1}, "-1"),
    (fmnes.Constraints, {"inequalities": 1, "equalities": "1"}, "'1'"),
    (fmnes.History, {"rows": "a"}, "'a'"),
    (fmnes.History, {"rows": np.zeros(3)}, "array"),
    (fmnes.History, {"size": 0}, "0"),
    *((make, {"dim": dim}, repr(dim)) for make in fmnes.problems.PROBLEMS.values() for dim in DIMS),
    (fmnes.problems.ktablet, {"dim": 4, "k": -1}, "-1"),
    (fmnes.problems.ellipsoid, {"dim": 4, "ratio": 0}, "0"),
    (fmnes.problems.cigar, {"dim": 4, "condition": "1"}, "'1'"),
    (fmnes.problems.cigar, {"dim": 4, "spread": np.inf}, "inf"),
    (fmnes.problems.twoaxes, {"dim": 4, "seed": -1}, "-1"),
    (checkpoint, {"every": -1.0}, "-1.0"),
    (checkpoint, {"every": np.nan}, "nan"),
    (checkpoint, {"every": np.inf}, "inf"),
    (checkpoint, {"every": True}, "True"),
    (checkpoint, {"every": "10"}, "'10'"),
    (checkpoint, {"fsync": "always"}, "'always'"),
    (checkpoint, {"fsync": None}, "None"),
    (checkpoint, {"on_error": "ask"}, "'ask'"),
]


@pytest.mark.parametrize(("make", "wrong", "came"), SETTINGS, ids=label)
def test_settings_out_of_range(make, wrong, came):
    assert_refused([*wrong][-1], BAD, came, make, **wrong)


# === Methods of an Optimizer, a Space and others ===


def asked(**arguments):
    opt = fmnes.Optimizer(X0, 2.0, rng=1, **arguments)
    opt.ask()
    return opt


SPACE = fmnes.Space({"a": fmnes.Real(0, 1), "b": fmnes.Int(1, 9)})
RESULT = asked().result
CALLS = [
    ("args", lambda args: fmnes.reevaluate(never, RESULT, args=args), [1]),
    ("n", lambda n: fmnes.reevaluate(never, RESULT, n), 1),
    ("constraints", lambda g: asked().tell(np.ones(10), constraints=g), np.ones((99, 1))),
    ("candidates", lambda candidates: asked().withdraw(candidates), []),
    ("candidates", lambda candidates: asked().withdraw(candidates), [[0], [1, 2]]),
    ("candidates", lambda candidates: asked().withdraw(candidates), [True]),
    ("x", lambda x: asked().inject(x), [np.nan] * DIM),
    ("x", lambda x: asked().inject(x), "abc"),
    ("target", lambda target: asked().write_candidate(0, target), 3),
    ("rows", lambda rows: asked().ask(rows=rows), slice("a", 2)),
    ("rows", lambda rows: asked().ask(rows=rows), 3),
    ("first", lambda first: RESULT.history.to_array(first), "a"),
    ("path", lambda path: RESULT.history.to_csv(path), 3),
    ("Result", lambda name: RESULT[name], "x"),
    ("x", fmnes.problems.sphere(2), ["a", "b"]),
    ("x", fmnes.problems.sphere(2), [1j, 2j]),
    ("x", fmnes.problems.sphere(2), [1.0]),
    ("figure", lambda figure: fmnes.plot_runs({"a": [([1], [2.0])]}, figure=figure), 3),
    ("runs", fmnes.plot_runs, {"a": 3}),
    ("runs", fmnes.plot_runs, {"a": RESULT}),
    ("targets", lambda targets: fmnes.plot_ecdf({"a": [([1], [2.0])]}, targets), "low"),
    ("runs", fmnes.plot_runs, {"a": [(["x"], [2.0])]}),
    ("limits", lambda limits: fmnes.animate(never, [1.0, 2.0], 1.0, limits=limits), "a"),
    ("x", SPACE.decode, "x"),
    ("x", SPACE.decode, [[[0.0, 1.0]]]),
]


@pytest.mark.parametrize(("named", "call", "wrong"), CALLS)
def test_a_wrong_argument_of_a_method(named, call, wrong):
    assert_refused(named, BAD, "", lambda: call(wrong))


@pytest.mark.parametrize("save", [RESULT.save, RESULT.history.to_csv, asked().save])
def test_a_file_in_a_folder_that_is_missing(save, tmp_path):
    folder = str(tmp_path / "gone")
    assert_refused("path", FileNotFoundError, folder, lambda: save(f"{folder}/file"))


def test_whole_numbers_are_converted():
    """A float that is whole counts; two ways to write a schedule are the same schedule."""
    assert repr(fmnes.IPOP(2.0)) == repr(fmnes.IPOP(np.int64(2))) == repr(fmnes.IPOP(2))
    assert repr(fmnes.BIPOP(2.0)) == repr(fmnes.BIPOP(2))
    assert repr(fmnes.Stopping(flat=20.0)) == repr(fmnes.Stopping(flat=20))


def test_infinity_switches_rules_off():
    off = fmnes.Stopping(flat=math.inf, stagnation=math.inf, infeasible=math.inf)
    result = fmnes.minimize(lambda x: 1.0, X0, 2.0, stopping=off, maxiter=50, rng=1)
    assert result.status == "maxiter"
