"""The categorical distribution of choices: its equations, its margin, and the searches with it."""

import math

import array_api_strict
import numpy as np
import pytest

import fmnes
from fmnes import Choice, Int, Real, Space
from fmnes.variables.categorical import Chances, after, centre_of, drawn, start
from fmnes.variables.discrete import least_probability

OPTIONS = np.array([3, 5, 4])
LEAST = least_probability(3) / (OPTIONS - 1)


def begun(xp=np, first=(-1, 3, -1)):
    parts = (xp.asarray(np.array(part, float)) for part in (OPTIONS, LEAST))
    return start(*parts, 5, xp.asarray(np.array(first, float)))


def transcribed(chances, found):
    """CatCMA with margin, option by option: the new q, path, Delta and g."""
    (q, path), (Delta, g) = (part.tolist() for part in chances[:2]), chances.pace.tolist()
    s, gradient = [[0.0] * 5 for _ in range(3)], [[0.0] * 5 for _ in range(3)]
    for i, options in enumerate(OPTIONS):
        for k in range(options):
            gradient[i][k] = found[i][k] - q[i][k]
        last = q[i][options - 1]
        others = sum(gradient[i][k] for k in range(options - 1))
        for k in range(options - 1):
            root = math.sqrt(q[i][k])
            s[i][k] = gradient[i][k] / root + root * others / (last + math.sqrt(last))
    length = math.sqrt(sum(number**2 for row in s for number in row))
    beta = 1 / Delta / math.sqrt(sum(OPTIONS - 1))
    for i, options in enumerate(OPTIONS):
        least = LEAST[i]
        for k in range(options):
            q[i][k] = max(q[i][k] + gradient[i][k] / length / Delta, least)
            path[i][k] = (1 - beta) * path[i][k] + math.sqrt(beta * (2 - beta)) * s[i][k] / length
        total = sum(q[i][:options])
        for k in range(options):
            q[i][k] -= (total - 1) * (q[i][k] - least) / (total - options * least)
    g = (1 - beta) ** 2 * g + beta * (2 - beta)
    norm = sum(number**2 for row in path for number in row)
    Delta = max(Delta * math.exp(beta * (g - norm / 1.5)), 1 / math.sqrt(sum(OPTIONS - 1)))
    return q, path, [Delta, g]


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_the_update_is_that_of_the_paper(xp):
    rng, chances = np.random.default_rng(1), begun(xp)
    options, least = xp.asarray(1.0 * OPTIONS), xp.asarray(LEAST)
    for _ in range(60):
        found = np.zeros((3, 5))
        for i, count in enumerate(OPTIONS):
            found[i, :count] = rng.dirichlet(np.full(count, 0.3))
        expected = transcribed(Chances(*map(np.asarray, chances)), found)
        chances = after(chances, options, least, xp.asarray(found))
        for mine, reference in zip(chances, expected, strict=True):
            np.testing.assert_allclose(np.asarray(mine), reference, rtol=1e-9, atol=1e-12)
        q = np.asarray(chances.q)
        np.testing.assert_allclose(q.sum(axis=1), 1)
        assert (q[np.arange(5) < OPTIONS[:, None]] >= np.repeat(LEAST, OPTIONS) - 1e-12).all()
        assert (q[np.arange(5) >= OPTIONS[:, None]] == 0).all()


def test_at_the_start_chances_are_equal_or_prefer_x0():
    q = begun().q
    np.testing.assert_allclose(q[0], [1 / 3] * 3 + [0, 0])
    np.testing.assert_allclose(q[1], [0.1, 0.1, 0.1, 0.6, 0.1])
    np.testing.assert_allclose(q[2], [0.25] * 4 + [0])


def test_options_are_drawn_with_their_chances_and_back():
    q = begun().q
    u = np.random.default_rng(1).uniform(size=(200_000, 3))
    options = drawn(q, OPTIONS, u)
    for i, count in enumerate(OPTIONS):
        share = np.bincount(options[:, i].astype(int), minlength=5) / len(u)
        np.testing.assert_allclose(share, q[i], atol=4e-3)
        for k in range(count):
            picked = np.full(3, float(min(k, 2)))
            picked[i] = k
            assert drawn(q, OPTIONS, centre_of(q, picked)).tolist() == picked.tolist()
    assert drawn(q, OPTIONS, np.ones(3)).tolist() == [2, 4, 3]


def test_the_search_draws_options_with_their_chances():
    space = Space({"c": Choice(list("abcde"), shape=2), "x": Real(-1, 1)})
    x = fmnes.Optimizer(space, popsize=20_000, rng=1).ask_vectors()
    for column in (0, 1):
        share = np.bincount(x[:, column].astype(int), minlength=5) / len(x)
        np.testing.assert_allclose(share, 0.2, atol=0.012)


# === Searches ===


def wrong(p):
    return float((p["c"] != np.array(list("abcde" * 4))).sum())


@pytest.mark.parametrize("method", ["auto", "cr-fm-nes", "sep-cma", "vd-cma", "cma-es"])
def test_twenty_choices_of_five_options(method):
    space = Space({"c": Choice(list("abcde"), shape=20)})
    more = {"ftarget": 0, "maxfevals": 4000, "rng": 1, "method": method}
    result = fmnes.minimize(wrong, space, **more)
    assert result.fun == 0
    assert "".join(result.best["c"]) == "abcde" * 4


def attacks(p):
    """The number of queens, one in each row, that share a column or a diagonal with another."""
    column, row = p["column"].astype(int), np.arange(len(p["column"]))
    return sum(row.size - np.unique(v).size for v in (column, column + row, column - row))


@pytest.mark.parametrize("n", [8, 10])
def test_queens_that_do_not_attack_each_other(n):
    """There are 92 solutions among 8^8 boards, and 724 among 10^10."""
    board = Space({"column": Choice(range(n), shape=n)})
    more = {"ftarget": 0, "maxfevals": 20_000, "restarts": 20, "method": "sep-cma", "rng": 1}
    assert fmnes.minimize(attacks, board, **more).fun == 0


def named(p):
    return float((p["x"] ** 2).sum() + abs(p["n"] - 3) + (p["c"] != "b").sum())


def test_saved_resumed_and_parallel_searches_have_the_same_result(tmp_path):
    space = Space({"x": Real(-5, 5, shape=3), "n": Int(0, 40), "c": Choice(list("abc"), shape=4)})
    more = {"maxfevals": 600, "restarts": 1, "rng": 1}
    plain = fmnes.minimize(named, space, **more)
    assert (plain.best["c"] == "b").all()
    other = fmnes.minimize(named, space, workers=2, **more)
    np.testing.assert_array_equal(other.x, plain.x)
    path = tmp_path / "c.npz"
    fmnes.minimize(named, space, checkpoint=path, **(more | {"maxfevals": 150}))
    resumed = fmnes.minimize(named, space, checkpoint=path, **more)
    assert (resumed.fun, resumed.nfev) == (plain.fun, plain.nfev)
    np.testing.assert_array_equal(resumed.x, plain.x)


def test_an_injected_option_takes_part():
    space = Space({"x": Real(-5, 5), "c": Choice(list("abcdefgh"), shape=3)})
    opt = fmnes.Optimizer(space, rng=1)
    for _ in range(3):
        opt.tell([p["x"] ** 2 for p in opt.ask()])
    opt.inject({"x": 1.0, "c": ["h", "a", "d"]})
    assert opt.ask()[0]["c"].tolist() == ["h", "a", "d"]
