"""CR-FM-NES as published, against stored states of the authors' package (see README.md).

Two things are done so that the comparison can be sharp. The strength of the distance weights is
the authors' own: their Newton iteration for h_inv stops some 1e-12 short of the root that the
library computes. And the mean is compared on the scale of the way it has come, since its rounding
errors are as large as the largest mean so far, however small it is in the end.
"""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from crfmnes import alg as authors

from fmnes.algorithms import Shape, cr_fm_nes

RECORDS = json.loads((Path(__file__).parent / "golden_crfmnes.json").read_text())


def sphere(x):
    return sum(xi**2 for xi in x)


def rosenbrock(x):
    return sum(100 * (b - a**2) ** 2 + (a - 1) ** 2 for a, b in pairwise(x))


def ellipsoid(x):
    return sum((1000 ** (i / (len(x) - 1)) * xi) ** 2 for i, xi in enumerate(x))


def sphere_in_the_positive_orthant(x):
    return math.inf if any(xi < 0 for xi in x) else sphere(x)


OBJECTIVES = {
    "sphere": sphere,
    "rosenbrock": rosenbrock,
    "ellipsoid 1000^(i/(d-1))": ellipsoid,
    "sphere, +inf where any x_i<0": sphere_in_the_positive_orthant,
}


def normals(seed=12345):
    """The generator of the field `rng`: a 64-bit LCG, two numbers of it for one normal draw."""
    x = seed

    def uniform():
        nonlocal x
        x = (6364136223846793005 * x + 1442695040888963407) % 2**64
        return ((x >> 11) + 0.5) / 2**53

    while True:
        u1, u2 = uniform(), uniform()
        yield math.sqrt(-2 * math.log(u1)) * math.cos(2 * math.pi * u2)


def start(record):
    """The generator behind v0, the draws of one generation, the constants and the first state."""
    d, lam = record["d"], record["lam"]
    draw = normals()
    v0 = np.array([next(draw) for _ in range(d)]) / math.sqrt(d)
    np.testing.assert_allclose(v0, record["v0"], rtol=1e-14)

    params = cr_fm_nes.params(d, lam, cr_fm_nes.CRFMNES(variant="paper"))
    alpha = authors.get_h_inv(d) * min(1, math.sqrt(lam / d))
    assert params.phase.alpha == pytest.approx(alpha, rel=4e-12)
    params = params._replace(phase=params.phase._replace(alpha=alpha))

    m0, sigma0 = np.array(record["m0"]), np.asarray(record["sigma0"])
    state = cr_fm_nes.init(params, m0, sigma0, Shape(D=np.ones(d), v=v0), np.zeros(d))

    def draws():
        return np.array([[next(draw) for _ in range(d)] for _ in range(lam // 2)])

    return draws, params, state


def check(entry, params, state, values, largest_mean):
    phase = {"move": 1, "stag": 2, "conv": 3}[entry["phase"]]
    assert cr_fm_nes.summary(params, state).phase == phase
    assert np.count_nonzero(np.isfinite(values)) == entry["lambF"]
    np.testing.assert_allclose(state.mean, entry["m"], rtol=0, atol=1e-9 * largest_mean)
    ours = {"sigma": state.sigma, "D": state.D, "v": state.v, "ps": state.p_sigma, "pc": state.p_c}
    for name, value in ours.items():
        atol = 1e-9 * np.max(np.abs(entry[name]))
        message = f"{name} after generation {entry['iter']}"
        np.testing.assert_allclose(value, entry[name], rtol=0, atol=atol, err_msg=message)


# Here sigma is 5e-21 and the optimum is 0: errors of 1e-16, made while the mean was near 3, have
# long decided the order of the candidates. Only the arithmetic that recorded the trace gets
# there: on a CPU for which BLAS rounds differently, the authors' package does not.
OUT_OF_REACH = ("sphere", 400)


@pytest.mark.parametrize("record", RECORDS, ids=[record["tag"] for record in RECORDS])
def test_the_library_alone(record):
    f, stored = OBJECTIVES[record["tag"]], {entry["iter"]: entry for entry in record["trace"]}
    draws, params, state = start(record)
    largest_mean, f_best = np.max(np.abs(state.mean)), math.inf
    for generation in range(1, max(stored) + 1):
        z = draws()
        values = np.array([f(x) for x in cr_fm_nes.ask(params, state, z).tolist()])
        state = cr_fm_nes.tell(params, state, z, values)
        largest_mean = max(largest_mean, np.max(np.abs(state.mean)))
        f_best = min(f_best, *values)
        if generation not in stored or (record["tag"], generation) == OUT_OF_REACH:
            continue
        check(stored[generation], params, state, values, largest_mean)
        if generation <= 100:  # later on the rounding error of the mean shows in f
            finite = values[np.isfinite(values)]
            assert f_best == pytest.approx(stored[generation]["f_best"], rel=1e-9)
            assert np.sum(finite) == pytest.approx(stored[generation]["f_sum"], rel=1e-9)


@pytest.mark.parametrize("record", RECORDS, ids=[record["tag"] for record in RECORDS])
def test_the_library_given_the_authors_values(record, monkeypatch):
    """The stored generations, the package running beside the library.

    The package evaluates, on its own candidates; the library is told its values.
    """
    d, lam, f = record["d"], record["lam"], OBJECTIVES[record["tag"]]
    stored = {entry["iter"]: entry for entry in record["trace"]}
    draws, params, state = start(record)
    monkeypatch.setattr(authors, "sort_indices_by", stable_order)
    package = authors.CRFMNES(
        d,
        lambda x: f(x[:, 0].tolist()),
        state.mean.reshape(d, 1).copy(),
        float(state.sigma),
        lam,
        v=state.v.reshape(d, 1).copy(),
        use_constraint_violation=False,
    )
    largest_mean = np.max(np.abs(state.mean))
    for generation in range(1, max(stored) + 1):
        z = draws()
        with monkeypatch.context() as patch:
            patch.setattr(np.random, "randn", lambda *_shape, z=z: z.T)
            _candidates, values, _violations = package.one_iteration()
        state = cr_fm_nes.tell(params, state, z, values)
        largest_mean = max(largest_mean, np.max(np.abs(state.mean)))
        if generation in stored and (record["tag"], generation) != OUT_OF_REACH:
            check(stored[generation], params, state, values, largest_mean)


def stable_order(values, z):
    """The package's order with its sort made stable: infeasible ones last, by |z|."""
    distance = np.where(values == np.inf, np.sum(z**2, axis=0), 0)
    return np.lexsort((distance, values))  # values first; lexsort is stable
