"""The axes and the full matrix of auto: their steps, and how axes come and go."""

import math

import numpy as np
from scipy.linalg import expm

from equations.transcriptions.constants import c_1_cr_fm_nes, eta_B_cr_fm_nes, mu_eff_nes
from equations.transcriptions.samples import weighted


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
