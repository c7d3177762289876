"""One generation of auto equals its transcription: axes that come and go, and the full matrix."""

import array_api_compat.numpy as xp
import numpy as np
import pytest

from equations import transcriptions as slow
from equations.states import (
    CASES,
    DIMS,
    VALUES,
    agree,
    check,
    distinct,
    lead_to_phase,
    library_state,
    matrix_of,
    population,
    random_auto,
    random_axes,
    random_scales,
    rates_in_noise,
    with_paths,
)
from fmnes.algorithms import METHODS
from fmnes.algorithms import _axes_gaussian as axes_gaussian
from fmnes.algorithms._records import Shape


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
