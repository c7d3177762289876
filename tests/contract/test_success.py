"""What success means, over random searches: a search converged, and did not stop at its start."""

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import fmnes
from property_tests import examples

# Of a point in units of sigma0, relative to an optimum.
OBJECTIVES = {
    "sphere": lambda y: float(y @ y),
    "constant": lambda y: 3.0,
    "steps": lambda y: float(np.floor(y @ y)),
    "plateau": lambda y: max(float(y @ y), 1.0),
    "offset": lambda y: float(y @ y) + 1e20,
    "infinite": lambda y: math.inf,
    "unbounded": lambda y: -math.inf,
    "failing": lambda y: math.nan,
    "half infinite": lambda y: float(y @ y) if y[0] > 0 else math.inf,
    "half failing": lambda y: float(y @ y) if y[0] > 0 else math.nan,
}


@st.composite
def searches(draw):
    """Arguments of minimize: any method, type of numbers and scale, with and without bounds."""
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    dim = draw(st.integers(1, 12))
    limit = 10 if dtype is np.float32 else 100  # as a power of ten
    scale = 10.0 ** draw(st.floats(-limit, limit))
    x0 = np.full(dim, scale * draw(st.sampled_from([0.0, 1.0, -3.0])), dtype)
    sigma0 = scale * 10.0 ** draw(st.floats(-18, 2))
    assume(sigma0 > 2 * np.finfo(dtype).eps * abs(float(x0[0])))  # otherwise it is refused
    low, high = float(x0[0]) - 4 * sigma0, float(x0[0]) + 4 * sigma0
    bounds = draw(st.sampled_from([None, [(low, None)] * dim, [(low, high)] * dim]))
    assume(bounds is None or sigma0 > 10.0 ** -(limit + 4))
    target = float(x0[0]) + sigma0 * draw(st.sampled_from([0.0, 1.0, 20.0]))
    options = {"sigma0": sigma0} if draw(st.booleans()) else {}

    def units(x):
        return (x.astype(np.float64) - target) / sigma0

    return units, {"x0": x0, "bounds": bounds, **options}


@st.composite
def discrete_searches(draw):
    """The same for integers beside reals, as a vector and as a Space."""
    dim, high = draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 30, 10**6]))
    target = draw(st.sampled_from([0.0, 0.4, 1.0]))
    if draw(st.booleans()):
        flags = draw(st.lists(st.integers(0, 1), min_size=dim, max_size=dim))
        x0 = np.full(dim, high * draw(st.sampled_from([0.0, 0.5, 1.0])))
        options = {"x0": x0, "bounds": [(0, high)] * dim, "integrality": flags}
        return (lambda x: x - target), options

    space = fmnes.Space(
        {
            "a": fmnes.Real(shape=dim),
            "b": fmnes.Log(1e-3, 10.0),
            "n": fmnes.Int(0, high),
            "c": fmnes.Choice(["x", "y", "z"][: draw(st.integers(2, 3))]),
        }
    )

    def units(p):
        rest = [np.log(p["b"]), p["n"], p["c"] != "y"]
        return np.concatenate([np.asarray(p["a"]) - target, rest])

    return units, {"x0": space}


@given(
    search=searches() | discrete_searches(),
    name=st.sampled_from(list(OBJECTIVES)),
    method=st.sampled_from(list(fmnes.METHODS)),
    constrained=st.booleans(),
)
@examples(60)
def test_success_is_convergence_and_takes_a_search(search, name, method, constrained):
    (units, arguments), fun, seen = search, OBJECTIVES[name], []

    def value(x):
        return fun(units(x))

    def objective(x):
        seen.append(x.copy())
        return (value(x), units(x)[0] - 1) if constrained else value(x)

    if constrained:
        arguments = arguments | {"constraints": 1}
    result = fmnes.minimize(objective, **arguments, method=method, rng=1, maxfevals=1500)
    assert np.isfinite(np.concatenate([units(x) for x in seen])).all()
    assert np.isfinite(result.x).all()
    if result.success:
        assert result.status in ("tolx", "tolfun")
        assert result.nit >= 3
        best = result.x if result.best is None else result.best
        assert value(best) == result.fun < math.inf
        if constrained:
            assert result.constr_violation == 0.0
            assert units(best)[0] - 1 <= 1e-3
        else:
            assert len({value(x) for x in seen}) > 1  # a constant is not minimised
