"""Slow, literal transcriptions of one generation of each method, sample by sample.

They are written from the equations alone, without the library's tricks: loops over samples,
explicit matrices, explicit sorting. States are plain dicts under the papers' letters. What these
functions and the library agree on, two texts written apart agree on.

Every ``*_ask(state, z)`` returns the population, every ``*_tell(state, z, f)`` the next state.
"""

import math
from statistics import NormalDist

import numpy as np
from scipy.linalg import expm, sqrtm
from scipy.optimize import brentq

# --- Constants -----------------------------------------------------------------------------------


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


# --- What every method shares --------------------------------------------------------------------


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


# --- CR-FM-NES (1.2), and the restricted Gaussian that VD-CMA has too ----------------------------


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


# --- DX-NES-IC (3.1) and FM-NES (3.2; section II of the CR-FM-NES paper) -------------------------


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


# --- auto (docs/methods/auto.md) -----------------------------------------------------------------


def auto_R(state, exponent=1.0):
    """I + V (S - I) V^T, to some power; columns of zeros in V are no axes."""
    R = np.eye(len(state["V"]))
    for v, s in zip(state["V"].T, state["S"], strict=True):
        R = R + (s**exponent - 1) * np.outer(v, v)
    return R


def power(A, exponent):
    """A symmetric positive matrix to some power."""
    values, vectors = np.linalg.eigh(A)
    return sum(e**exponent * np.outer(v, v) for e, v in zip(values, vectors.T, strict=True))


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


def auto_c_1(d, lam):
    return 1 / (2 * ((d + 1) / 2 + 1) * (d + 1) ** 0.75 + mu_eff_nes(lam) / 2)


def auto_c_mu(d, lam):
    mu_eff = mu_eff_nes(lam)
    c = auto_c_1(d, lam) * (mu_eff + 1 / mu_eff - 2 + lam / (2 * (lam + 5)))
    return 4 * c / (1 + 12 * c)


def auto_matrix(state, q, lam_F, w, z):
    """(j) and (o)."""
    lam, d = len(z), len(q)
    c_1, c_mu = auto_c_1(d, lam), auto_c_mu(d, lam)
    G = weighted(w, [np.outer(zi, zi) for zi in z])
    half = lam_F / lam * (c_mu * G + c_1 * np.outer(q, q)) / 2
    values, vectors = np.linalg.eigh(half)
    half = vectors @ np.diag(np.clip(values, -0.35, 0.35)) @ vectors.T
    half = half - np.trace(half) / d * np.eye(d)
    sigma = state["sigma"] * math.exp(-2 * np.trace(half @ half) / d)
    return {"B": state["B"] @ expm(half), "p_c": expm(-half) @ q, "sigma": sigma}


def auto_axes(state, p_c, phase, lam_F, w_CR, w, z):
    D, scouts, evidence = state["D"], state["scouts"], state["evidence"]
    lam, d, room = len(z), len(D), len(state["S"])
    mu_eff, eye = mu_eff_nes(lam), np.eye(len(D))
    used = [j for j in range(len(state["S"])) if np.any(state["V"][:, j] != 0)]
    V, S = state["V"][:, used], state["S"][used]
    long = [s > 1 for s in S]
    q, q_old = auto_R(state, -0.5) @ (p_c / D), auto_R(state, -0.5) @ (state["p_c"] / D)
    Q, p = eye - V @ V.T, np.diag(V @ V.T)
    G = weighted(w, [np.outer(zi, zi) for zi in z])
    P = np.outer(q, q) - (q @ q) * eye / d
    M, X, g = V.T @ G @ V, Q @ G @ V, np.diag(Q @ G @ Q)
    M_P, X_P, g_P = V.T @ P @ V, Q @ P @ V, np.diag(Q @ P @ Q)
    eta_B, c_1 = eta_B_cr_fm_nes(d, lam_F), c_1_cr_fm_nes(d, lam, lam_F, "safe")

    # (h)
    h = g - sum(g) / d
    A = state["A"] + 0.02 * (h @ state["E"] - state["A"])
    noise = state["C"] + 0.02 * (h @ h - state["C"])
    E = state["E"] + (h - state["E"]) / d
    r_D = min(max((d * A / noise - 0.1) / 0.2, 0.1), 1.0)

    # (d), (e)
    a = r_D * (1.5 * eta_B * g + c_1 * g_P) / (2 * (1 - p + p * p))
    k = len(S)
    rho = [1.0 if long_j else 0.1 for long_j in long]
    c = [s**-0.5 if s > 1 else s**0.5 for s in S]
    H = V.T @ np.diag(a) @ V
    N, Y = np.zeros((k, k)), np.zeros((d, k))
    for i in range(k):
        for j in range(k):
            N[i, j] = eta_B * math.sqrt(rho[i] * rho[j]) * M[i, j] + c_1 * M_P[i, j]
            N[i, j] -= 2 * c[i] * H[i, j] * c[j]
    for j in range(k):
        Y[:, j] = 0.1 * eta_B * X[:, j] + c_1 * X_P[:, j]
        Y[:, j] -= 2 * c[j] * (a * V[:, j] - V @ H[:, j])
        if phase != "move":
            Y[:, j] *= min(1, 20 / math.sqrt(S[j]))
    turns = [np.linalg.norm(Y[:, j]) * math.sqrt(S[j]) / abs(S[j] - 1) for j in range(k)]
    largest = max([*abs(a), *abs(N).ravel(), *turns])
    fraction = min(1, 0.7 / largest)
    a, N, Y = fraction * a, fraction * N, fraction * Y
    for j in range(k):
        if long[j]:
            N[j, j] = max(N[j, j], 2 * (math.sqrt(1.02 / S[j]) - 1))
        else:
            N[j, j] = min(N[j, j], 2 * (math.sqrt(1 / (1.02 * S[j])) - 1))

    # (f)
    left, singular, _ = np.linalg.svd(np.diag(np.sqrt(S)) @ (np.eye(k) + N / 2))
    V, Y, S = V @ left, Y @ left, singular**2
    keep = abs(S - 1) > 0.001
    V, Y, S, k = V[:, keep], Y[:, keep], S[keep], sum(keep)
    D = D * np.exp(a)
    V, S = auto_turned(V, S, Y, a)

    # An axis along a coordinate becomes a scale; one of length 1 is dropped.
    keep, a = [], np.zeros(d)
    for j in range(len(S)):
        i = int(np.argmax(abs(V[:, j])))
        if V[i, j] ** 2 > 0.7:
            a[i] += math.log(S[j]) / 2
        else:
            keep.append(j)
    V, S = V[:, keep], S[keep]
    D = D * np.exp(a)
    if np.any(a != 0):
        V, S = auto_turned(V, S, np.zeros_like(V), a)
    keep = []
    for j in range(len(S)):
        if j == int(np.argmax(S)) and S[j] > 1:
            S[j] = max(S[j], 1.1)
        if not 1 / 1.1 < S[j] < 1.1:
            keep.append(j)
    V, S = V[:, keep], S[keep]

    # (i)
    trust = 1 - (r_D - 0.1) / 0.9
    zbar = weighted(w_CR, z)
    half = lam // 2
    w_plus = [w[i] + w[i + half] for i in range(half)]
    w_plus = [0.0 if abs(wi) < 1e-12 else wi for wi in w_plus]  # a pair at opposite ends
    w_minus = [w_CR[i] - w_CR[i + half] for i in range(half)]
    s_1, s_2 = scouts.T
    squares = sum(wi * (s_2 @ Q @ zi) ** 2 for wi, zi in zip(w_plus, z[:half], strict=True))
    if squares != 0:
        squares = squares / math.sqrt(2 * sum(wi**2 for wi in w_plus))
    evidence = [
        evidence[0] + trust * np.sign(s_1 @ q_old) * math.sqrt(mu_eff) * (s_1 @ zbar) - 0.4,
        evidence[1] - trust * squares - 0.4,
    ]
    evidence = [max(0.0, e) for e in evidence]
    moved = []
    for s, sign in ((s_1, 1), (s_2, -1)):
        X = c_1 * (Q @ q) * (s @ Q @ q)
        for wi, zi in zip(w, z, strict=True):
            X = X + 0.2 * eta_B * wi * (Q @ zi) * (s @ Q @ zi)
        X = X - s * (s @ X)
        moved.append((D / state["D"]) ** -sign * (s + sign * math.sqrt(2) * X))
    fresh = [
        weighted(w_minus, z[:half]),
        weighted([p * m for p, m in zip(w_plus, w_minus, strict=True)], z[:half]),
    ]
    wakes, again = [False, False], [False, False]
    moved = [across(V, s) for s in moved]
    for i in range(2):
        wanted = evidence[i] > 15 or (i == 0 and not np.any(S > 1))
        wakes[i] = wanted and np.any(moved[i] != 0) and not wakes[0]
        again[i] = wakes[i] or not np.any(moved[i] != 0) or max(moved[i] ** 2) > 0.7
    for i in range(2):
        if wakes[i] and len(S) < room:
            V, S = np.column_stack([V, moved[i]]), np.append(S, [2.0, 0.5][i])
        if again[i]:
            moved[i], evidence[i] = fresh[i], 0.0
    moved = np.array([across(V, s) for s in moved]).T
    log_det = sum(math.log(Di) for Di in D) / d + sum(math.log(s) for s in S) / (2 * d)
    V = np.column_stack([V, np.zeros((d, room - len(S)))])
    S = np.append(S, np.ones(room - len(S)))
    order = np.argsort(-S, kind="stable")
    return {
        "D": D / math.exp(log_det),
        "V": V[:, order],
        "S": S[order],
        "scouts": moved,
        "evidence": np.array(evidence),
        "p_c": p_c,
        "E": E,
        "A": A,
        "C": noise,
    }


def auto_turned(V, S, Y, a):
    """(g)."""
    d, k = V.shape
    I_l, I_s = np.eye(d), np.eye(d)
    for j in range(k):
        u = V[:, j] + Y[:, j] * math.sqrt(S[j]) / (S[j] - 1)
        u = u / np.linalg.norm(u)
        if S[j] > 1:
            b = math.sqrt(S[j] - 1) * np.exp(-a) * u
            I_l = I_l + np.outer(b, b)
        else:
            b = math.sqrt(1 / S[j] - 1) * np.exp(a) * u
            I_s = I_s + np.outer(b, b)
    T = power(I_s, -0.5)
    values, vectors = np.linalg.eigh(T @ I_l @ T)
    not_1 = sorted(range(d), key=lambda j: -abs(values[j] - 1) / values[j] ** 0.5)[:k]
    not_1 = [j for j in not_1 if abs(values[j] - 1) > 0.001]
    return vectors[:, not_1], values[not_1]


def across(V, s):
    """At right angles to the columns of V and of length 1; 0 if nothing is left of s."""
    rest = s - V @ (V.T @ s)
    length = np.linalg.norm(rest)
    return rest / length if length > 1e-3 * np.linalg.norm(s) else 0 * s


# --- xNES (3.4), SNES (3.5), R1-NES (3.6) --------------------------------------------------------


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


# --- VD-CMA (4.1), sep-CMA-ES (4.2), CMA-ES (4.10) -----------------------------------------------


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
