"""Points from elsewhere that a callback of minimize injects."""

import numpy as np
import pytest

import fmnes


def sphere(x):
    return (x**2).sum(axis=-1)


def tell(opt, generations):
    for _ in range(generations):
        opt.tell(sphere(opt.ask()))


@pytest.mark.parametrize("how", [{}, {"vectorized": True}, {"workers": 2}])
def test_a_callback_injects_points(how):
    """The known point is not evaluated; the result is that of the same search by ask and tell."""
    known, proposed = np.full(5, 0.5), np.full(5, 0.1)

    def callback(result, inject):
        if result.nit == 3:
            inject(known, f=sphere(known))
            inject(proposed)

    result = fmnes.minimize(sphere, [3.0] * 5, 1.0, rng=1, maxiter=6, callback=callback, **how)
    opt = fmnes.Optimizer([3.0] * 5, 1.0, rng=1)
    tell(opt, 3)
    opt.inject([proposed])
    opt.inject(known, f=sphere(known))
    tell(opt, 3)
    assert result.nfev == opt.nfev + 2  # with x0, twice
    assert (result.x == opt.result.x).all()
    assert (result.mean == opt.result.mean).all()


def test_a_search_that_resumes_has_the_points_of_its_callback(tmp_path):
    calls = []

    def search(generations, callback, path=None):
        return fmnes.minimize(
            sphere, [3.0] * 5, 1.0, rng=1, maxiter=generations, callback=callback,
            checkpoint=None if path is None else fmnes.Checkpoint(path, every=1000),
        )  # fmt: skip

    def callback(result, inject):
        calls.append(result.nit)
        if result.nit == 3:
            inject(np.full((6, 5), 0.1) * np.arange(6)[:, None])

    def stops(result, inject):
        callback(result, inject)
        if result.nit == 4:
            raise MemoryError

    undisturbed = search(10, callback)
    with pytest.raises(MemoryError):
        search(10, stops, tmp_path / "run.npz")
    calls.clear()
    resumed = search(10, callback, tmp_path / "run.npz")
    assert calls[0] == 4  # the points of the third generation are in the file
    assert (resumed.x == undisturbed.x).all()
    assert (resumed.mean == undisturbed.mean).all()
    assert resumed.nfev == undisturbed.nfev


@pytest.mark.parametrize("moment", [22, 25, 29])
def test_an_interrupted_generation_counts_the_evaluations_that_were_made(moment):
    """Two of its ten candidates have known values; the best of them is in the result."""
    calls = []

    def fun(x):
        if len(calls) == moment:
            raise KeyboardInterrupt
        calls.append(sphere(x))
        return calls[-1]

    def callback(result, inject):
        if result.nit == 2:
            inject(np.full((2, 6), 0.5), f=[1.5, -1.0])

    result = fmnes.minimize(fun, [3.0] * 6, 2.0, rng=1, callback=callback, popsize=10)
    assert result.nfev == len(calls)
    assert result.fun == -1.0


def test_points_wait_for_the_next_run():
    def callback(result, inject):
        if len(result.restarts) == 1:
            inject(np.zeros(5), f=0.5)  # until the last generation of the first run

    result = fmnes.minimize(
        lambda x: sphere(np.floor(x)) + 1, [3.0] * 5, 1.0, rng=1, restarts=1, callback=callback
    )
    assert result.restarts[1].fun == 0.5


def test_callbacks_with_defaults_get_one_argument():
    seen = []

    def callback(result, log=seen):
        log.append(result.nit)

    fmnes.minimize(sphere, [3.0] * 5, 1.0, rng=1, maxiter=2, callback=callback)
    fmnes.minimize(sphere, [3.0] * 5, 1.0, rng=1, maxiter=2, callback=lambda *a: seen.append(a))
    assert seen[:2] == [1, 2]
    assert all(len(arguments) == 1 for arguments in seen[2:])


def test_asynchronous_searches_take_no_points():
    with pytest.raises(ValueError, match="inject: expected a search that is not asynchronous"):
        fmnes.minimize(
            sphere, [3.0] * 5, 1.0, rng=1, workers=2, asynchronous=True,
            callback=lambda result, inject: inject(np.zeros(5)),
        )  # fmt: skip
