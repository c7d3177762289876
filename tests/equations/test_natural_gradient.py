"""The natural gradient of D (I + v v^T) D against its definition, and in high precision.

The definition: the gradient of the log-likelihood in (v, D), divided by the Fisher matrix
F_kl = 0.5 tr(C^-1 dC_k C^-1 dC_l) whose blocks between v and D are multiplied by alpha_vd.
"""

import math

import mpmath
import numpy as np
import pytest

from equations import transcriptions as slow
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms import cr_fm_nes, vd_cma


def derivatives(v, D):
    """dC/dv_k for all k, then dC/dD_k for all k, of C = D (I + v v^T) D."""
    d = len(v)
    eye, inner = np.eye(d), np.eye(d) + np.outer(v, v)
    by_v = [np.diag(D) @ (np.outer(e, v) + np.outer(v, e)) @ np.diag(D) for e in eye]
    by_D = [np.diag(e) @ inner @ np.diag(D) + np.diag(D) @ inner @ np.diag(e) for e in eye]
    return by_v + by_D


def alpha_vd(v):
    n2, largest = v @ v, max(v * v) / (v @ v)
    g = 1 + n2
    return min(1, math.sqrt(n2**2 + (2 * g - math.sqrt(g)) / largest) / (2 + n2))


def by_definition(v, D, y):
    """(change of v, relative change of D) for the sample D y, by a direct solve."""
    d = len(v)
    C_inv = np.linalg.inv(np.diag(D) @ (np.eye(d) + np.outer(v, v)) @ np.diag(D))
    x, dC = D * y, derivatives(v, D)
    gradient = [0.5 * (x @ C_inv @ dk @ C_inv @ x - np.trace(C_inv @ dk)) for dk in dC]
    fisher = np.array([[0.5 * np.trace(C_inv @ dk @ C_inv @ dl) for dl in dC] for dk in dC])
    fisher[:d, d:] *= alpha_vd(v)
    fisher[d:, :d] *= alpha_vd(v)
    step = np.linalg.solve(fisher, gradient)
    return step[:d], step[d:] / D


def by_the_library(v, z):
    """The same of the library, for the sample (I + v v^T)^(1/2) z."""
    direction = vd.direction_of(np, v)
    return vd.natural_gradient(
        np,
        direction,
        vd.sample_moments(
            np, direction, z[None, :], (z @ direction.vbar)[None], np.ones(1), np.ones(1)
        )[1],
    )


def random_model(rng, dim, length, lopsided):
    v = rng.normal(size=dim)
    if lopsided:
        v[rng.integers(dim)] *= 20  # so that alpha_vd < 1
    return v / np.linalg.norm(v) * length, np.exp(rng.normal(size=dim))


def close(ours, theirs, rtol, least_scale=0.0):
    theirs = np.asarray(theirs, dtype=float)
    scale = max(np.max(np.abs(theirs)), least_scale)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * scale)


@pytest.mark.parametrize("lopsided", [False, True])
@pytest.mark.parametrize("length", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("dim", range(3, 12))
def test_one_sample_against_the_fisher_matrix(dim, length, lopsided):
    rng = np.random.default_rng([dim, lopsided])
    v, D = random_model(rng, dim, length, lopsided)
    assert (alpha_vd(v) < 1) or not lopsided
    z = rng.normal(size=dim)
    dv, relative_dD = by_definition(v, D, slow.vd_sample(v, z))
    ours = by_the_library(v, z)
    close(ours.v, dv, 1e-8)
    close(ours.log_D, relative_dD, 1e-8)
    close(ours.u, dv + v * relative_dD, 1e-8)
    s, t = slow.vd_gradient(v, slow.vd_sample(v, z))
    close(t / length, dv, 1e-8)
    close(s, relative_dD, 1e-8)


# --- A generation's whole step, of the two methods that take it ----------------------------------


def random_generation(rng, dim, length, lam, pairs):
    v, D = random_model(rng, dim, length, lopsided=False)
    p_sigma, p_c, mean = 0.3 * rng.normal(size=(3, dim))
    state = {"m": mean, "sigma": 0.7, "D": D, "v": v, "p_sigma": p_sigma, "p_c": D * p_c}
    return state, rng.normal(size=(lam // 2 if pairs else lam, dim)), rng.normal(size=lam)


@pytest.mark.parametrize("dim", range(5, 12))
def test_cr_fm_nes_against_the_fisher_matrix(dim):
    rng = np.random.default_rng(dim)
    lam = cr_fm_nes.default_popsize(dim)
    params = cr_fm_nes.params(dim, lam, cr_fm_nes.CRFMNES(variant="paper"))
    state, z, f = random_generation(rng, dim, 3.0, lam, pairs=True)
    old = cr_fm_nes.State(state["m"], np.asarray(0.7), *list(state.values())[2:])
    new = cr_fm_nes.tell(params, old, z, f)

    rows = slow.both_halves(z)
    _, _, w = slow.phase_and_weights(state, rows, f)
    rates = [slow.eta_B_cr_fm_nes(dim, lam) * wi for wi in w]
    rates.append(slow.c_1_cr_fm_nes(dim, lam, lam, "paper"))
    samples = [slow.vd_sample(old.v, zi) for zi in rows] + [new.p_c / old.D]
    steps = [by_definition(old.v, old.D, y) for y in samples]
    close(new.v - old.v, slow.weighted(rates, [dv for dv, _ in steps]), 1e-8)
    D = old.D * (1 + slow.weighted(rates, [dD for _, dD in steps]))
    volume = np.prod(D) * math.sqrt(1 + new.v @ new.v)
    close(new.D, D / volume ** (1 / dim), 1e-8)


@pytest.mark.parametrize("dim", range(3, 12))
def test_vd_cma_against_the_fisher_matrix(dim):
    rng = np.random.default_rng(dim)
    lam = vd_cma.default_popsize(dim)
    state, z, f = random_generation(rng, dim, 3.0, lam, pairs=False)
    old = vd_cma.State(state["m"], np.asarray(0.7), *list(state.values())[2:])
    new = vd_cma.tell(vd_cma.params(dim, lam), old, z, f)

    k = slow.vd_cma_constants(dim, lam)
    rates = [k["c_mu"] * wi for wi in slow.weight_of_each(k["w"], f, z)] + [k["c_1"]]
    samples = [slow.vd_sample(old.v, zi) for zi in z] + [new.p_c / old.D]
    steps = [by_definition(old.v, old.D, y) for y in samples]
    dv = slow.weighted(rates, [dv for dv, _ in steps])
    dD = slow.weighted(rates, [dD for _, dD in steps])
    assert max(np.max(np.abs(dD)), np.linalg.norm(dv) / 3.0) < 0.7  # within the 70 % guard
    close(new.v - old.v, dv, 1e-8)
    close(new.D - old.D, old.D * dD, 1e-8)


# --- Long and short v, where plain float64 formulas break ----------------------------------------


def in_high_precision(v, z):
    """Steps 1 to 5 of section III-B as the paper writes them, in 80 digits: (s, t / |v|)."""
    dot = mpmath.fdot
    v, z = [mpmath.mpf(float(x)) for x in v], [mpmath.mpf(float(x)) for x in z]
    n2 = dot(v, v)
    norm_v, g = mpmath.sqrt(n2), 1 + n2
    vbar = [x / norm_v for x in v]
    vv = [x * x for x in vbar]
    a = dot(z, vbar)
    y = [zj + (mpmath.sqrt(g) - 1) * a * b for zj, b in zip(z, vbar, strict=True)]
    yb = dot(y, vbar)
    s = [yj**2 - n2 / g * yb * yj * b - 1 for yj, b in zip(y, vbar, strict=True)]
    t = [yb * yj - (yb**2 + g) / 2 * b for yj, b in zip(y, vbar, strict=True)]
    alpha = min(1, mpmath.sqrt(n2**2 + (2 * g - mpmath.sqrt(g)) / max(vv)) / (2 + n2))
    b_ = 2 * alpha**2 - (1 - alpha**2) * n2**2 / g
    H = [2 - (b_ + 2 * alpha**2) * q for q in vv]
    vt = dot(vbar, t)
    s = [
        sj - alpha / g * ((2 + n2) * bj * tj - n2 * vt * q)
        for sj, tj, bj, q in zip(s, t, vbar, vv, strict=True)
    ]
    vvH = [q / h for q, h in zip(vv, H, strict=True)]
    factor = b_ / (1 + b_ * dot(vv, vvH)) * dot(vvH, s)
    s = [sj / h - factor * q for sj, h, q in zip(s, H, vvH, strict=True)]
    vs = dot(vv, s)
    t = [tj - alpha * ((2 + n2) * bj * sj - vs * bj) for tj, sj, bj in zip(t, s, vbar, strict=True)]
    return s, [tj / norm_v for tj in t]


EPS = np.finfo(float).eps


@pytest.mark.parametrize("share", ["even", "half", "most", "all"])
@pytest.mark.parametrize("length", [1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, 1e8])
def test_high_precision(length, share):
    """The step of u = D v is exact to rounding whatever the length of v and wherever it points.

    So are the steps of D and v unless one coordinate holds more than half of |v|^2. Then H has
    an entry 1/sqrt(g) left over from 2 - kappa vv, at a loss of |v|; and where that coordinate
    holds all but 1e-11, 1 + b <vv, vv/H> loses |v| once more. That D_j and |v| are then told
    apart less exactly is no harm: the samples tell them apart as little, and only through u.
    The papers' formulas lose |v|^3 wherever v points.
    """
    rng = np.random.default_rng(8)
    v = rng.normal(size=10)
    v = v / np.max(np.abs(v))
    v[3] = {"even": 1.0, "half": 3.0, "most": 30.0, "all": 1e6}[share]
    v = v / np.linalg.norm(v) * length
    loss = {"even": 1.0, "half": length, "most": length, "all": length**2}[share]
    rtol = 64 * EPS * max(1.0, loss)
    for _ in range(5):
        z = rng.normal(size=10)
        with mpmath.workdps(80):
            s, dv = in_high_precision(v, z)
            du = [dvj + mpmath.mpf(float(vj)) * sj for dvj, vj, sj in zip(dv, v, s, strict=True)]
        ours = by_the_library(v, z)
        close(ours.u, du, 16 * EPS, least_scale=length)
        close(ours.log_D, s, min(rtol, 1e-3))
        close(ours.v, dv, min(rtol, 1e-3))
