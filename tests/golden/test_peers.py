"""xNES, separable CMA-ES, CMA-ES and VD-CMA beside cmaes and pycma, on the same draws.

Each package runs on its own: it draws, evaluates and updates. The library is given the same
draws, evaluates its own candidates, and has to arrive at the same states. Where a package's
constants differ from the paper that the library follows, the test makes them equal and says so.
"""

import math
from types import SimpleNamespace

import cma
import cmaes
import numpy as np
import pytest
from cma.restricted_gaussian_sampler import GaussVDSampler
from cmaes import _dxnesic

from fmnes.algorithms import Shape, cma_es, dx_nes_ic, sep_cma, vd_cma, xnes


def ellipsoid(x):
    return float(np.sum((1000 ** np.linspace(0, 1, x.size) * x) ** 2))


def rosenbrock(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1) ** 2))


problems = pytest.mark.parametrize(
    ("f", "m0", "sigma0"),
    [(ellipsoid, 3.0, 2.0), (rosenbrock, 0.0, 0.5)],
    ids=["ellipsoid", "rosenbrock"],
)
dims = pytest.mark.parametrize("dim", [5, 10, 20])
GENERATIONS = 100


def generation(module, params, state, f, z):
    values = np.array([f(x) for x in module.ask(params, state, z)])
    return module.tell(params, state, z, values)


def agree(pairs, when, rtol=1e-9):
    for name, (ours, theirs) in pairs.items():
        error = np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))
        assert error < rtol, f"{name} after generation {when}"


# --- cmaes ---------------------------------------------------------------------------------------


def cmaes_generation(package, f):
    told = [(x, f(x)) for x in (package.ask() for _ in range(package.population_size))]
    package.tell(told)


@dims
@problems
def test_xnes_of_cmaes(f, m0, sigma0, dim):
    package = cmaes.XNES(np.full(dim, m0), sigma0, seed=dim)
    draws = np.random.RandomState(dim)
    lam = package.population_size
    params = xnes.params(dim, lam)
    shape = Shape(D=np.ones(dim))
    state = xnes.init(params, np.full(dim, m0), np.asarray(sigma0), shape, np.zeros(dim))
    for t in range(GENERATIONS):
        cmaes_generation(package, f)
        state = generation(xnes, params, state, f, draws.randn(lam, dim))
        pairs = {
            "mean": (state.mean, package._mean),
            "sigma": (state.sigma, package._sigma),
            "B": (state.B, package._B),
        }
        agree(pairs, t + 1)


@dims
@problems
def test_dx_nes_ic_of_cmaes(f, m0, sigma0, dim, monkeypatch):
    """It forgets gamma, which is 1 at the start of each of its generations, and its Newton
    iteration for h_inv ends some 1e-12 short of the root. It takes math.sqrt of an array of one
    number, which NumPy 2.4 no longer allows.

    As many pairs as variables: with fewer, some axes of the first B B^T are equally long, and
    which of them is stretched is up to the linear algebra library.
    """
    patched = SimpleNamespace(**vars(math))
    patched.sqrt = lambda x: math.sqrt(np.asarray(x).item())
    monkeypatch.setattr(_dxnesic, "math", patched)
    lam = 2 * dim
    package = cmaes.DXNESIC(np.full(dim, m0), sigma0, seed=dim, population_size=lam)
    draws = np.random.RandomState(dim)
    params = dx_nes_ic.params(dim, lam)
    assert params.phase.alpha == pytest.approx(package._alpha_dist(lam), rel=4e-12)
    params = params._replace(phase=params.phase._replace(alpha=package._alpha_dist(lam)))
    shape = Shape(D=np.ones(dim))
    state = dx_nes_ic.init(params, np.full(dim, m0), np.asarray(sigma0), shape, np.zeros(dim))
    for t in range(GENERATIONS):
        cmaes_generation(package, f)
        state = state._replace(gamma=np.ones(()))
        state = generation(dx_nes_ic, params, state, f, draws.randn(lam // 2, dim))
        pairs = {
            "mean": (state.mean, package._mean),
            "sigma": (state.sigma, package._sigma),
            "B": (state.B, package._B),
            "p_sigma": (state.p_sigma, package._p_sigma),
        }
        agree(pairs, t + 1)


@dims
@problems
def test_sep_cma_of_cmaes(f, m0, sigma0, dim):
    """It keeps the c_1 of the full CMA-ES, gives the whole of c_cov to the rank-mu update, and
    counts its first generation as the second in the test for a stall.
    """
    package = cmaes.SepCMA(np.full(dim, m0), sigma0, seed=dim)
    draws = np.random.RandomState(dim)
    lam = package.population_size
    params = sep_cma.params(dim, lam)
    assert params.c_1 + params.c_mu == pytest.approx(package._cmu, rel=1e-13)
    params = params._replace(c_1=package._c1, c_mu=package._cmu)
    shape = Shape(D=np.ones(dim))
    state = sep_cma.init(params, np.full(dim, m0), np.asarray(sigma0), shape, np.zeros(dim))
    state = state._replace(generation=state.generation + 1)
    for t in range(GENERATIONS):
        cmaes_generation(package, f)
        state = generation(sep_cma, params, state, f, draws.randn(lam, dim))
        pairs = {
            "mean": (state.mean, package._mean),
            "sigma": (state.sigma, package._sigma),
            "C": (state.D**2, package._C),
            "p_sigma": (state.p_sigma, package._p_sigma),
            "p_c": (state.p_c, package._pc),
        }
        agree(pairs, t + 1)


# --- pycma ---------------------------------------------------------------------------------------


def pycma(dim, m0, sigma0, **options):
    """pycma with a generator of its own, and the same draws once more."""
    options |= {"randn": np.random.RandomState(dim).randn, "seed": np.nan, "verbose": -9}
    package = cma.CMAEvolutionStrategy(np.full(dim, m0), sigma0, options)
    # It divides a negative weight by (|C^(-1/2) y| + 1e-9)^2; the tutorial by |C^(-1/2) y|^2.
    norm = package.sm.norm
    package.sm.norm = lambda y: norm(y) - 1e-9
    return package, np.random.RandomState(dim)


def pycma_generation(package, f):
    x = package.ask()
    package.tell(x, [f(xi) for xi in x])


def exact_chi(dim):
    """E|N(0, I)| to the last digit, which pycma takes for the step size."""
    return math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))


@dims
@problems
def test_cma_es_of_pycma(f, m0, sigma0, dim):
    """All constants of the covariance agree as they are; c_sigma and d_sigma are newer in pycma,
    and are set to the tutorial's. Its initial C is spread by 1e-4, and the library's with it.
    """
    package, draws = pycma(dim, m0, sigma0, updatecovwait=0)
    lam = package.popsize
    params = cma_es.params(dim, lam)._replace(chi_n=exact_chi(dim))
    package.adapt_sigma.cs, package.adapt_sigma.damps = params.c_sigma, params.d_sigma
    shape = Shape(D=np.ones(dim), C=package.sm.C.copy())
    state = cma_es.init(params, np.full(dim, m0), np.asarray(sigma0), shape, np.zeros(dim))
    for t in range(GENERATIONS):
        pycma_generation(package, f)
        state = cma_es.refresh(params, state)
        # LAPACK's choice of signs for the eigenvectors turns on C's last bits.
        signs = np.sign(np.sum(state.B * package.sm.B, axis=0))
        state = generation(cma_es, params, state, f, draws.randn(lam, dim) * signs)
        pairs = {
            "mean": (state.mean, package.mean),
            "sigma": (state.sigma, package.sigma),
            "C": (state.C, package.sm.C),
            "p_sigma": (state.p_sigma, package.adapt_sigma.ps),
            "p_c": (state.p_c, package.pc),
        }
        agree(pairs, t + 1)


@dims
@problems
def test_sep_cma_of_pycma(f, m0, sigma0, dim):
    package, draws = pycma(dim, m0, sigma0, CMA_diagonal=True)
    lam = package.popsize
    params = sep_cma.params(dim, lam, sep_cma.SepCMA(rates="pycma"))
    theirs = (package.adapt_sigma.cs, package.adapt_sigma.damps)
    theirs += (package.sp.cc_sep, package.sp.c1_sep, package.sp.cmu_sep)
    ours = (params.c_sigma, params.d_sigma, params.c_c, params.c_1, params.c_mu)
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    np.testing.assert_allclose(params.w, list(package.sp.weights), rtol=0, atol=1e-14)
    params = params._replace(chi_n=exact_chi(dim))
    shape = Shape(D=np.ones(dim))
    state = sep_cma.init(params, np.full(dim, m0), np.asarray(sigma0), shape, np.zeros(dim))
    for t in range(GENERATIONS):
        pycma_generation(package, f)
        state = generation(sep_cma, params, state, f, draws.randn(lam, dim))
        pairs = {
            "mean": (state.mean, package.mean),
            "sigma": (state.sigma, package.sigma),
            "D": (state.D, package.sigma_vec.scaling),
            "p_sigma": (state.p_sigma, package.adapt_sigma.ps),
            "p_c": (state.p_c, package.pc),
        }
        agree(pairs, t + 1)


@pytest.mark.parametrize("dim", [10, 20, 100])
@problems
def test_vd_cma_of_pycma(f, m0, sigma0, dim):
    """Its sampler learns D and v; mean and sigma stay the library's: pycma has another rule.

    From a thousandth of the usual sigma the path grows long, and the rank-one update stalls.
    """
    draws = np.random.RandomState(dim)
    sampler = GaussVDSampler(dim, draws.randn)
    lam = vd_cma.default_popsize(dim)
    params = vd_cma.params(dim, lam)
    shape = Shape(D=np.ones(dim), v=sampler.vvec.copy())
    state = vd_cma.init(params, np.full(dim, m0), np.asarray(sigma0 / 1e3), shape, np.zeros(dim))
    stalled = 0
    for t in range(GENERATIONS):
        z = draws.randn(lam, dim)
        steps = np.array([sampler.transform(zi) for zi in z])
        order = np.argsort([f(state.mean + state.sigma * step) for step in steps])
        state = generation(vd_cma, params, state, f, z)
        hsig = state.p_sigma @ state.p_sigma < (2 + 4 / (dim + 1)) * dim
        stalled += not hsig
        placeholder = np.zeros((1, dim))  # the sampler keeps its own path
        sampler.update(np.vstack([placeholder, steps[order]]), [0.0, *params.w], hsig)
        pairs = {
            "D": (state.D, sampler.dvec),
            "v": (state.v, sampler.vvec),
            "p_c": (state.p_c, sampler.pc),
        }
        agree(pairs, t + 1)
    assert 0 < stalled < GENERATIONS
