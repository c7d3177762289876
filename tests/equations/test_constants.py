"""The constants of CR-FM-NES against a table computed apart from this library; and others'."""

from pathlib import Path

import mpmath
import numpy as np
import pytest

from equations import transcriptions as slow
from fmnes.algorithms import METHODS, _phases, cr_fm_nes

# Columns: d, lambda, mu_eff, c_sigma, c_c, c_1, eta_B, eta_sigma (stagnation, convergence),
# E|N(0, I)|, h_inv, alpha.
TABLE = np.loadtxt(Path(__file__).parent / "constants_cr_fm_nes.txt")


@pytest.mark.parametrize(
    "row", TABLE, ids=[f"d={row[0]:.0f}, lambda={row[1]:.0f}" for row in TABLE]
)
def test_constants_of_cr_fm_nes(row):
    dim, lam, *expected = int(row[0]), int(row[1]), *row[2:]
    params = cr_fm_nes.params(dim, lam, cr_fm_nes.CRFMNES(variant="paper"))
    lam_F = np.asarray(float(lam))
    stagnation, convergence = (
        _phases.eta_sigma(np, params.phase, np.asarray(phase), lam_F)
        for phase in (_phases.STAGNATION, _phases.CONVERGENCE)
    )
    ours = [params.phase.mu_eff, params.phase.c_sigma, params.c_c, params.c_1]
    long = np.asarray(1e3)  # the published rate does not depend on |v|, nor on the phase
    eta_B = cr_fm_nes._eta_B(np, params, lam_F, np.asarray(_phases.STAGNATION), long)
    ours += [eta_B, stagnation, convergence]
    ours += [params.phase.chi_n, _phases._h_inv(dim), params.phase.alpha]
    np.testing.assert_allclose(ours, expected, rtol=5e-8)


def test_default_population_sizes():
    for dim, lam in TABLE[:11, :2]:
        assert cr_fm_nes.default_popsize(int(dim)) == lam


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 6, 7, 8, 9, 40])
def test_safe_variant_floors_the_rate_of_the_rank_one_update(dim):
    params = cr_fm_nes.params(dim, 8)
    assert params.c_1 == pytest.approx(slow.c_1_cr_fm_nes(dim, 8, 8, "safe"), rel=1e-14)
    assert params.c_1 > 0


@pytest.mark.parametrize("dim", [1, 2, 10, 1000, 54724, 10**6, 10**9])
def test_h_inv_is_the_root(dim):
    """54724 is the first dimension at which the usual Newton iteration never ends."""
    with mpmath.workdps(40):
        a = mpmath.findroot(
            lambda a: mpmath.log((1 + a**2) / mpmath.mpf("0.24") / (10 + dim)) + a**2 / 2,
            _phases._h_inv(dim),
        )
        assert _phases._h_inv(dim) == pytest.approx(float(a), rel=1e-14)


@pytest.mark.parametrize("dim", [2, 3, 10, 40, 1000])
@pytest.mark.parametrize("name", ["vd-cma", "sep-cma", "cma-es"])
def test_constants_of_the_cma_family(name, dim):
    module = METHODS[name]
    for lam in (module.default_popsize(dim), 5 * dim):
        ours = module.params(dim, lam)
        theirs = getattr(slow, f"{name.replace('-', '_')}_constants")(dim, lam)
        for field, letter in {"c_sigma": "c_s", "d_sigma": "d_s"}.items():
            assert getattr(ours, field) == pytest.approx(theirs[letter], rel=1e-13)
        for field in ("mu_eff", "c_c", "c_1", "c_mu"):
            assert getattr(ours, field) == pytest.approx(theirs[field], rel=1e-13)
