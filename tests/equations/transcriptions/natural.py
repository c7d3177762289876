"""xNES (3.4), SNES (3.5) and R1-NES (3.6)."""

import math

import numpy as np
from scipy.linalg import expm, sqrtm

from equations.transcriptions.constants import w_rank, w_share
from equations.transcriptions.samples import flat, weight_of_each, weighted


def xnes_ask(state, z):
    return np.array([state["m"] + state["sigma"] * state["B"] @ zi for zi in z])


def xnes_tell(state, z, f):
    if flat(f):
        return dict(state)
    m, sigma, B = state["m"], state["sigma"], state["B"]
    lam, d = len(z), len(m)
    eta = 0.6 * (3 + math.log(d)) / (d * math.sqrt(d))
    w = weight_of_each(w_rank(lam), f, z)
    G_M = weighted(w, [np.outer(zi, zi) - np.eye(d) for zi in z])
    G_sigma = np.trace(G_M) / d
    return {
        "m": m + sigma * B @ weighted(w, z),
        "sigma": sigma * math.exp(eta * G_sigma / 2),
        "B": B @ expm(eta * (G_M - G_sigma * np.eye(d)) / 2),
    }


def snes_ask(state, z):
    return np.array([state["m"] + state["s"] * zi for zi in z])


def snes_tell(state, z, f):
    if flat(f):
        return dict(state)
    d = len(state["m"])
    u = weight_of_each(w_rank(len(z)), f, z)
    eta_s = (3 + math.log(d)) / (5 * math.sqrt(d))
    return {
        "m": state["m"] + state["s"] * weighted(u, z),
        "s": state["s"] * np.exp(0.5 * eta_s * weighted(u, [zi * zi - 1 for zi in z])),
    }


def r1_nes_sample(state, zi):
    """y ~ N(0, I + p p^T) by the symmetric root, so that d draws are enough."""
    root = np.real(sqrtm(np.eye(len(zi)) + np.outer(state["p"], state["p"])))
    return root @ zi


def r1_nes_ask(state, z):
    return np.array([state["m"] + math.exp(state["L"]) * r1_nes_sample(state, zi) for zi in z])


def r1_nes_tell(state, z, f):
    if flat(f):
        return dict(state)
    p, L = state["p"], state["L"]
    d, lam, eta = len(p), len(z), 0.1
    r = np.linalg.norm(p)
    c, v = math.log(r), p / r
    u = weight_of_each(w_share(lam), f, z)
    y = [r1_nes_sample(state, zi) for zi in z]

    delta_p, delta_L = np.zeros(d), 0.0
    for ui, yi in zip(u, y, strict=True):
        k = ((r**2 - d + 2) * (v @ yi) ** 2 - (r**2 + 1) * (yi @ yi)) / (2 * r * (d - 1))
        delta_p = delta_p + ui * k * v + ui * (v @ yi) / r * yi
        delta_L += ui * ((yi @ yi - d) - ((v @ yi) ** 2 - 1)) / (2 * (d - 1))
    delta_c = delta_p @ v / r
    e = min(eta, 2 * math.sqrt(r**2 / (delta_p @ delta_p)))
    if delta_c > 0:
        p_new = p + e * delta_p
    else:
        v_new = v + e * (delta_p / r - delta_c * v)
        p_new = math.exp(c + e * delta_c) * v_new / np.linalg.norm(v_new)
    return {
        "m": state["m"] + math.exp(L) * weighted(u, y),
        "L": L + eta * delta_L,
        "p": p_new,
    }
