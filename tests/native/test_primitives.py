"""The compiled passes over the draws equal the array-agnostic ones."""

import math

import numpy as np
import pytest
from array_api_compat import numpy as xp
from hypothesis import given
from hypothesis import strategies as st

from fmnes import kernels
from fmnes.kernels import _native, agnostic, native
from property_tests import examples

DTYPES = [np.float64, np.float32]
# One number, less than eight lanes, all of them, some more; one piece of a row and several.
DIMS = [1, 3, 8, 9, 40, 511, 2048, 2049, 5000]


class Arguments:
    """Draws, and the other arguments of the three passes."""

    def __init__(self, n, dim, dtype=np.float64, seed=0):
        rng = np.random.default_rng([n, dim, seed])

        def normal(*shape):
            return rng.normal(size=shape).astype(dtype)

        self.z = normal(n, dim)
        self.mean, self.scale = 10 * normal(dim), np.exp(normal(dim))
        self.vbar = normal(dim) / dtype(math.sqrt(dim))
        self.c, self.w1, self.w2, self.w3 = normal(n), normal(n), normal(n), normal(n)
        self.w1[: n // 2] = 0  # as the worse half has it in CMA-ES
        self.w3[: n // 3] = 0

    def results(self, kernel):
        """All results of a kernel module, by name."""
        z, vbar, c = self.z, self.vbar, self.c
        along, norm2 = kernel.row_products(xp, z, vbar)
        gz, az, zz = kernel.moments(xp, z, self.w1, self.w2, self.w3)
        return {
            "along": along,
            "norm2": norm2,
            "steps": kernel.candidates(xp, None, self.scale, z, c, vbar),
            "x": kernel.candidates(xp, self.mean, self.scale, z, c, vbar),
            "mirrored": kernel.candidates(xp, self.mean, self.scale, z, c, vbar, mirrored=True),
            "separable": kernel.candidates(xp, self.mean, self.scale, z),
            "gz": gz,
            "az": az,
            "zz": zz,
        }


def exact(arguments):
    """The results in extended precision, and the sum of the sizes of their terms."""
    with np.errstate(all="raise"):
        long = {name: np.asarray(x, np.longdouble) for name, x in vars(arguments).items()}
        z, vbar, scale, mean = long["z"], long["vbar"], long["scale"], long["mean"]
        y = z + long["c"][:, None] * vbar
        w1, w2, w3 = long["w1"], long["w2"], long["w3"]
        return {
            "along": (z @ vbar, np.abs(z) @ np.abs(vbar)),
            "norm2": (np.sum(z * z, axis=1), np.sum(z * z, axis=1)),
            "steps": (scale * y, scale * (np.abs(z) + np.abs(y - z))),
            "x": (mean + scale * y, np.abs(mean) + scale * (np.abs(z) + np.abs(y - z))),
            "gz": (w1 @ z, np.abs(w1) @ np.abs(z)),
            "az": (w2 @ z, np.abs(w2) @ np.abs(z)),
            "zz": (w3 @ (z * z), np.abs(w3) @ (z * z)),
        }


# --- Each pass ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_each_pass_is_what_it_says(n, dim, dtype):
    """Sums are taken in float64: float32 results have one rounding more."""
    arguments = Arguments(n, dim, dtype)
    results = arguments.results(native)
    eps = np.finfo(dtype).eps
    for name, (value, size) in exact(arguments).items():
        assert results[name].dtype == dtype, name
        of_terms = 2 * eps if name in ("steps", "x") else (n + dim) * np.finfo(np.float64).eps
        error = np.abs(results[name] - value)
        assert np.all(error <= 2 * eps * np.abs(value) + of_terms * size), name


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("n", [1, 4, 17])
def test_candidates_are_those_of_numpy_to_the_bit(n, dim):
    """Both do the same IEEE operations in the same order."""
    ours, theirs = (Arguments(n, dim).results(kernel) for kernel in (native, agnostic))
    for name in ("steps", "x", "mirrored", "separable"):
        np.testing.assert_array_equal(ours[name], theirs[name])


@given(n=st.integers(1, 40), dim=st.integers(1, 600), seed=st.integers(0, 1000))
def test_random_shapes(n, dim, seed):
    arguments = Arguments(n, dim, seed=seed)
    ours, theirs = arguments.results(native), arguments.results(agnostic)
    for name, value in theirs.items():
        np.testing.assert_allclose(
            ours[name], value, rtol=0, atol=1e-13 * (n + math.sqrt(dim) + 10), err_msg=name
        )


@examples(5)
@given(size=st.floats(4, 6), share=st.floats(0, 1), dtype=st.sampled_from(DTYPES))
def test_large_shapes(size, share, dtype):
    """Up to 1e6 numbers, enough for threads: from one long row to many rows of one number.

    Rounding errors add up like a random walk: to eps, times the largest partial sum, times the
    square root of the number of terms. Where signs are random, the latter two make up the sum of
    all |terms|. Those of |z|^2 are positive, and their partial sums as large as the sum.
    """
    n = round(10 ** (share * size))
    arguments = Arguments(n, round(10**size / n), dtype)
    ours, theirs = arguments.results(native), arguments.results(agnostic)
    for name, array in vars(arguments).items():
        setattr(arguments, name, np.abs(array))
    terms = arguments.results(agnostic)  # of the absolute values: the sums of all |terms|
    terms["mirrored"] = np.concatenate([terms["x"], terms["x"]])
    for name, size in terms.items():
        steps = arguments.z.shape[1] if name == "norm2" else 1
        error = np.abs(ours[name].astype(np.float64) - theirs[name])
        assert np.all(error <= (10 + math.sqrt(steps)) * np.finfo(dtype).eps * size), name


@pytest.mark.parametrize("which", range(8))
def test_weights_that_are_not_given(which):
    arguments = Arguments(9, 30)
    given_ = (arguments.w1, arguments.w2, arguments.w3)
    some = [w if which >> k & 1 else None for k, w in enumerate(given_)]
    whole = native.moments(xp, arguments.z, *given_)
    for w, partial, full in zip(some, native.moments(xp, arguments.z, *some), whole, strict=True):
        if w is None:
            assert partial is None
        else:
            np.testing.assert_array_equal(partial, full)


@pytest.mark.parametrize("kernel", [native, agnostic])
def test_products_without_a_direction(kernel):
    arguments = Arguments(9, 30)
    along, norm2 = kernel.row_products(xp, arguments.z)
    assert along is None
    np.testing.assert_array_equal(norm2, kernel.row_products(xp, arguments.z, arguments.vbar)[1])


def test_no_rows():
    empty = Arguments(0, 5)
    for kernel in (native, agnostic):
        for name, value in empty.results(kernel).items():
            shape = {"along": 0, "norm2": 0, "gz": 5, "az": 5, "zz": 5}.get(name, (0, 5))
            expected = np.zeros(shape)
            np.testing.assert_array_equal(value, expected)


# --- Ranks ----------------------------------------------------------------------------------------


VALUES = st.sampled_from([-math.inf, -1.0, 0.0, -0.0, 1.0, 2.0, 1e308, math.inf, math.nan])


@given(f=st.lists(VALUES, min_size=1, max_size=30), seed=st.integers(0, 9), share=st.booleans())
@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_by_candidate(dtype, f, seed, share):
    """With ties among feasible values, and among the distances of infeasible ones."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        f = np.array(f).astype(dtype)  # as the methods have it: one dtype for all
    norm2 = rng.integers(1, 4, size=len(f)).astype(dtype)
    by_rank = np.sort(rng.normal(size=len(f)).astype(dtype))[::-1]
    ours, theirs = (
        kernel.weights_by_candidate(xp, by_rank, f, norm2, share_ties=share)
        for kernel in (native, agnostic)
    )
    assert ours.dtype == dtype
    if share:  # the agnostic one takes differences of running sums
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=100 * np.finfo(dtype).eps)
    else:
        np.testing.assert_array_equal(ours, theirs)


def test_weights_by_hand():
    f = np.array([3.0, math.inf, 1.0, 3.0, math.nan, math.inf])
    norm2 = np.array([9.0, 2.0, 9.0, 9.0, 2.0, 1.0])
    by_rank = np.array([10.0, 8.0, 4.0, 3.0, 2.0, 1.0])
    weights = native.weights_by_candidate(xp, by_rank, f, norm2)
    np.testing.assert_array_equal(weights, [6.0, 1.5, 10.0, 6.0, 1.5, 3.0])
    weights = native.weights_by_candidate(xp, by_rank, f, norm2, share_ties=False)
    np.testing.assert_array_equal(weights, [8.0, 2.0, 10.0, 4.0, 1.0, 3.0])


# --- Bits -----------------------------------------------------------------------------------------


def same(ours, theirs):
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 30, 5000])
def test_a_row_does_not_depend_on_the_others(dim, dtype):
    arguments = Arguments(11, dim, dtype)
    whole = arguments.results(native)
    for first, last in ((0, 1), (3, 4), (2, 9)):
        part = Arguments(11, dim, dtype)
        part.z, part.c = arguments.z[first:last], arguments.c[first:last]
        part.w1 = part.w2 = part.w3 = np.ones(last - first, dtype)
        some = part.results(native)
        for name in ("along", "norm2", "steps", "x", "separable"):
            np.testing.assert_array_equal(some[name], whole[name][first:last])
        mirrored = whole["mirrored"].reshape(2, 11, dim)[:, first:last].reshape(-1, dim)
        np.testing.assert_array_equal(some["mirrored"], mirrored)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_asked_for_alone_leads_to_the_same_candidate(dtype):
    results = Arguments(7, 300, dtype).results(native)
    mean = Arguments(7, 300, dtype).mean
    np.testing.assert_array_equal(results["x"], mean + results["steps"])
    np.testing.assert_array_equal(results["mirrored"][:7], mean + results["steps"])
    np.testing.assert_array_equal(results["mirrored"][7:], mean - results["steps"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 1), (17, 30), (6, 5001)])
def test_every_level_gives_the_same_bits(shape, dtype):
    arguments = Arguments(*shape, dtype)
    results = []
    for level in _native.levels_here():
        _native.set_level(level)
        results.append(arguments.results(native))
    for other in results[1:]:
        same(other, results[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 300_003), (300, 2001), (2000, 300)])
def test_threads_change_no_bit(shape, dtype):
    arguments = Arguments(*shape, dtype)
    results = []
    for threads in (1, 2, 5):
        _native.set_num_threads(threads)
        results.append(arguments.results(native))
    for other in results[1:]:
        same(other, results[0])


# --- How arrays may lie ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_and_read_only(dtype):
    plain, other = Arguments(6, 50, dtype), Arguments(6, 50, dtype)
    for name, x in vars(plain).items():
        wide = np.repeat(x, 2, axis=-1)
        laid = wide[..., ::2] if name != "z" else np.asfortranarray(x)
        laid.flags.writeable = False
        setattr(other, name, laid)
    same(other.results(native), plain.results(native))


def test_the_extension_refuses_what_does_not_fit():
    z, v, n = np.ones((2, 3)), np.ones(3), np.ones(2)
    with pytest.raises(ValueError, match=r"^vbar: expected 3 numbers, got 2$"):
        _native.row_products(z, n, n, n)
    with pytest.raises(ValueError, match=r"^a: expected 2 numbers, got 3$"):
        _native.row_products(z, v, v, n)
    with pytest.raises(ValueError, match=r"^vbar and a: expected both or neither, got one$"):
        _native.row_products(z, v, None, n)
    with pytest.raises(ValueError, match=r"^c and vbar: expected both or neither, got one$"):
        _native.candidates(z, v, v, n, None, False, z)
    with pytest.raises(ValueError, match=r"^weights and sums: expected both or neither, "):
        _native.moments(z, n, None, None, None, None, None)
    with pytest.raises(ValueError, match=r"^out: expected 4 rows, got 2$"):
        _native.candidates(z, v, v, None, None, True, z)
    with pytest.raises(ValueError, match=r"^by_rank: expected 2 weights, got 3$"):
        _native.weights_by_candidate(v, n, n, True, n)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.row_products(z, v.astype(np.float32), n, n)  # one dtype for all


# --- Which of the two is used ---------------------------------------------------------------------


def test_what_is_selected():
    import array_api_strict

    assert kernels.select(xp, np.dtype(np.float64)) is native
    assert kernels.select(xp, np.dtype(np.float32)) is native
    assert kernels.select(np, np.dtype(np.float64)) is native
    assert kernels.select(xp, np.dtype(np.float16)) is agnostic
    assert kernels.select(array_api_strict, array_api_strict.float64) is agnostic
