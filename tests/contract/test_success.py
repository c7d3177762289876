"""What success means, over random searches: a search converged, and did not stop at its start."""

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from property_tests import examples

import fmnes

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
    method = draw(st.sampled_from(list(fmnes.METHODS)))
    target = float(x0[0]) + sigma0 * draw(st.sampled_from([0.0, 1.0, 20.0]))
    fun = OBJECTIVES[draw(st.sampled_from(list(OBJECTIVES)))]

    def objective(x):
        return fun((x.astype(np.float64) - target) / sigma0)

    return objective, {"x0": x0, "sigma0": sigma0, "bounds": bounds, "method": method}


@given(search=searches())
@examples(60)
def test_success_is_convergence_and_takes_a_search(search):
    objective, arguments = search
    seen = []
    result = fmnes.minimize(
        lambda x: seen.append(x.copy()) or objective(x), **arguments, rng=1, maxfevals=1500
    )
    assert np.isfinite(seen).all()
    assert np.isfinite(result.x).all()
    if result.success:
        assert result.status in ("tolx", "tolfun")
        assert result.nit >= 3
        assert objective(result.x) == result.fun < math.inf
        assert len({objective(x) for x in seen}) > 1  # a constant is not minimised
