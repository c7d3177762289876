"""The constants of the methods, as their papers have them."""

import math

from scipy.optimize import brentq


def w_hat(lam):
    """max(0, ln(lambda/2 + 1) - ln i)."""
    return [max(0.0, math.log(lam / 2 + 1) - math.log(i)) for i in range(1, lam + 1)]


def w_share(lam):
    """w_hat, divided by its sum."""
    total = sum(w_hat(lam))
    return [w / total for w in w_hat(lam)]


def w_rank(lam):
    return [w - 1 / lam for w in w_share(lam)]


def mu_eff_nes(lam):
    return 1 / sum((w + 1 / lam) ** 2 for w in w_rank(lam))


def chi(d):
    return math.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d**2))


def h_inv(d):
    return brentq(lambda a: (1 + a**2) * math.exp(a**2 / 2) / 0.24 - 10 - d, 0, 8, xtol=1e-15)


def alpha(d, lam, lam_F):
    return h_inv(d) * min(1, math.sqrt(lam / d)) * math.sqrt(lam_F / lam)


def eta_sigma(phase, d, lam_F):
    return {
        "move": 1.0,
        "stag": math.tanh((0.024 * lam_F + 0.7 * d + 20) / (d + 12)),
        "conv": 2 * math.tanh((0.025 * lam_F + 0.75 * d + 10) / (d + 4)),
    }[phase]


def c_sigma_nes(d, lam):
    return (mu_eff_nes(lam) + 2) / (d + mu_eff_nes(lam) + 5)


def c_c_cma(d, mu_eff):
    return (4 + mu_eff / d) / (d + 4 + 2 * mu_eff / d)


def c_1_cma(d, mu_eff):
    return 2 / ((d + 1.3) ** 2 + mu_eff)


def d_sigma_cma(d, mu_eff, c_sigma):
    return 1 + c_sigma + 2 * max(0, math.sqrt((mu_eff - 1) / (d + 1)) - 1)


def c_1_cr_fm_nes(d, lam, lam_F, variant):
    factor = (d - 5) / 6 if variant == "paper" else max((d - 5) / 6, 0.5)
    return factor * c_1_cma(d, mu_eff_nes(lam)) * lam_F / lam


def eta_B_cr_fm_nes(d, lam_F):
    return math.tanh((min(0.02 * lam_F, 3 * math.log(d)) + 5) / (0.23 * d + 25))


def eta_B_dx_nes_ic(phase, d, lam_F):
    factor = {"move": 180, "stag": 168, "conv": 12}[phase]
    return factor * d * math.tanh(0.02 * lam_F) / (47 * d**2 + 6400)


def positive_cma_weights(lam):
    """ln((lambda+1)/2) - ln i for i <= lambda/2, normalised to 1; and their mu_eff."""
    raw = [math.log((lam + 1) / 2) - math.log(i) for i in range(1, lam // 2 + 1)]
    w = [r / sum(raw) for r in raw] + [0.0] * (lam - len(raw))
    return w, 1 / sum(wi**2 for wi in w)
