"""What every method shares: weights of samples, ties, infeasible values, the phase."""

import math

import numpy as np

from equations.transcriptions.constants import alpha, c_sigma_nes, chi, mu_eff_nes, w_hat


def feasible(f):
    return not math.isnan(f) and f != math.inf


def count_feasible(f):
    return sum(1 for fi in f if feasible(fi))


def flat(f):
    """All values equal and finite: such a generation is to change nothing."""
    return math.isfinite(f[0]) and all(fi == f[0] for fi in f)


def weight_of_each(by_rank, f, z, share_ties=True):
    """The weight of each candidate: feasible ones by f, then infeasible ones by |z|.

    Candidates that compare equal share the mean of the weights of the ranks they hold together.
    """
    keys = [
        (0, fi, 0.0) if feasible(fi) else (1, 0.0, float(np.sum(zi * zi)))
        for fi, zi in zip(f, z, strict=True)
    ]
    order = sorted(range(len(keys)), key=lambda i: keys[i])  # Python's sort is stable
    weight = [0.0] * len(keys)
    for rank, i in enumerate(order):
        weight[i] = by_rank[rank]
    if share_ties:
        for i, key in enumerate(keys):
            ranks = [rank for rank, j in enumerate(order) if keys[j] == key]
            weight[i] = sum(by_rank[rank] for rank in ranks) / len(ranks)
    return weight


def both_halves(z):
    """Rows z, then rows -z."""
    return list(z) + [-zi for zi in z]


def weighted(w, terms):
    return sum(wi * term for wi, term in zip(w, terms, strict=True))


def phase_of(p_sigma, d):
    length = np.linalg.norm(p_sigma)
    if length >= chi(d):
        return "move"
    if length >= 0.1 * chi(d):
        return "stag"
    return "conv"


def phase_and_weights(state, z, f, share_ties=True, by_distance=True):
    """Steps 4 to 6 of section II, for three methods: p_sigma, the phase, the weights.

    ``z`` has all lambda rows.
    """
    lam, d = len(z), len(z[0])
    mu_eff, c_sigma = mu_eff_nes(lam), c_sigma_nes(d, lam)
    hat = weight_of_each(w_hat(lam), f, z, share_ties)
    total = sum(w_hat(lam))
    w = [h / total - 1 / lam for h in hat]
    step = math.sqrt(c_sigma * (2 - c_sigma) * mu_eff) * weighted(w, z)
    p_sigma = (1 - c_sigma) * state["p_sigma"] + step
    phase = phase_of(p_sigma, d)
    if phase == "move" and by_distance:
        a = alpha(d, lam, count_feasible(f))
        dist = [h * math.exp(a * np.linalg.norm(zi)) for h, zi in zip(hat, z, strict=True)]
        w = [h / sum(dist) - 1 / lam for h in dist]
    return p_sigma, phase, w
