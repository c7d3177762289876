"""States of the method auto with axes, values for a generation, and a comparison of states."""

import numpy as np

from fmnes.algorithms import _axes_gaussian as gaussian
from fmnes.algorithms import auto
from fmnes.algorithms._records import Shape


def some_state(dim, long=1, short=1, *, room=None, seed=0, path=1.0, dtype=np.float64, **fields):
    """A state with long and short axes, and with p_sigma `path` times as long as expected."""
    rng = np.random.default_rng([dim, seed])
    k = min(long + short, dim)
    long, room = min(long, k), room or max(4, k + 1)
    S_long, S_short = 1.3 + np.exp(2 * rng.normal(size=room)), 1.3 + np.exp(rng.normal(size=room))
    S = np.concatenate([S_long[:long], np.ones(room - k), 1 / S_short[: k - long]])
    S = np.sort(S)[::-1]
    frame, _ = np.linalg.qr(rng.normal(size=(dim, min(k + 2, dim))))
    V, scouts = np.zeros((dim, room)), np.zeros((dim, 2))
    V[:, S != 1] = frame[:, :k]
    scouts[:, : frame.shape[1] - k] = frame[:, k:]
    mean, D, p_sigma, p_c, gradient = rng.normal(size=(5, dim))
    D = np.exp(D / 3)
    D /= gaussian.volume(np, D, gaussian.Axes(V, S))
    state = auto.init(
        auto.params(dim, 4), mean, np.asarray(0.3), Shape(D=np.ones(dim)), np.zeros(dim)
    )
    state = state._replace(
        D=D,
        V=V,
        S=S,
        scouts=scouts,
        evidence=rng.uniform(0, 14, size=2),
        p_sigma=path * p_sigma,
        p_c=p_c,
        D_gradient=gradient,
        D_noise=np.asarray(1.0 * dim),
        D_signal=np.asarray(rng.uniform(0, 0.4)),
        eta=np.asarray(rng.choice([1.0, 0.3, 0.01])),
        m_gradient=0.1 * p_sigma,
        m_averages=rng.uniform([0, 0.1, 0.2], [0.1, 0.5, 1.0]),
        sigma_averages=rng.uniform([-0.1, 0.02], [0.1, 0.03]),
    )
    fields = {name: np.asarray(value) for name, value in fields.items()}
    return auto.State(*(np.asarray(x).astype(dtype) for x in state._replace(**fields)))


def values_of(x, kind, seed=0):
    """Values of rows: plain, with ties, some infeasible or failed, all equal, all infeasible."""
    f = np.sum(x.astype(np.float64) ** 2 * np.arange(1, x.shape[1] + 1), axis=1)
    out = np.random.default_rng(seed).random(len(f))
    if kind == "ties":
        return np.round(4 * f / np.median(f))
    if kind == "infeasible":
        return np.where(out < 0.4, np.inf, f)
    if kind == "failed":
        return np.where(out < 0.2, np.nan, f)
    return {"flat": np.full_like(f, 2.5), "hopeless": np.full_like(f, np.inf)}.get(kind, f)


def assert_close(native, agnostic, tolerance):
    """Compare relative to the largest entry; an axis may point either way."""
    for name, a, b in zip(auto.State._fields, native, agnostic, strict=True):
        assert a.shape == b.shape, name
        wide, wanted = a.astype(np.float64), b.astype(np.float64)
        if name in ("V", "scouts"):
            wide = wide * np.where(np.sum(wide * wanted, axis=0) < 0, -1.0, 1.0)
        size = np.max(np.abs(wanted), initial=0.0)
        error = np.max(np.abs(wide - wanted), initial=0.0)
        assert error <= tolerance * size, (name, error, size)
