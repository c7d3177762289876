"""Random states of every method, under the letters of the papers and as the library has them.

The states reach every branch: short, long and lopsided directions v, and scales over decades.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from equations import transcriptions as slow
from fmnes.algorithms import METHODS, _vd_step, fm_nes, r1_nes, vd_cma

DIMS = [2, 3, 10, 25]
RTOL = 1e-10


# --- States under the papers' letters, and back --------------------------------------------------


class Case(NamedTuple):
    letters: dict[str, str]  # field of the library's State -> letter of the transcription
    random: Callable  # (rng, dim) -> dict under the letters; paths come later
    ask: Callable
    tell: Callable
    paths: tuple[str, ...] = ()


def random_location(rng, dim):
    return {"m": rng.normal(size=dim), "sigma": math.exp(rng.normal())}


def random_scales(rng, dim):
    return np.exp(rng.uniform(0.1, 1.5) * rng.normal(size=dim))


def random_direction(rng, dim):
    """From 1e-4 to 30 long, one time in three with most of its length in one coordinate."""
    v = rng.normal(size=dim)
    if rng.integers(3) == 0:
        v[rng.integers(dim)] *= 10
    return v / np.linalg.norm(v) * math.exp(rng.uniform(math.log(1e-4), math.log(30)))


def random_vd(rng, dim):
    shape = {"D": random_scales(rng, dim), "v": random_direction(rng, dim)}
    return random_location(rng, dim) | shape


def random_root(rng, dim):
    """A matrix B of determinant 1, its axes spread over some two decades, not symmetric."""
    left, right = (np.linalg.qr(rng.normal(size=(dim, dim))).Q for _ in range(2))
    log_axes = rng.normal(size=dim)
    return left @ np.diag(np.exp(log_axes - np.mean(log_axes))) @ right


def random_full(rng, dim):
    return random_location(rng, dim) | {"B": random_root(rng, dim)}


def random_expanding(rng, dim):
    return random_full(rng, dim) | {"gamma": 1 + rng.exponential(0.3)}


def random_snes(rng, dim):
    return {"m": rng.normal(size=dim), "s": random_scales(rng, dim)}


def random_r1(rng, dim):
    return random_location(rng, dim) | {
        "D": random_scales(rng, dim),
        "p": random_direction(rng, dim),
    }


def random_sep(rng, dim):
    counted = {"t": int(rng.integers(0, 50))}
    return random_location(rng, dim) | {"D": random_scales(rng, dim)} | counted


def cr_tell(state, z, f, variant="safe", **settings):
    return slow.cr_fm_nes_tell(state, z, f, variant, _vd_step.V_LIMITS[0], **settings)


def vd_tell(state, z, f):
    new = slow.vd_cma_tell(state, z, f)
    return new | {"v": slow.not_shorter(new["v"], vd_cma._V_LIMITS[0])}


def r1_ask(state, z):
    return state["D"] * slow.r1_nes_ask(_in_units_of_D(state), z)


def r1_tell(state, z, f):
    """The paper has no D: the library's D is a fixed change of variables, x / D."""
    new = slow.r1_nes_tell(_in_units_of_D(state), z, f)
    return {
        "m": new["m"] * state["D"],
        "sigma": math.exp(new["L"]),
        "D": state["D"],
        "p": slow.not_shorter(new["p"], r1_nes._V_LIMITS[0]),
    }


def _in_units_of_D(state):
    return {"m": state["m"] / state["D"], "L": math.log(state["sigma"]), "p": state["p"]}


def sep_ask(state, z):
    return slow.sep_cma_ask(state | {"C": state["D"] ** 2}, z)


def sep_tell(state, z, f):
    new = slow.sep_cma_tell(state | {"C": state["D"] ** 2}, z, f)
    return new | {"D": np.sqrt(new["C"])}


def random_fm(rng, dim):
    return random_expanding(rng, dim) | {
        "B_0": random_root(rng, dim),
        "always_feasible": bool(rng.integers(2)),
        "r": np.zeros(dim),
    }


def fm_tell(state, z, f):
    """The library keeps r = B^-1 p_c instead of p_c."""
    state = state | {"p_c": state["B"] @ state["r"]}
    new = slow.fm_nes_tell(state, z, f, fm_nes._LARGEST_STRETCH)
    return new | {"r": np.linalg.inv(new["B"]) @ new["p_c"]}


def random_cma(rng, dim):
    """C has moved on since B and D were taken from it."""
    axes = {"B": np.linalg.qr(rng.normal(size=(dim, dim))).Q, "D": random_scales(rng, dim)}
    moved = random_root(rng, dim)
    C = (axes["B"] * axes["D"] ** 2) @ axes["B"].T + 0.1 * moved @ moved.T
    return random_location(rng, dim) | axes | {"C": C, "t": int(rng.integers(0, 50))}


def cma_ask(state, z):
    return slow.cma_es_ask(state | {"root": state["B"] * state["D"]}, z)


def cma_tell(state, z, f):
    """Without the eigendecomposition, which the library leaves to refresh()."""
    return state | slow.cma_es_tell(state | {"root": state["B"] * state["D"]}, z, f)


def random_axes(rng, dim, count, room):
    """Orthonormal columns, one in three close to a coordinate, long or short; the rest unused.

    One in three is so close to 1 that it may be dropped.
    """
    V, S = np.zeros((dim, room)), np.ones(room)
    columns = rng.normal(size=(dim, dim)) / np.sqrt(dim)
    columns[:, rng.integers(dim)] += np.eye(dim)[rng.integers(dim)] * rng.integers(3)
    V[:, :count] = np.linalg.qr(columns).Q[:, :count]
    S[:count] = np.exp(rng.uniform(0.1, [[0.2], [2.0], [7.0]], size=(3, count)))[
        rng.integers(3, size=count), range(count)
    ]
    S[:count] **= rng.choice([-0.7, 1.0], size=count)
    order = np.argsort(-S, kind="stable")
    return V[:, order], S[order]


def random_rates(rng, dim):
    """Learning rates in each part of their range, with signals of any clarity."""
    mean_G = rng.normal(scale=0.1)
    size = dim * math.exp(rng.normal())
    seen = rng.choice([rng.uniform(0.1, 0.9), 1.0])
    return {
        "eta": rng.choice([1e-4, 0.003, 0.1, 0.9, 1.0]),
        "E_m": rng.normal(size=dim) * seen * rng.choice([0.01, 0.3]),
        "m_averages": np.array([size * rng.uniform(-0.1, 0.1), size * seen, seen]),
        "sigma_averages": np.array([mean_G, mean_G**2 * rng.uniform(1.05, 5)]),
    }


def random_auto(rng, dim, full_stage=None, scouts=True):
    """With axes and scouts, or with the full matrix; evidence on both sides of its threshold."""
    room = int(rng.integers(1, min(dim, 6) + 1))
    V, S = random_axes(rng, dim, int(rng.integers(0, room + 1)), room)
    W = rng.normal(size=(dim, 2)) * scouts
    W[rng.integers(dim), :] *= rng.integers(1, 5)
    W = np.column_stack([slow.across(V, column) for column in W.T])
    noise = math.exp(rng.normal())
    state = random_location(rng, dim) | {
        "D": random_scales(rng, dim),
        "V": V,
        "S": S,
        "B": np.zeros((0, 0)),
        "scouts": W,
        "evidence": rng.choice([0.0, 3.0, 20.0], size=2) + rng.uniform(0, 1, size=2),
        "E": rng.normal(size=dim) * math.exp(rng.normal()) / math.sqrt(dim),
        "A": noise * rng.uniform(-0.1, 0.5) / dim,
        "C": noise,
    }
    state |= random_rates(rng, dim)
    if full_stage or (full_stage is None and rng.integers(4) == 0):
        state |= {"V": V[:, :0], "S": S[:0], "B": random_root(rng, dim)}
    return state


def rates_in_noise(rng, dim, state):
    """Averages as noise and no noise leave them, near all thresholds of the population size."""
    seen, mean_G = rng.choice([0.79, 0.81, 1.0]), rng.normal()
    noise = seen * math.exp(rng.normal())
    signal = noise * rng.choice([-0.5, 0.9, 1.1, 2.9, 3.1]) * 0.15 / math.sqrt(dim)
    return state | {
        "C": 1.0,
        "A": rng.choice([0.0, 0.14, 0.16]) / dim,
        "m_averages": np.array([signal, noise, seen]),
        "sigma_averages": np.array([mean_G, mean_G**2 * (1 + math.exp(rng.uniform(-2, 4)))]),
    }


def matrix_of(V, S):
    """R, by which axes are compared: their signs are arbitrary."""
    return slow.auto_R({"V": V, "S": S})


LOCATION = {"mean": "m", "sigma": "sigma"}
VD = LOCATION | {"D": "D", "v": "v"}
CASES = {
    "cr-fm-nes": Case(
        VD | {"p_sigma": "p_sigma", "p_c": "p_c"},
        random_vd,
        slow.cr_fm_nes_ask,
        cr_tell,
        ("p_sigma", "p_c"),
    ),
    "dx-nes-ic": Case(
        LOCATION | {"B": "B", "p_sigma": "p_sigma", "gamma": "gamma"},
        random_expanding,
        slow.dx_nes_ic_ask,
        slow.dx_nes_ic_tell,
        ("p_sigma",),
    ),
    "fm-nes": Case(
        LOCATION
        | {"B": "B", "p_sigma": "p_sigma", "B_inv_p_c": "r", "gamma": "gamma"}
        | {"B_0": "B_0", "always_feasible": "always_feasible"},
        random_fm,
        slow.fm_nes_ask,
        fm_tell,
        ("p_sigma", "r"),
    ),
    "xnes": Case(LOCATION | {"B": "B"}, random_full, slow.xnes_ask, slow.xnes_tell),
    "snes": Case({"mean": "m", "s": "s"}, random_snes, slow.snes_ask, slow.snes_tell),
    "r1-nes": Case(VD | {"v": "p"}, random_r1, r1_ask, r1_tell),
    "vd-cma": Case(
        VD | {"p_sigma": "p_s", "p_c": "p_c"},
        random_vd,
        slow.vd_cma_ask,
        vd_tell,
        ("p_s", "p_c"),
    ),
    "sep-cma": Case(
        LOCATION | {"D": "D", "p_sigma": "p_s", "p_c": "p_c", "generation": "t"},
        random_sep,
        sep_ask,
        sep_tell,
        ("p_s", "p_c"),
    ),
    "cma-es": Case(
        LOCATION
        | {"C": "C", "B": "B", "D": "D", "p_sigma": "p_s", "p_c": "p_c", "generation": "t"},
        random_cma,
        cma_ask,
        cma_tell,
        ("p_s", "p_c"),
    ),
    "auto": Case(
        LOCATION
        | {name: name for name in ("D", "V", "S", "B", "scouts", "evidence", "p_sigma", "p_c")}
        | {"D_gradient": "E", "D_signal": "A", "D_noise": "C", "m_gradient": "E_m"}
        | {name: name for name in ("eta", "m_averages", "sigma_averages")},
        random_auto,
        slow.auto_ask,
        slow.auto_tell,
        ("p_sigma", "p_c"),
    ),
}


def library_state(name, state):
    """The library's State; fields without a letter are figures for reports, any number will do."""
    module, letters = METHODS[name], CASES[name].letters
    fields = {
        field: np.asarray(state[letters[field]], dtype=float) if field in letters else np.ones(())
        for field in module.State._fields
    }
    return module.State(**fields)


def agree(name, spread, new, expected):
    """Each field to RTOL of its largest entry (D, s, S: of each entry; m: of the spread of x)."""
    for field, letter in CASES[name].letters.items():
        ours, theirs = np.asarray(getattr(new, field)), np.asarray(expected[letter])
        assert ours.shape == theirs.shape
        assert ours.dtype == np.float64
        if letter == "V" and ours.size:
            ours, theirs = matrix_of(ours, new.S), matrix_of(theirs, expected["S"])
            inverses = np.linalg.inv(ours), np.linalg.inv(theirs)
            atol = RTOL * np.max(np.abs(inverses[1]))
            np.testing.assert_allclose(*inverses, rtol=0, atol=atol, err_msg="V (inverse)")
        if letter in ("D", "s", "S"):
            np.testing.assert_allclose(ours, theirs, rtol=RTOL, err_msg=letter)
            continue
        atol = RTOL * (spread if letter == "m" else np.max(np.abs(theirs), initial=0.0))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol, err_msg=letter)


# --- Values of a population ----------------------------------------------------------------------


def distinct(rng, lam):
    return rng.normal(size=lam)


def some_infeasible(rng, lam):
    f = rng.normal(size=lam)
    bad = rng.permutation(lam)[: lam // 2]
    f[bad] = np.where(rng.random(bad.size) < 0.3, np.nan, np.inf)
    return f


def all_infeasible(rng, lam):
    return np.full(lam, np.inf)


def ties(rng, lam):
    return rng.integers(0, 3, size=lam).astype(float)


def ties_and_infeasible(rng, lam):
    return np.where(rng.random(lam) < 0.3, np.inf, ties(rng, lam))


VALUES = [distinct, some_infeasible, all_infeasible, ties, ties_and_infeasible]


def population(name, dim, rng, popsize=None):
    """A random state without its paths, and the draws of one generation."""
    module = METHODS[name]
    lam = popsize or module.default_popsize(dim)
    z = rng.normal(size=(lam // 2 if module.ANTITHETIC else lam, dim))
    return CASES[name].random(rng, dim), z, lam


def check(name, state, z, f, **settings):
    module, case = METHODS[name], CASES[name]
    if name == "auto":
        settings = {"adapt": "rates"} | settings
    params = module.params(z.shape[1], len(f), module.Settings(**settings))
    ours = library_state(name, state)
    x = case.ask(state, z)
    spread = np.max(np.abs(x - state["m"]))
    np.testing.assert_allclose(module.ask(params, ours, z), x, rtol=0, atol=1e-13 * spread)
    agree(name, spread, module.tell(params, ours, z, f), case.tell(state, z, f, **settings))


def with_paths(name, state, rng, length):
    """Random paths: short ones, and ones so long that the rank-one update stalls."""
    dim = len(state["m"])
    for letter in CASES[name].paths:
        direction = rng.normal(size=dim)
        state[letter] = length * slow.chi(dim) * direction / np.linalg.norm(direction)
    return state


def lead_to_phase(state, z, f, phase, rng, share_ties=True):
    """p_sigma such that this generation's new p_sigma lies in the wanted phase."""
    rows = slow.both_halves(z)
    lam, dim = len(rows), len(rows[0])
    step, _, _ = slow.phase_and_weights({"p_sigma": np.zeros(dim)}, rows, f, share_ties)
    low, high = {"move": (1.0, 3.0), "stag": (0.1, 1.0), "conv": (0.0, 0.1)}[phase]
    direction = rng.normal(size=dim)
    length = rng.uniform(low + 1e-6, high - 1e-6) * slow.chi(dim)
    wanted = length * direction / np.linalg.norm(direction)
    return state | {"p_sigma": (wanted - step) / (1 - slow.c_sigma_nes(dim, lam))}
