"""DX-NES-IC (3.1) and FM-NES (3.2; section II of the CR-FM-NES paper)."""

import math

import numpy as np
from scipy.linalg import expm

from equations.transcriptions.constants import (
    c_1_cma,
    c_c_cma,
    eta_B_dx_nes_ic,
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


def dx_nes_ic_ask(state, z):
    rows = [state["m"] + state["sigma"] * state["B"] @ zi for zi in both_halves(z)]
    return np.array(rows)


def dx_nes_ic_tell(state, z, f):
    if flat(f):
        return dict(state)
    new, _phase = _dx_nes_ic_step(state, both_halves(z), f)
    return new


def _dx_nes_ic_step(state, z, f):
    m, sigma, B = state["m"], state["sigma"], state["B"]
    lam, d, lam_F = len(z), len(m), count_feasible(f)
    eye = np.eye(d)
    p_sigma, phase, w = phase_and_weights(state, z, f)
    G_delta = weighted(w, z)
    G_M = weighted(w, [np.outer(zi, zi) - eye for zi in z])
    G_sigma = np.trace(G_M) / d
    G_B = G_M - G_sigma * eye
    sigma_new = sigma * math.exp(eta_sigma(phase, d, lam_F) * G_sigma / 2)
    B_new = B @ expm(eta_B_dx_nes_ic(phase, d, lam_F) * G_B / 2)

    old, grown = B @ B.T, B_new @ B_new.T
    e = np.linalg.eigh(old).eigenvectors.T  # rows
    tau = [(ei @ grown @ ei) / (ei @ old @ ei) - 1 for ei in e]
    c_gamma, d_gamma = 1 / (3 * (d - 1)), min(1, d / lam)
    grown_by = math.sqrt(1 + d_gamma * max(tau))
    gamma = max((1 - c_gamma) * state["gamma"] + c_gamma * grown_by, 1)
    if phase == "move":
        Q = eye + (gamma - 1) * sum(
            np.outer(ei, ei) if tau_i > 0 else 0 * eye for ei, tau_i in zip(e, tau, strict=True)
        )
        root = np.linalg.det(Q) ** (1 / d)
        sigma_new, B_new = sigma_new * root, Q @ B_new / root
    new = {
        "m": m + sigma * B @ G_delta,
        "sigma": sigma_new,
        "B": B_new,
        "p_sigma": p_sigma,
        "gamma": gamma,
    }
    return new, phase


fm_nes_ask = dx_nes_ic_ask


def fm_nes_tell(state, z, f, largest_stretch=math.inf):
    """Two rules are not in any text at hand, and are the library's choice.

    The rank-one update is taken unless infeasible candidates lie ahead along the path: if the sum
    of <z_i, r> over the n infeasible ones, r = B^-1 p_c, is at most -1.5 sqrt(n) |r|. At the first
    infeasible candidate the shape goes back to its start, once: B, p_c and gamma.
    """
    if flat(f):
        return dict(state)
    z, B = both_halves(z), state["B"]
    lam, d, lam_F = len(z), len(state["m"]), count_feasible(f)
    mu_eff, eye = mu_eff_nes(lam), np.eye(d)
    new, _phase = _dx_nes_ic_step(state, z, f)
    _, _, w = phase_and_weights(state, z, f)
    c_c = c_c_cma(d, mu_eff)
    step = math.sqrt(c_c * (2 - c_c) * mu_eff) * B @ weighted(w, z)
    p_c = (1 - c_c) * state["p_c"] + step
    r = np.linalg.inv(B) @ p_c
    ahead = sum(zi @ r for zi, fi in zip(z, f, strict=True) if not fi < math.inf)
    if ahead <= -1.5 * math.sqrt((lam - lam_F) * (r @ r)):
        c_1 = c_1_cma(d, mu_eff) * lam_F / lam
        if c_1 * (r @ r) / 2 > largest_stretch:  # the library's limit; no paper has one
            r = r * math.sqrt(largest_stretch * 2 / c_1 / (r @ r))
        R = np.outer(r, r) - eye
        new["B"] = new["B"] @ expm(c_1 * (R - np.trace(R) * eye / d) / 2)
    always_feasible = state["always_feasible"] and lam_F == lam
    if state["always_feasible"] and not always_feasible:
        new["B"], p_c, new["gamma"] = state["B_0"], np.zeros(d), 1.0
    return new | {"p_c": p_c, "B_0": state["B_0"], "always_feasible": always_feasible}
