"""One generation of every method equals its transcription, sample by sample.

The states are random and the cases are chosen so that every branch of the papers is taken: all
three phases, both outcomes of the stall test, short, long and lopsided directions v, feasible and
infeasible candidates, ties, plateaus.
"""

import math

import numpy as np
import pytest

from equations import transcriptions as slow
from equations.states import (
    CASES,
    DIMS,
    VALUES,
    check,
    distinct,
    fm_tell,
    lead_to_phase,
    library_state,
    population,
    some_infeasible,
    ties,
    with_paths,
)
from fmnes.algorithms import METHODS
from fmnes.algorithms import _full_gaussian as full


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
