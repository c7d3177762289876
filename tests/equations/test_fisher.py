"""The appendix of the CR-FM-NES paper, derived again: H from the Fisher information, by sympy.

The Fisher information of N(m, sigma^2 C), C = D (I + v v^T) D, in (v, D) is taken from its
definition, F_kl = tr(C^-1 dC_k C^-1 dC_l) / 2 (sigma cancels); its blocks between v and D are
multiplied by alpha, any alpha; and the Schur complement of its v-v block is compared with

    D^-1 (H + b vv vv^T) D^-1,  H = 2 I - (b + 2 alpha^2) Vbar^2,
    b = 2 alpha^2 - (1 - alpha^2) |v|^4 / (1 + |v|^2),  vv = vbar*vbar,  Vbar = diag(vbar).

Identities hold for all v, D and alpha; what is no identity is refuted by numbers.
docs/appendix.md tells who had which H.
"""

from functools import cache

import numpy as np
import pytest
import sympy as sp

from equations import transcriptions as slow
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.experiments import older_h

ALPHA = sp.Symbol("alpha", positive=True)
DIMS = [2, 3]


def symbols(dim):
    return [sp.Matrix(sp.symbols(f"{name}1:{dim + 1}", positive=True)) for name in "vD"]


@cache
def schur_complement(dim):
    """S = F_DD - alpha^2 F_Dv F_vv^-1 F_vD, times D from both sides."""
    v, D = symbols(dim)
    scale = sp.diag(*D)
    C = scale * (sp.eye(dim) + v * v.T) * scale
    C_inv = sp.simplify(C.inv())
    parts = [C_inv * C.diff(x) for x in (*v, *D)]
    F = sp.Matrix(2 * dim, 2 * dim, lambda k, j: sp.cancel((parts[k] * parts[j]).trace() / 2))
    F_vv, F_vD, F_DD = F[:dim, :dim], F[:dim, dim:], F[dim:, dim:]
    S = F_DD - ALPHA**2 * F_vD.T * sp.simplify(F_vv.inv()) * F_vD
    return (scale * S * scale).applyfunc(sp.cancel)


def n2(dim):
    v, _ = symbols(dim)
    return v.dot(v)


def vv(dim):
    v, _ = symbols(dim)
    return sp.Matrix([x**2 / n2(dim) for x in v])


def b(dim):
    return 2 * ALPHA**2 - (1 - ALPHA**2) * n2(dim) ** 2 / (1 + n2(dim))


def complement_with(dim, H, b):
    """H + b vv vv^T for the diagonal H = 2 I - (...) Vbar^2, given as the bracket."""
    return 2 * sp.eye(dim) - H * sp.diag(*vv(dim)) + b * vv(dim) * vv(dim).T


def vanishes(matrix):
    return matrix.applyfunc(sp.cancel) == sp.zeros(*matrix.shape)


@pytest.mark.parametrize("dim", DIMS)
def test_the_papers_H(dim):
    difference = schur_complement(dim) - complement_with(dim, b(dim) + 2 * ALPHA**2, b(dim))
    assert vanishes(difference)


@pytest.mark.parametrize("dim", DIMS)
def test_its_well_conditioned_form(dim):
    """H = 2 - kappa vv and b = kappa - 2 alpha^2, with kappa solved from alpha."""
    n, g = n2(dim), 1 + n2(dim)
    kappa = ((2 + n) ** 2 * ALPHA**2 - n**2) / g
    assert vanishes(schur_complement(dim) - complement_with(dim, kappa, kappa - 2 * ALPHA**2))


# --- What is not H -------------------------------------------------------------------------------

# The bracket of Vbar^2 in H, and the factor of vv vv^T, that somebody has or might have had.
WRONG = {
    # Lemma 3.4 of Akimoto et al. 2014, as those who transcribed it say
    "alpha, not squared": (lambda dim: b(dim) + 2 * ALPHA, b),
    # without the alpha that F was changed by
    "alpha dropped from H": (lambda dim: b(dim) + 2, b),
    "alpha dropped from both": (lambda dim: 4, lambda dim: 2),
    "b with the other sign": (lambda dim: -b(dim) + 2 * ALPHA**2, lambda dim: -b(dim)),
    # the third display of the CR-FM-NES paper, see below
    "the misprint": (lambda dim: b(dim) + 2 * ALPHA**2, lambda dim: -misprinted(dim)),
}


def misprinted(dim):
    """What the third display subtracts as the factor of vv vv^T."""
    n, norm_v = n2(dim), sp.sqrt(n2(dim))
    return (n**2 - ALPHA**2 * (2 + 2 * norm_v) ** 2 + n**2) / (1 + n)


def meant(dim):
    """What it has to be, and what the display before it and those after it say."""
    n = n2(dim)
    return (n**2 - ALPHA**2 * (2 + 2 * n + n**2)) / (1 + n)


def at(matrix, dim, alpha):
    """Numbers for the symbols: v = (1, 2, ...), and any D."""
    v, D = symbols(dim)
    values = {v[i]: i + 1 for i in range(dim)} | {D[i]: i + 2 for i in range(dim)}
    return matrix.subs(values).subs(ALPHA, alpha)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", WRONG)
def test_no_other_H_will_do(name, dim):
    bracket, factor = WRONG[name]
    difference = schur_complement(dim) - complement_with(dim, bracket(dim), factor(dim))
    size = max(abs(x) for x in at(difference, dim, sp.Rational(1, 2)))
    assert size > sp.Rational(1, 10)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", list(WRONG)[:3])
def test_the_place_of_alpha_matters_only_where_alpha_is_not_1(name, dim):
    """So all three are right for the Fisher information itself, where v is spread evenly."""
    bracket, factor = WRONG[name]
    difference = schur_complement(dim) - complement_with(dim, bracket(dim), factor(dim))
    assert vanishes(difference.subs(ALPHA, 1))


@pytest.mark.parametrize("dim", DIMS)
def test_the_third_display(dim):
    """-(2 + 2|v|)^2 + |v|^4 is printed for -(2 + 2|v|^2 + |v|^4); only the latter is -b."""
    assert sp.cancel(meant(dim) + b(dim)) == 0
    assert at(misprinted(dim) - meant(dim), dim, 1) != 0
    assert at(misprinted(dim) - meant(dim), dim, sp.Rational(1, 2)) != 0


# --- The numbers that the library computes --------------------------------------------------------


def after_step_3(v, y, alpha):
    """What steps 1 to 3 of the paper make of a sample: s before S divides it."""
    n = v @ v
    vbar = v / np.sqrt(n)
    s = y * y - n / (1 + n) * (y @ vbar) * y * vbar - 1
    t = (y @ vbar) * y - 0.5 * ((y @ vbar) ** 2 + 1 + n) * vbar
    return s - alpha / (1 + n) * ((2 + n) * vbar * t - n * (vbar @ t) * vbar**2)


@pytest.mark.parametrize("dim", DIMS)
def test_the_transcription_and_the_library_solve_with_it(dim):
    """One sample's step in log D is S^-1 times what step 3 leaves of s."""
    v = np.array([3.0, 0.4, 0.2][:dim])  # one coordinate holds it: alpha < 1
    n = v @ v
    alpha_vd = np.sqrt(n**2 + (2 * (1 + n) - np.sqrt(1 + n)) / np.max(v**2 / n)) / (2 + n)
    assert alpha_vd < 1
    letters, _ = symbols(dim)
    S = schur_complement(dim).subs(dict(zip(letters, v, strict=True)) | {ALPHA: alpha_vd})
    S = np.array(S, dtype=float)

    z = np.random.default_rng(dim).normal(size=dim)
    y = slow.vd_sample(v, z)
    expected = np.linalg.solve(S, after_step_3(v, y, alpha_vd))
    np.testing.assert_allclose(slow.vd_gradient(v, y)[0], expected, rtol=1e-12)
    direction = vd.direction_of(np, v)
    _, sums = vd.sample_moments(
        np, direction, z[None], np.array([z @ direction.vbar]), np.ones(1), np.ones(1)
    )
    np.testing.assert_allclose(vd.natural_gradient(np, direction, sums).log_D, expected, rtol=1e-12)


# --- The method that is run with the older H ------------------------------------------------------


@pytest.mark.parametrize("dim", DIMS)
def test_the_experiment_solves_with_the_older_H(dim):
    v = np.array([3.0, 0.4, 0.2][:dim])
    direction = vd.direction_of(np, v)
    _, alpha_vd = older_h.constants(np, direction)
    letters, _ = symbols(dim)
    bracket, factor = WRONG["alpha, not squared"]
    S = complement_with(dim, bracket(dim), factor(dim))
    S = np.array(S.subs(dict(zip(letters, v, strict=True)) | {ALPHA: alpha_vd}), dtype=float)
    z = np.random.default_rng(dim).normal(size=dim)
    _, sums = vd.sample_moments(
        np, direction, z[None], np.array([z @ direction.vbar]), np.ones(1), np.ones(1)
    )
    y = slow.vd_sample(v, z)
    expected = np.linalg.solve(S, after_step_3(v, y, alpha_vd))
    ours, right = (
        older_h.natural_gradient(np, direction, sums),
        vd.natural_gradient(np, direction, sums),
    )
    np.testing.assert_allclose(ours.log_D, expected, rtol=1e-12)
    np.testing.assert_allclose(ours.u, ours.v + v * ours.log_D, rtol=1e-12)
    assert np.max(np.abs(ours.log_D / right.log_D - 1)) > 0.1


@pytest.mark.parametrize("length", [0.1, 1.0, 10.0])
def test_where_v_is_spread_the_older_H_changes_nothing(length):
    rng = np.random.default_rng(3)
    v = rng.uniform(0.5, 1.5, size=20)
    direction = vd.direction_of(np, v / np.linalg.norm(v) * length)
    assert older_h.constants(np, direction)[1] == 1
    z = rng.normal(size=(5, 20))
    _, sums = vd.sample_moments(np, direction, z, z @ direction.vbar, np.ones(5), np.ones(5))
    ours, right = (
        older_h.natural_gradient(np, direction, sums),
        vd.natural_gradient(np, direction, sums),
    )
    for a, b in zip(ours, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.max(np.abs(b)))


def test_the_older_H_stays_positive():
    """At least 0.29 of the right one; least where one coordinate holds all of v, |v| = 1.5."""
    least = {}
    for share in np.linspace(0.26, 1, 75):
        for length in np.geomspace(1e-3, 1e6, 181):
            v = length * np.sqrt([share, *np.full(4, (1 - share) / 4)])
            direction = vd.direction_of(np, v)
            _, alpha_vd = older_h.constants(np, direction)
            vv_most = np.max(direction.vbar**2)
            right = max(2 - 4 * vv_most, 1 / direction.r)
            older = right - 2 * alpha_vd * (1 - alpha_vd) * vv_most
            least[older / right] = share, length
    assert 0.29 < min(least) < 0.3
    share, length = least[min(least)]
    assert share == 1
    assert 1.4 < length < 1.7
