"""The method auto (docs/methods/auto.md): one generation, and its rates."""

import math
from statistics import NormalDist

import numpy as np

from equations.transcriptions.auto_axes import (
    auto_axes,
    auto_matrix,
    auto_R,
)
from equations.transcriptions.constants import alpha, c_c_cma, eta_sigma, mu_eff_nes, w_hat, w_share
from equations.transcriptions.samples import (
    both_halves,
    count_feasible,
    flat,
    phase_and_weights,
    weight_of_each,
    weighted,
)


def auto_root(state):
    """R^(1/2) of (a), or B."""
    return auto_R(state, 0.5) if state["B"].size == 0 else state["B"]


def auto_ask(state, z):
    A = np.diag(state["D"]) @ auto_root(state)
    return np.array([state["m"] + state["sigma"] * A @ zi for zi in both_halves(z)])


def auto_omega(lam, normal_scores=True):
    """omega of (b), best first."""
    hat = w_share(lam)
    if not normal_scores:
        return [h - 1 / lam for h in hat]
    u = [-NormalDist().inv_cdf((i - 0.375) / (lam + 0.25)) for i in range(1, lam + 1)]
    factor = sum(h * ui for h, ui in zip(hat, u, strict=True)) / sum(ui**2 for ui in u)
    return [(ui * factor + h - 1 / lam) / 2 for ui, h in zip(u, hat, strict=True)]


def auto_shape_weights(f, z, normal_scores=True):
    """w of (b), of each candidate."""
    omega = weight_of_each(auto_omega(len(z), normal_scores), f, z)
    return [o * len(zi) / (zi @ zi) for o, zi in zip(omega, z, strict=True)]


def auto_tell(state, z, f, adapt="rates", normal_scores=True, thorough=False):
    if flat(f):
        return dict(state)
    z, D = both_halves(z), state["D"]
    lam, d, lam_F = len(z), len(state["m"]), count_feasible(f)
    mu_eff = mu_eff_nes(lam)
    p_sigma, phase, w_CR = phase_and_weights(state, z, f)
    root, c_c = auto_root(state), c_c_cma(d, mu_eff)
    zbar = weighted(w_CR, z)
    step = math.sqrt(c_c * (2 - c_c) * mu_eff) * zbar
    rate_sigma = eta_sigma(phase, d, lam_F)
    if phase == "stag":
        rate_sigma = max(rate_sigma, math.tanh(d / (64 * mu_eff)))
    if thorough:
        default = 4 + math.floor(3 * math.log(d))
        default += default % 2
        rate_sigma *= min(1, max(math.sqrt(default / lam), 1.6 / math.sqrt(d)))
    G_sigma = sum(wi * (zi @ zi) for wi, zi in zip(w_CR, z, strict=True)) / d
    omega = np.array(weight_of_each(auto_omega(lam, normal_scores), f, z))
    hat = np.array(weight_of_each(w_hat(lam), f, z)) / sum(w_hat(lam))
    w_mean = omega + w_CR - (hat - 1 / lam)
    rates, r_sigma = auto_rates(state, weighted(omega, z), G_sigma, lam, normal_scores)
    full, r_m = state["B"].size > 0, rates["eta"]
    widening = (state["eta"] / r_m) ** 0.3
    if adapt is None:
        r_m = r_sigma = widening = 1.0
        rates["eta"] = rates["eta"] if full else 1.0
    if full and phase == "move" and normal_scores:
        G_sigma -= (1 - rates["eta"]) * growth_by_chance(z, lam_F)
    new = dict(state) | rates
    new |= {
        "m": state["m"] + r_m * state["sigma"] * D * (root @ weighted(w_mean, z)),
        "sigma": state["sigma"] * math.exp(r_sigma * rate_sigma * G_sigma / 2) * widening,
        "p_sigma": p_sigma,
    }
    w = auto_shape_weights(f, z, normal_scores)
    if full:
        q = (1 - c_c) * state["p_c"] + step
        return new | auto_matrix(new, q, lam_F, w, z)
    new["p_c"] = (1 - c_c) * state["p_c"] + D * (root @ step)
    return new | auto_axes(state, new["p_c"], phase, lam_F, w_CR, w, z)


def auto_rates(state, g, G_sigma, lam, normal_scores):
    """(k) to (n): what the rates remember, and r_sigma."""
    d, eta = len(g), state["eta"]
    u = [-NormalDist().inv_cdf((i - 0.375) / (lam + 0.25)) for i in range(1, lam + 1)]
    hat = w_share(lam)
    b = min(max(0.3 * eta, 0.002), 0.2)
    signal, noise, seen = state["m_averages"]
    seen = (1 - b) * seen + b
    product = g @ state["E_m"] / seen
    signal, noise = (1 - b) * signal + b * product, (1 - b) * noise + b * (g @ g)
    change = 0.1 * (product * seen / noise * math.sqrt(d) / 0.15 - eta)
    new_eta = min(max(eta * math.exp(min(max(change, -0.1), 0.1)), 1e-4), 1.0)
    mean_G, mean_G2 = state["sigma_averages"]
    mean_G, mean_G2 = 0.9 * mean_G + 0.1 * G_sigma, 0.9 * mean_G2 + 0.1 * G_sigma**2
    ratio = (mean_G**2 - 0.1 / 1.9 * mean_G2) / (mean_G2 - mean_G**2)
    c = sum(h * ui for h, ui in zip(hat, u, strict=True))
    lengths = min(max(ratio * sum(h**2 for h in hat) / c**2, 0.0), 1.0)
    omega = auto_omega(lam, normal_scores)
    ideal = sum(o * ui for o, ui in zip(omega, u, strict=True)) ** 2 / sum(o**2 for o in omega)
    linear = max(signal / noise * d / ideal, 0.0)
    new = {
        "eta": new_eta,
        "E_m": (1 - b) * state["E_m"] + b * g,
        "m_averages": np.array([signal, noise, seen]),
        "sigma_averages": np.array([mean_G, mean_G2]),
    }
    return new, min(1.0, new_eta + max(0.0, lengths - 10 * linear) ** 2)


def growth_by_chance(z, lam_F):
    """Gamma in (p): tr(G_M) / d if each candidate had the mean of the rank weights."""
    lam, d = len(z), len(z[0])
    w = [math.exp(alpha(d, lam, lam_F) * np.linalg.norm(zi)) for zi in z]
    return sum((wi / sum(w) - 1 / lam) * (zi @ zi) for wi, zi in zip(w, z, strict=True)) / d


def auto_popsize(state, lam, lam_0):
    """(q): the population of the next generation, and the state for it."""
    d, (signal, noise, seen) = len(state["m"]), state["m_averages"]
    if seen < 0.8:
        return lam, dict(state)
    u = [-NormalDist().inv_cdf((i - 0.375) / (lam + 0.25)) for i in range(1, lam + 1)]
    hat = w_share(lam)
    c = sum(h * ui for h, ui in zip(hat, u, strict=True))
    mean_G, mean_G2 = state["sigma_averages"]
    Y = (mean_G**2 - 0.1 / 1.9 * mean_G2) / (mean_G2 - mean_G**2) * sum(h**2 for h in hat) / c**2
    Y, ratio = min(max(Y, 0.0), 1.0), signal / noise * math.sqrt(d) / 0.15
    D_is_quiet = state["B"].size > 0 or d * state["A"] / state["C"] <= 0.15
    new = lam
    if ratio < 1 and Y < 0.05 and D_is_quiet:
        new = min(2 * lam, 64 * lam_0)
    elif ratio > 3 or Y > 0.3:
        new = max(lam // 2, lam_0)
    if new == lam:
        return lam, dict(state)
    forgotten = {"E_m": np.zeros(d), "m_averages": np.zeros(3), "eta": 1.0}
    return new, state | forgotten | {"sigma": state["sigma"] * (new / lam) ** 0.3}
