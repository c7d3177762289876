"""Methods with a full matrix: no bit depends on the number of threads of NumPy's BLAS."""

import hashlib

import numpy as np
import pytest

import fmnes
from fmnes.kernels import blas

OPENBLAS = blas.one_thread.threads
FULL = [name for name, method in fmnes.METHODS.items() if not method.LINEAR]


@pytest.fixture
def set_threads():
    """A function that sets the number of BLAS threads, which the fixture restores."""
    if OPENBLAS is None:
        pytest.skip("NumPy does not use OpenBLAS")
    before = OPENBLAS.get()
    yield OPENBLAS.set
    OPENBLAS.set(before)


def digest(method, dim=256, generations=4):
    """Of the candidates, the shape and the mean of a search that starts from a full matrix."""
    M = np.random.default_rng(1).normal(size=(dim, dim))
    scale = np.logspace(0, 3, dim)
    settings = type(fmnes.METHODS[method].Settings())(C=np.einsum("ik,jk->ij", M, M) / dim)
    optimizer = fmnes.Optimizer(np.ones(dim), 1.0, method=settings, popsize=36, rng=1)
    seen = hashlib.sha256()
    for _ in range(generations):
        x = optimizer.ask()
        seen.update(x)
        optimizer.tell(np.sum((scale * x) ** 2, axis=1))
    seen.update(optimizer.result.mean)
    seen.update(optimizer.result.shape.C)
    return seen.hexdigest()


@pytest.mark.parametrize("method", FULL)
def test_no_bit_depends_on_the_number_of_threads(method, set_threads):
    set_threads(1)
    expected = digest(method)
    set_threads(4)
    assert digest(method) == expected
    assert OPENBLAS.get() == 4


@pytest.fixture
def numbers():
    """The numbers of threads that were set, one after the other; 8 at first."""
    return [8]


@pytest.fixture
def one_thread(numbers):
    return blas.OneThread(blas.Threads(get=lambda: numbers[-1], set=numbers.append))


def test_one_thread_ends_with_the_last_of_overlapping_blocks(one_thread, numbers):
    first, second = one_thread, one_thread  # in two Python threads, say
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert numbers == [8, 1]
    second.__exit__()
    assert numbers == [8, 1, 8]


def test_an_error_restores_the_threads(one_thread, numbers):
    @one_thread
    def fail():
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fail()
    assert numbers == [8, 1, 8]


def test_nothing_happens_without_openblas():
    with blas.OneThread(None):
        np.linalg.eigh(np.eye(3))


def test_the_configuration_says_whether_the_threads_are_controlled():
    assert fmnes.config()["BLAS threads"] == ("not controlled" if OPENBLAS is None else "one")
