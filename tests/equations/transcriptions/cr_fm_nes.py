"""CR-FM-NES (1.2), and the restricted Gaussian that VD-CMA has too."""

import math

import numpy as np

from equations.transcriptions.constants import (
    c_1_cr_fm_nes,
    c_c_cma,
    eta_B_cr_fm_nes,
    eta_sigma,
    mu_eff_nes,
)
from equations.transcriptions.samples import (
    both_halves,
    count_feasible,
    flat,
    phase_and_weights,
    weighted,
)


def vd_sample(v, z):
    """(I + v v^T)^(1/2) z."""
    vbar = v / np.linalg.norm(v)
    return z + (math.sqrt(1 + v @ v) - 1) * (z @ vbar) * vbar


def vd_gradient(v, y):
    """(s, t) of steps 1 to 5 of section III-B for one sample y."""
    n2 = v @ v
    g = 1 + n2
    vbar = v / np.linalg.norm(v)
    vv = vbar * vbar
    s = y * y - (n2 / g) * (y @ vbar) * (y * vbar) - 1
    t = (y @ vbar) * y - 0.5 * ((y @ vbar) ** 2 + g) * vbar
    alpha_vd = min(1, math.sqrt(n2**2 + (2 * g - math.sqrt(g)) / max(vv)) / (2 + n2))
    b = 2 * alpha_vd**2 - (1 - alpha_vd**2) * n2**2 / g
    H = 2 - (b + 2 * alpha_vd**2) * vv
    s = s - (alpha_vd / g) * ((2 + n2) * vbar * t - n2 * (vbar @ t) * vv)
    s = s / H - b / (1 + b * (vv @ (vv / H))) * ((vv / H) @ s) * (vv / H)
    t = t - alpha_vd * ((2 + n2) * vbar * s - (vv @ s) * vbar)
    return s, t


def not_shorter(v, least):
    """The library's floor under |v|, which no paper has; each method's _move argues for it."""
    return v * max(1, least / np.linalg.norm(v))


def cr_fm_nes_ask(state, z):
    rows = [
        state["m"] + state["sigma"] * state["D"] * vd_sample(state["v"], zi)
        for zi in both_halves(z)
    ]
    return np.array(rows)


def cr_fm_nes_tell(state, z, f, variant="safe", shortest_v=0.0, **settings):
    """``settings``: eta_B, c_1, eta_sigma, distance_weights, where they are not the paper's."""
    if variant == "safe" and flat(f):
        return dict(state)
    m, sigma, D, v = state["m"], state["sigma"], state["D"], state["v"]
    z, x = both_halves(z), cr_fm_nes_ask(state, z)
    lam, d, lam_F = len(z), len(m), count_feasible(f)
    mu_eff = mu_eff_nes(lam)
    by_distance = settings.get("distance_weights", True)
    p_sigma, phase, w = phase_and_weights(state, z, f, variant == "safe", by_distance)

    wxm = weighted(w, [xi - m for xi in x])
    c_c = c_c_cma(d, mu_eff)
    p_c = (1 - c_c) * state["p_c"] + math.sqrt(c_c * (2 - c_c) * mu_eff) * wxm / sigma

    eta_B, c_1 = eta_B_cr_fm_nes(d, lam_F), c_1_cr_fm_nes(d, lam, lam_F, variant)
    eta_B = settings.get("eta_B", eta_B)
    if "c_1" in settings:
        c_1 = settings["c_1"] * lam_F / lam
    rate_sigma = eta_sigma(phase, d, lam_F)
    if variant == "safe":  # docs/safe-variant.md, "Two learning rates"
        if phase != "move" and np.linalg.norm(v) > 20:
            eta_B = eta_B * 20 / np.linalg.norm(v)
        if phase == "stag":
            rate_sigma = max(rate_sigma, math.tanh(d / (64 * mu_eff)))
    rate_sigma = settings.get("eta_sigma", rate_sigma)
    S, T = np.zeros(d), np.zeros(d)
    for wi, zi in zip(w, z, strict=True):
        s, t = vd_gradient(v, vd_sample(v, zi))
        S, T = S + eta_B * wi * s, T + eta_B * wi * t
    s, t = vd_gradient(v, p_c / D)
    S, T = S + c_1 * s, T + c_1 * t
    dv = T / np.linalg.norm(v)
    if variant == "paper":
        v_new, D_new = v + dv, D * (1 + S)
    else:  # one step in D and u = D v, as far as neither changes by more than 70 %
        du = dv + v * S
        fraction = min(1, 0.7 / max(abs(S)), 0.7 * np.linalg.norm(v) / np.linalg.norm(du))
        D_new = D * (1 + fraction * S)
        v_new = not_shorter((v + fraction * du) / (1 + fraction * S), shortest_v)
    log_det = sum(math.log(Dj) for Dj in D_new) / d + math.log(1 + v_new @ v_new) / (2 * d)

    G_sigma = sum(wi * (zij**2 - 1) for wi, zi in zip(w, z, strict=True) for zij in zi) / d
    return {
        "m": m + wxm,
        "sigma": sigma * math.exp(rate_sigma * G_sigma / 2),
        "D": D_new / math.exp(log_det),
        "v": v_new,
        "p_sigma": p_sigma,
        "p_c": p_c,
    }
