"""CR-FM-NES as published beside the authors' package, each on its own, for 100 generations."""

import math

import numpy as np
import pytest
from crfmnes import alg as authors

from fmnes.algorithms import Shape, cr_fm_nes


def sphere(x):
    return np.sum(x**2)


def ellipsoid(x):
    return np.sum((1000 ** np.linspace(0, 1, x.size) * x) ** 2)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1) ** 2)


@pytest.mark.parametrize("dim", [10, 40, 1000])
@pytest.mark.parametrize(
    ("f", "m0", "sigma0"),
    [(sphere, 3.0, 2.0), (ellipsoid, 3.0, 2.0), (rosenbrock, 0.0, 0.5)],
    ids=["sphere", "ellipsoid", "rosenbrock"],
)
def test_hundred_generations(f, m0, sigma0, dim):
    lam = cr_fm_nes.default_popsize(dim)
    package = authors.CRFMNES(
        dim,
        lambda x: f(x[:, 0]),
        np.full((dim, 1), m0),
        sigma0,
        lam,
        seed=dim,  # of NumPy's global generator, which the package draws from
        use_constraint_violation=False,
    )
    draws = np.random.RandomState(dim)
    v0 = draws.randn(dim, 1)[:, 0] / math.sqrt(dim)

    params = cr_fm_nes.params(dim, lam, cr_fm_nes.CRFMNES(variant="paper"))
    # Their Newton iteration for h_inv ends some 1e-12 short of the root.
    alpha = authors.get_h_inv(dim) * min(1, math.sqrt(lam / dim))
    assert params.phase.alpha == pytest.approx(alpha, rel=4e-12)
    params = params._replace(phase=params.phase._replace(alpha=alpha))
    shape = Shape(D=np.ones(dim), v=v0)
    state = cr_fm_nes.init(params, np.full(dim, m0), np.asarray(sigma0), shape, np.zeros(dim))

    for generation in range(1, 101):
        package.one_iteration()
        z = np.ascontiguousarray(draws.randn(dim, lam // 2).T)
        values = np.array([f(x) for x in cr_fm_nes.ask(params, state, z)])
        state = cr_fm_nes.tell(params, state, z, values)
        theirs = cr_fm_nes.State(
            mean=package.m[:, 0],
            sigma=np.asarray(package.sigma),
            D=package.D[:, 0],
            v=package.v[:, 0],
            p_sigma=package.ps[:, 0],
            p_c=package.pc[:, 0],
        )
        for name, our, their in zip(state._fields, state, theirs, strict=True):
            error = np.max(np.abs(our - their)) / np.max(np.abs(their))
            assert error < 1e-9, f"{name} after generation {generation}"
