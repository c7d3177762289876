"""Why the safe variant of CR-FM-NES does not break: docs/safe-variant.md, measured."""

import math

import numpy as np
import pytest

from fmnes.algorithms import cr_fm_nes
from fmnes.algorithms._records import Shape


def change_of_covariance(variant, dim, length, seed):
    """Largest and smallest factor by which one neutral generation changes the variance anywhere.

    These are the eigenvalues of C^(-1/2) C' C^(-1/2), volumes aside: 1 where nothing changed.
    """
    rng = np.random.default_rng(seed)
    params = cr_fm_nes.params(
        dim, cr_fm_nes.default_popsize(dim), cr_fm_nes.CRFMNES(variant=variant)
    )
    v = rng.standard_normal(dim)
    shape = Shape(np.exp(0.5 * rng.standard_normal(dim)), v * (length / np.linalg.norm(v)))
    state = cr_fm_nes.init(params, np.zeros(dim), np.asarray(1.0), shape, None)
    path = cr_fm_nes.transform(params, state, rng.standard_normal((1, dim)))[0]
    p_sigma = 1.5 * rng.standard_normal(dim)  # the movement phase: eta_B is the paper's
    state = state._replace(p_c=path, p_sigma=p_sigma)
    z = rng.standard_normal((params.popsize // 2, dim))
    new = cr_fm_nes.tell(params, state, z, rng.standard_normal(params.popsize))
    before, after = (s.D[:, None] * (np.eye(dim) + np.outer(s.v, s.v)) * s.D for s in (state, new))
    eigenvalues, axes = np.linalg.eigh(before)
    whitener = axes / np.sqrt(eigenvalues)
    ratios = np.linalg.eigvalsh(whitener.T @ after @ whitener)
    ratios /= math.exp(np.mean(np.log(ratios)))
    return ratios.max(), ratios.min()


@pytest.mark.parametrize("dim", [20, 80])
def test_the_size_of_a_step_does_not_grow_with_v(dim):
    sizes = {}
    for variant in ("safe", "paper"):
        for length in (10.0, 100.0, 1e3, 1e4):
            changes = [change_of_covariance(variant, dim, length, seed) for seed in range(30)]
            sizes[variant, length] = np.median(changes, axis=0)
    largest, smallest = sizes["safe", 10.0]
    assert largest < 2.5
    assert smallest > 0.4
    for length in (1e3, 1e4):  # the same step in units of the distribution, up to terms in 1/|v|
        np.testing.assert_allclose(sizes["safe", length], sizes["safe", 100.0], rtol=0.01)
    # The published step: a turn of the long axis by |v| s^2 short axes, so a variance of |v|^2 s^4.
    assert sizes["paper", 1e4][0] > 100
    growth = sizes["paper", 1e4][0] / sizes["paper", 1e3][0]
    assert growth > 20  # a hundred for a pure square; the first-order part is in it as well


def test_both_variants_agree_to_first_order():
    """Shrink the step: what remains of the difference falls with its square."""
    rng = np.random.default_rng(3)
    dim, v, D = 12, 5 * rng.standard_normal(12), np.exp(rng.standard_normal(12))
    s, dv = 0.1 * rng.standard_normal(dim), 0.1 * rng.standard_normal(dim)

    def covariance(D, v):
        return D[:, None] * (np.eye(dim) + np.outer(v, v)) * D

    def difference(h):
        paper = covariance(D * (1 + h * s), v + h * dv)
        safe = covariance(D * (1 + h * s), (v + h * (dv + v * s)) / (1 + h * s))
        return np.abs(paper - safe).max()

    assert difference(1e-3) / difference(1e-2) == pytest.approx(1e-2, rel=0.05)


@pytest.mark.parametrize(("dim", "lam", "changed"), [(200, 20, 0), (200, 60, 0), (1000, 24, 1)])
def test_sigma_learns_faster_only_where_mu_eff_is_a_small_part_of_d(dim, lam, changed):
    params = cr_fm_nes.params(dim, lam)
    published = math.tanh((0.024 * lam + 0.7 * dim + 20) / (dim + 12))
    assert (params.least_eta_sigma > published) == changed
    assert params.least_eta_sigma < 1
    assert cr_fm_nes.params(dim, lam, cr_fm_nes.CRFMNES(variant="paper")).least_eta_sigma == 0
