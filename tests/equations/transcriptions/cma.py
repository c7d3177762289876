"""VD-CMA (4.1), sep-CMA-ES (4.2) and CMA-ES (4.10)."""

import math

import numpy as np
from scipy.linalg import sqrtm

from equations.transcriptions.constants import (
    c_1_cma,
    c_c_cma,
    chi,
    d_sigma_cma,
    positive_cma_weights,
)
from equations.transcriptions.cr_fm_nes import vd_gradient, vd_sample
from equations.transcriptions.samples import flat, weight_of_each, weighted


def vd_cma_ask(state, z):
    rows = [state["m"] + state["sigma"] * state["D"] * vd_sample(state["v"], zi) for zi in z]
    return np.array(rows)


def vd_cma_constants(d, lam):
    w, mu_eff = positive_cma_weights(lam)
    cfac = max((d - 5) / 6, 0.5)
    c_1 = cfac * c_1_cma(d, mu_eff)
    c_s = 0.5 / (math.sqrt(d / mu_eff) + 1)
    return {
        "w": w,
        "mu_eff": mu_eff,
        "c_c": c_c_cma(d, mu_eff),
        "c_1": c_1,
        "c_mu": min(1 - c_1, cfac * 2 * (mu_eff - 2 + 1 / mu_eff) / ((d + 2) ** 2 + mu_eff)),
        "c_s": c_s,
        "d_s": d_sigma_cma(d, mu_eff, c_s),
    }


def vd_cma_tell(state, z, f):
    if flat(f):
        return dict(state)
    m, sigma, D, v = state["m"], state["sigma"], state["D"], state["v"]
    d = len(m)
    k = vd_cma_constants(d, len(z))
    mu_eff, c_c, c_s = k["mu_eff"], k["c_c"], k["c_s"]
    w = weight_of_each(k["w"], f, z)
    y = [vd_sample(v, zi) for zi in z]
    ybar = weighted(w, y)

    vbar, g = v / np.linalg.norm(v), 1 + v @ v
    zbar = ybar + (1 / math.sqrt(g) - 1) * (ybar @ vbar) * vbar
    p_s = (1 - c_s) * state["p_s"] + math.sqrt(c_s * (2 - c_s) * mu_eff) * zbar
    h = 1 if p_s @ p_s < (2 + 4 / (d + 1)) * d else 0
    p_c = (1 - c_c) * state["p_c"] + h * math.sqrt(c_c * (2 - c_c) * mu_eff) * D * ybar

    S, T = np.zeros(d), np.zeros(d)
    for wi, yi in [*zip([k["c_mu"] * wi for wi in w], y, strict=True), (h * k["c_1"], p_c / D)]:
        s, t = vd_gradient(v, yi)
        S, T = S + wi * s, T + wi * t
    dv, dD = T / np.linalg.norm(v), D * S
    up = min(1, 0.7 * np.linalg.norm(v) / np.linalg.norm(dv), 0.7 * min(D / abs(dD)))
    return {
        "m": m + sigma * D * ybar,
        "sigma": sigma * math.exp(c_s / k["d_s"] * (np.linalg.norm(p_s) / chi(d) - 1)),
        "D": D + up * dD,
        "v": v + up * dv,
        "p_s": p_s,
        "p_c": p_c,
    }


def sep_cma_constants(d, lam):
    """One rate c_cov for both updates, the share 1/mu_eff of it for the path (the paper)."""
    mu = lam // 2
    raw = [math.log(mu + 1) - math.log(i) for i in range(1, mu + 1)]
    w = [r / sum(raw) for r in raw] + [0.0] * (lam - mu)
    mu_eff = 1 / sum(wi**2 for wi in w)
    c_cov = (
        (d + 2)
        / 3
        * (
            2 / (mu_eff * (d + math.sqrt(2)) ** 2)
            + (1 - 1 / mu_eff) * min(1, (2 * mu_eff - 1) / ((d + 2) ** 2 + mu_eff))
        )
    )
    c_s = (mu_eff + 2) / (d + mu_eff + 3)
    return {
        "w": w,
        "mu_eff": mu_eff,
        "c_c": 4 / (d + 4),
        "c_1": c_cov / mu_eff,
        "c_mu": c_cov * (1 - 1 / mu_eff),
        "c_s": c_s,
        "d_s": d_sigma_cma(d, mu_eff, c_s),
    }


def sep_cma_ask(state, z):
    return np.array([state["m"] + state["sigma"] * np.sqrt(state["C"]) * zi for zi in z])


def sep_cma_tell(state, z, f):
    if flat(f):
        return dict(state)
    m, sigma, C, t = state["m"], state["sigma"], state["C"], state["t"]
    d, k = len(m), sep_cma_constants(len(m), len(z))
    mu_eff, c_c, c_s, c_1, c_mu = (k[name] for name in ("mu_eff", "c_c", "c_s", "c_1", "c_mu"))
    w = weight_of_each(k["w"], f, z)
    y = [np.sqrt(C) * zi for zi in z]
    yw = weighted(w, y)
    p_s = (1 - c_s) * state["p_s"] + math.sqrt(c_s * (2 - c_s) * mu_eff) * yw / np.sqrt(C)
    h = _h_sigma(p_s, c_s, t, d)
    p_c = (1 - c_c) * state["p_c"] + h * math.sqrt(c_c * (2 - c_c) * mu_eff) * yw
    kept = 1 + c_1 * (1 - h) * c_c * (2 - c_c) - c_1 - c_mu * sum(w)
    return {
        "m": m + sigma * yw,
        "sigma": sigma * math.exp(c_s / k["d_s"] * (np.linalg.norm(p_s) / chi(d) - 1)),
        "C": kept * C + c_1 * p_c * p_c + c_mu * weighted(w, [yi * yi for yi in y]),
        "p_s": p_s,
        "p_c": p_c,
        "t": t + 1,
    }


def _h_sigma(p_s, c_s, t, d):
    length = np.linalg.norm(p_s) / math.sqrt(1 - (1 - c_s) ** (2 * (t + 1)))
    return 1 if length < (1.4 + 2 / (d + 1)) * chi(d) else 0


def cma_es_constants(d, lam):
    mu = lam // 2
    raw = [math.log((lam + 1) / 2) - math.log(i) for i in range(1, lam + 1)]
    mu_eff = sum(raw[:mu]) ** 2 / sum(r**2 for r in raw[:mu])
    mu_eff_minus = sum(raw[mu:]) ** 2 / sum(r**2 for r in raw[mu:])
    c_1 = c_1_cma(d, mu_eff)
    c_mu = min(1 - c_1, 2 * (1 / 4 + mu_eff + 1 / mu_eff - 2) / ((d + 2) ** 2 + mu_eff))
    a_mu = 1 + c_1 / c_mu
    a_eff = 1 + 2 * mu_eff_minus / (mu_eff + 2)
    a_pos = (1 - c_1 - c_mu) / (d * c_mu)
    positive = sum(r for r in raw if r > 0)
    negative = sum(-r for r in raw if r < 0)
    c_s = (mu_eff + 2) / (d + mu_eff + 5)
    return {
        "mu_eff": mu_eff,
        "w": [r / positive if r >= 0 else min(a_mu, a_eff, a_pos) * r / negative for r in raw],
        "c_c": c_c_cma(d, mu_eff),
        "c_1": c_1,
        "c_mu": c_mu,
        "c_s": c_s,
        "d_s": d_sigma_cma(d, mu_eff, c_s),
        # The tutorial rounds down; its author's package waits until so many have passed, as we do.
        "refresh_every": math.ceil(1 / (10 * d * (c_1 + c_mu))),
    }


def cma_es_ask(state, z):
    """With ``root``, the factor of C that is in use (it may lag behind C by some generations)."""
    return np.array([state["m"] + state["sigma"] * state["root"] @ zi for zi in z])


def cma_es_tell(state, z, f):
    if flat(f):
        return dict(state)
    m, sigma, C, root, t = (state[name] for name in ("m", "sigma", "C", "root", "t"))
    d, k = len(m), cma_es_constants(len(m), len(z))
    mu_eff, c_c, c_s, c_1, c_mu = (k[name] for name in ("mu_eff", "c_c", "c_s", "c_1", "c_mu"))
    w_plus = weight_of_each([max(wi, 0.0) for wi in k["w"]], f, z)
    w_minus = weight_of_each([min(wi, 0.0) for wi in k["w"]], f, z)
    y = [root @ zi for zi in z]
    yw = weighted(w_plus, y)
    inv_sqrt_C = np.linalg.inv(np.real(sqrtm(root @ root.T)))
    p_s = (1 - c_s) * state["p_s"] + math.sqrt(c_s * (2 - c_s) * mu_eff) * inv_sqrt_C @ yw
    h = _h_sigma(p_s, c_s, t, d)
    p_c = (1 - c_c) * state["p_c"] + h * math.sqrt(c_c * (2 - c_c) * mu_eff) * yw
    rank_mu = np.zeros((d, d))
    for plus, minus, yi in zip(w_plus, w_minus, y, strict=True):
        wo = plus + minus * d / np.linalg.norm(inv_sqrt_C @ yi) ** 2
        rank_mu = rank_mu + wo * np.outer(yi, yi)
    kept = 1 + c_1 * (1 - h) * c_c * (2 - c_c) - c_1 - c_mu * sum(k["w"])
    return {
        "m": m + sigma * yw,
        "sigma": sigma * math.exp(c_s / k["d_s"] * (np.linalg.norm(p_s) / chi(d) - 1)),
        "C": kept * C + c_1 * np.outer(p_c, p_c) + c_mu * rank_mu,
        "p_s": p_s,
        "p_c": p_c,
        "t": t + 1,
    }
