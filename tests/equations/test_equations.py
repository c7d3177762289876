"""One generation of every method equals its transcription, sample by sample.

The states are random and the cases are chosen so that every branch of the papers is taken: all
three phases, both outcomes of the stall test, short, long and lopsided directions v, feasible and
infeasible candidates, ties, plateaus.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import array_api_compat.numpy as xp
import numpy as np
import pytest

from equations import transcriptions as slow
from fmnes.algorithms import METHODS, _vd_step, fm_nes, r1_nes, vd_cma
from fmnes.algorithms import _axes_gaussian as axes_gaussian
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms._records import Shape

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


# --- The methods without phases ------------------------------------------------------------------


def with_paths(name, state, rng, length):
    """Random paths: short ones, and ones so long that the rank-one update stalls."""
    dim = len(state["m"])
    for letter in CASES[name].paths:
        direction = rng.normal(size=dim)
        state[letter] = length * slow.chi(dim) * direction / np.linalg.norm(direction)
    return state


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", CASES)
def test_one_generation(name, dim, values):
    rng = np.random.default_rng([dim, VALUES.index(values)])
    for popsize in (None, 4 * dim + 4):
        for length in (0.05, 1.0, 5.0):
            state, z, lam = population(name, dim, rng, popsize)
            check(name, with_paths(name, state, rng, length), z, values(rng, lam))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", CASES)
def test_a_plateau_changes_nothing(name, dim):
    rng = np.random.default_rng(dim)
    state, z, lam = population(name, dim, rng)
    module, ours = METHODS[name], library_state(name, with_paths(name, state, rng, 1.0))
    after = module.tell(module.params(dim, lam), ours, z, np.full(lam, 0.1))
    for a, b in zip(ours, after, strict=True):
        np.testing.assert_array_equal(a, b)


# --- The stall test of VD-CMA, separable CMA-ES and CMA-ES ---------------------------------------


def longest_path(name, dim, c_s, t):
    """The |p_s| from which on the rank-one update stalls."""
    if name == "vd-cma":
        return math.sqrt((2 + 4 / (dim + 1)) * dim)
    return (1.4 + 2 / (dim + 1)) * slow.chi(dim) * math.sqrt(1 - (1 - c_s) ** (2 * (t + 1)))


@pytest.mark.parametrize("t", [0, 1, 7])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", ["vd-cma", "sep-cma", "cma-es"])
def test_stall_begins_where_it_should(name, dim, t):
    """On either side of the threshold, a thousandth of it away."""
    rng = np.random.default_rng([dim, t])
    for factor in (0.999, 1.001):
        state, z, lam = population(name, dim, rng)
        state, f = with_paths(name, state, rng, 1.0) | {"t": t}, distinct(rng, lam)
        c_s = getattr(slow, f"{name.replace('-', '_')}_constants")(dim, lam)["c_s"]
        step = CASES[name].tell(state | {"p_s": np.zeros(dim)}, z, f)["p_s"]
        direction = rng.normal(size=dim)
        wanted = factor * longest_path(name, dim, c_s, t) * direction / np.linalg.norm(direction)
        state["p_s"] = (wanted - step) / (1 - c_s)
        check(name, state, z, f)


# --- The phases of CR-FM-NES, FM-NES and DX-NES-IC -----------------------------------------------

PHASED = [name for name in CASES if "p_sigma" in CASES[name].paths]


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


@pytest.mark.parametrize("phase", ["move", "stag", "conv"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", PHASED)
def test_one_generation_in_each_phase(name, dim, values, phase):
    rng = np.random.default_rng([dim, VALUES.index(values), len(phase)])
    state, z, lam = population(name, dim, rng)
    f = values(rng, lam)
    state = lead_to_phase(with_paths(name, state, rng, 0.5), z, f, phase, rng)
    _, reached, _ = slow.phase_and_weights(state, slow.both_halves(z), f)
    assert reached == phase
    check(name, state, z, f)


def test_every_method_is_tested():
    assert set(CASES) == set(METHODS)


# --- CR-FM-NES as published, and with rates of the user's own ------------------------------------


def check_paper_variant(rng, dim, values, phase, **settings):
    """States from which the paper's step leads to a positive D; from others it leads to NaN."""
    checked = 0
    while checked < 3:
        state, z, lam = population("cr-fm-nes", dim, rng)
        f = values(rng, lam)
        state = with_paths("cr-fm-nes", state, rng, 0.5)
        state = lead_to_phase(state, z, f, phase, rng, share_ties=False)
        try:
            slow.cr_fm_nes_tell(state, z, f, variant="paper", **settings)
        except ValueError:  # the logarithm of a negative D
            continue
        check("cr-fm-nes", state, z, f, variant="paper", **settings)
        checked += 1


@pytest.mark.parametrize("phase", ["move", "stag", "conv"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("dim", DIMS)
def test_the_paper_variant(dim, values, phase):
    rng = np.random.default_rng([dim, VALUES.index(values), len(phase)])
    check_paper_variant(rng, dim, values, phase)


OWN_RATES = [
    {"eta_B": 0.03},
    {"eta_B": 0.0},
    {"c_1": 0.02},
    {"c_1": 0.0},
    {"eta_sigma": 0.4},
    {"distance_weights": False},
    {"eta_B": 0.05, "c_1": 0.01, "eta_sigma": 0.9, "distance_weights": False},
]


@pytest.mark.parametrize("phase", ["move", "stag", "conv"])
@pytest.mark.parametrize("values", [distinct, some_infeasible, ties])
@pytest.mark.parametrize("settings", OWN_RATES, ids=str)
def test_cr_fm_nes_with_rates_of_ones_own(settings, values, phase):
    for dim in DIMS:
        rng = np.random.default_rng([dim, VALUES.index(values), len(phase)])
        state, z, lam = population("cr-fm-nes", dim, rng)
        f = values(rng, lam)
        state = lead_to_phase(with_paths("cr-fm-nes", state, rng, 0.5), z, f, phase, rng)
        check("cr-fm-nes", state, z, f, **settings)
        check_paper_variant(rng, dim, values, phase, **settings)


# --- auto: axes that come and go -----------------------------------------------------------------


@pytest.mark.parametrize("dim", DIMS)
def test_auto_changes_its_population_size(dim):
    rng, module = np.random.default_rng(dim), METHODS["auto"]
    changes = set()
    for _ in range(200):
        state = with_paths("auto", rates_in_noise(rng, dim, random_auto(rng, dim)), rng, 1.0)
        least = 2 * int(rng.integers(2, 20))
        lam = least * 2 ** int(rng.integers(0, 7))
        params = module.params(dim, lam, module.Settings(adapt="popsize"))
        size, new = module.next_popsize(params, library_state("auto", state), least)
        expected, theirs = slow.auto_popsize(state, lam, least)
        assert size == expected
        agree("auto", 1.0, new, theirs)
        changes.add(size / lam)
    assert changes == {0.5, 1.0, 2.0}


@pytest.mark.parametrize("normal_scores", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_auto_from_many_states(seed, normal_scores):
    """Both stages, all phases, values of all kinds; short paths and long ones."""
    rng = np.random.default_rng(seed)
    for dim in range(2, 13):
        values = VALUES[rng.integers(len(VALUES))]
        state, z, lam = population("auto", dim, rng, rng.choice([None, 4 * dim + 4]))
        state = with_paths("auto", state, rng, rng.choice([0.05, 1.0, 5.0]))
        f = values(rng, lam)
        phase = ("move", "stag", "conv")[rng.integers(3)]
        state = lead_to_phase(state, z, f, phase, rng)
        check("auto", state, z, f, normal_scores=normal_scores)


@pytest.mark.parametrize("seed", range(4))
def test_auto_if_thorough(seed):
    """Sigma falls more slowly, down to the least share, and not if the population is small."""
    rng, module = np.random.default_rng([5, seed]), METHODS["auto"]
    for dim in range(2, 20):
        lam = 2 * int(module.default_popsize(dim) * 2.0 ** rng.integers(-2, 4))
        state, z, _ = population("auto", dim, rng, lam)
        state, f = with_paths("auto", state, rng, rng.choice([0.05, 1.0, 5.0])), distinct(rng, lam)
        phase = ("move", "stag", "conv")[rng.integers(3)]
        check("auto", lead_to_phase(state, z, f, phase, rng), z, f, thorough=True)


def test_auto_if_thorough_has_a_full_matrix_earlier():
    """By the rates of (j): of 0.12 of the rate of D on, and of 0.3 otherwise."""
    module, seen = METHODS["auto"], set()
    for dim in (5, 10, 20, 40, 80, 160, 320):
        for factor in (1, 2, 4, 8, 16, 32, 64):
            lam = factor * module.default_popsize(dim)
            share = slow.auto_c_mu(dim, lam) / (1.5 * slow.eta_B_cr_fm_nes(dim, lam))
            for thorough, least in ((False, 0.3), (True, 0.12)):
                params = module.params(dim, lam, module.Settings(thorough=thorough))
                assert params.starts_full == (share >= least)
            seen.add((share >= 0.3) + (share >= 0.12))
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_auto_with_fixed_rates(seed, full):
    """With a full matrix the rate is followed, and (p) uses it, but the steps stay whole."""
    rng = np.random.default_rng([4, seed])
    for _ in range(10):
        dim = int(rng.integers(2, 20))
        _, z, lam = population("auto", dim, rng, rng.choice([None, 4 * dim + 4]))
        state = random_auto(rng, dim, full) | {"eta": 1.0 if not full else rng.uniform(0.01, 1)}
        state, f = with_paths("auto", state, rng, rng.choice([0.05, 1.0, 5.0])), distinct(rng, lam)
        check("auto", state, z, f, adapt=None)


@pytest.mark.parametrize("dim", DIMS)
def test_auto_in_its_first_generation(dim):
    """Without axes and scouts, as it starts."""
    rng = np.random.default_rng(dim)
    _, z, lam = population("auto", dim, rng)
    module = METHODS["auto"]
    params = module.params(dim, lam)
    first = module.init(
        params, np.zeros(dim), np.asarray(1.0), Shape(D=random_scales(rng, dim)), z[0]
    )
    state = {letter: getattr(first, field) for field, letter in CASES["auto"].letters.items()}
    omega = slow.auto_omega(lam)
    assert state["C"] == pytest.approx(2 * dim * sum(o**2 for o in omega))
    assert state["A"] == pytest.approx(0.3 * state["C"] / dim)
    check("auto", state, z, distinct(rng, lam))


def axes_state(rng, dim, **changes):
    state, z, lam = population("auto", dim, rng)
    while state["B"].size:
        state = random_auto(rng, dim)
    return with_paths("auto", state, rng, 1.0) | changes, z, lam


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_auto_makes_an_axis_of_one_scout_at_a_time(dim):
    """Two scouts in the same direction, both with all the evidence: the axes stay orthonormal."""
    rng, module = np.random.default_rng(dim), METHODS["auto"]
    s = rng.normal(size=dim)
    scouts = np.column_stack([s, s]) / np.linalg.norm(s)
    room = min(dim, 4)
    changes = {"V": np.zeros((dim, room)), "S": np.ones(room), "scouts": scouts}
    state, z, lam = axes_state(rng, dim, **changes, evidence=np.full(2, 30.0))
    check("auto", state, z, distinct(rng, lam))
    ours = library_state("auto", state)
    for _ in range(5):
        z = rng.normal(size=z.shape)
        ours = module.tell(module.params(dim, lam), ours, z, distinct(rng, lam))
        assert all(np.all(np.isfinite(field)) for field in ours)
        used = ours.V[:, ours.S != 1]
        np.testing.assert_allclose(used.T @ used, np.eye(used.shape[1]), atol=1e-12)
        np.testing.assert_allclose(used.T @ ours.scouts, 0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_auto_columns_not_in_use_change_nothing(dim):
    """Not even if a long path leads to a step that is shortened."""
    rng, module = np.random.default_rng(dim), METHODS["auto"]
    for _ in range(20):
        V, S = random_axes(rng, dim, 1, 1)
        changes = {"V": V, "S": S, "evidence": np.zeros(2)}
        state, z, lam = axes_state(rng, dim, **changes)
        state["p_c"] = 30 * state["p_c"]
        f = distinct(rng, lam)
        wider = {"V": np.column_stack([V, 0 * V]), "S": np.append(S, 1.0)}
        if S[0] < 1:  # the longest first
            wider = {"V": wider["V"][:, ::-1], "S": wider["S"][::-1]}
        a, b = (
            module.tell(module.params(dim, lam), library_state("auto", start), z, f)
            for start in (state, state | wider)
        )
        if np.any(b.S[b.S != 1] > 1) == np.any(a.S > 1):  # else there was no room for a long axis
            np.testing.assert_allclose(a.D, b.D, rtol=1e-12)
            np.testing.assert_allclose(matrix_of(a.V, a.S), matrix_of(b.V, b.S), atol=1e-10)


@pytest.mark.parametrize(("dim", "axes"), [(10, None), (20, 3), (40, 20)])
def test_auto_has_a_full_matrix_from_some_number_of_axes_on(dim, axes):
    rng, module = np.random.default_rng(dim), METHODS["auto"]
    params = module.params(dim, module.default_popsize(dim), module.Settings(axes=axes))
    assert params.refresh_every == 10
    for count in range(1, dim // 8 + 2):
        V, S = random_axes(rng, dim, count, dim // 8 + 2)
        state, _, _ = axes_state(rng, dim, V=V, S=S)
        new = module.resized(params, library_state("auto", state))
        if count < 1 + dim // 8:
            assert new.B.size == 0
            np.testing.assert_allclose(matrix_of(new.V, new.S), matrix_of(V, S), rtol=1e-14)
            continue
        root = slow.power(slow.auto_R(state), 0.5)
        np.testing.assert_allclose(new.B, root, rtol=0, atol=1e-12 * np.max(root))
        q = np.linalg.inv(root) @ (state["p_c"] / state["D"])
        np.testing.assert_allclose(new.p_c, q, rtol=0, atol=1e-10 * np.max(np.abs(q)))
        assert (new.V.shape, new.S.shape) == ((dim, 0), (0,))
        np.testing.assert_array_equal(new.D, state["D"])


def test_auto_has_no_full_matrix_if_so_many_axes_are_not_allowed():
    rng, module = np.random.default_rng(1), METHODS["auto"]
    V, S = random_axes(rng, 20, 2, 2)
    state, _, lam = axes_state(rng, 20, V=V, S=S)
    new = module.resized(
        module.params(20, lam, module.Settings(axes=2)), library_state("auto", state)
    )
    assert new.B.size == 0


# --- When CMA-ES looks at its axes ---------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 10, 25, 100, 400])
def test_cma_es_refreshes_as_often_as_the_tutorial_says(dim):
    module = METHODS["cma-es"]
    lam = module.default_popsize(dim)
    params = module.params(dim, lam)
    assert params.refresh_every == slow.cma_es_constants(dim, lam)["refresh_every"]


@pytest.mark.parametrize("dim", DIMS)
def test_cma_es_refresh_decomposes_C(dim):
    module, rng = METHODS["cma-es"], np.random.default_rng(dim)
    state, _, lam = population("cma-es", dim, rng)
    state = library_state("cma-es", with_paths("cma-es", state, rng, 1.0))
    new = module.refresh(module.params(dim, lam), state)
    scale = np.max(np.abs(state.C))
    np.testing.assert_allclose((new.B * new.D**2) @ new.B.T, state.C, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(new.B @ new.B.T, np.eye(dim), rtol=0, atol=1e-13)
    for field in set(state._fields) - {"B", "D"}:
        np.testing.assert_array_equal(getattr(new, field), getattr(state, field))


# --- When FM-NES takes the rank-one update -------------------------------------------------------


@pytest.mark.parametrize("dim", [3, 10])
@pytest.mark.parametrize("side", ["behind", "ahead"])
def test_fm_nes_asks_on_which_side_of_the_path_infeasible_candidates_lie(dim, side):
    rng = np.random.default_rng([dim, len(side)])
    state, z, lam = population("fm-nes", dim, rng, popsize=12)
    state = with_paths("fm-nes", state, rng, 3.0) | {"always_feasible": False}
    along = np.concatenate([z, -z]) @ state["r"]
    beyond = along < 0 if side == "behind" else along > 0
    f = np.where(beyond, np.inf, rng.random(lam))
    check("fm-nes", state, z, f)
    taken = fm_tell(state, z, f)["B"]
    without = slow.dx_nes_ic_tell(state, z, f)["B"]
    assert np.allclose(taken, without, rtol=1e-12) == (side == "ahead")


# --- When FM-NES and DX-NES-IC expand their axes --------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), (5, 7)])
def test_a_stretch_by_nothing_computes_nothing(shape):
    """Outside the movement phase, the expansion would cost two products of d x d matrices."""
    rows = np.random.default_rng(1).normal(size=shape)
    assert full.stretched(np, rows, full.Stretch(None, np.zeros(7), mean_log=0.0)) is rows


@pytest.mark.parametrize("S", [1e-6, 1e4])
def test_auto_keeps_an_axis_where_it_is_while_another_becomes_a_scale(S):
    """A short axis with a part along that coordinate would end up far too long if D turned it."""
    D = random_scales(np.random.default_rng(5), 6)
    V = np.linalg.qr(np.column_stack([4 * np.eye(6)[2] + np.arange(6) / 3, np.ones(6)]))[0]
    before = axes_gaussian.Axes(V, np.array([50.0, S]))
    scales, after = axes_gaussian.handed_over(xp, D, before, 0.7)
    assert scales == pytest.approx(D * np.where(np.arange(6) == 2, np.sqrt(50), 1))
    kept = after.S != 1
    assert kept.sum() == 1

    def in_space(D, v, S):  # the axis as a vector, of covariance or of precision
        u = D * v * np.sqrt(S - 1) if S > 1 else v / D * np.sqrt(1 / S - 1)
        return u * np.sign(u[2])

    ours = in_space(scales, after.V[:, kept][:, 0], after.S[kept][0])
    np.testing.assert_allclose(ours, in_space(D, V[:, 1], S), rtol=1e-9)
