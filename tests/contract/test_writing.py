"""write_candidate and write_mean: candidates written into arrays that somebody else owns."""

import numpy as np
import pytest

import fmnes


def search(method="cr-fm-nes", **options):
    return fmnes.Optimizer(np.linspace(-1, 1, 10), 0.5, method=method, rng=1, **options)


def parts():
    """A matrix that is not contiguous, and a vector in another dtype."""
    return np.zeros((3, 2)).T, np.zeros(4, np.float32)


def flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


def rounded(x):
    return np.concatenate([x[:6], x[6:].astype(np.float32)])


def test_every_candidate_of_every_method(method):
    opt = search(method)
    x, target = opt.ask(), parts()
    for i, row in enumerate(x):
        opt.write_candidate(i, target)
        assert np.array_equal(flat(target), rounded(row))


def test_within_bounds_and_by_name():
    opt = search(bounds=[(-2, 2)] * 10)
    x, (first, second) = opt.ask(), parts()
    opt.write_candidate(3, {"first": first, "second": second})
    assert np.array_equal(flat([first, second]), rounded(x[3]))
    opt.write_mean([first, second])
    assert np.array_equal(flat([first, second]), rounded(opt.result.mean))


def test_writing_takes_the_place_of_ask():
    one, other = search(), search()
    for _ in range(3):
        f = np.sum(one.ask() ** 2, axis=1)
        one.tell(f)
        other.write_candidate(0, parts())
        other.tell(f)
    assert np.array_equal(one.ask(), other.ask())
    target = parts()
    other.write_mean(target)
    assert np.array_equal(flat(target), rounded(one.result.mean))


@pytest.mark.parametrize(
    ("i", "target", "error", "message"),
    [
        (-1, parts(), ValueError, "i: expected"),
        (100, parts(), ValueError, "i: expected a candidate from 0 to 9, got 100"),
        (0, parts()[:1], ValueError, "target: expected arrays with 10 numbers in all.* got 6"),
        (0, np.zeros(10), TypeError, "target: expected a torch.nn.Module, or a list or dict"),
        (0, [np.zeros(10, int)], TypeError, "real numbers, got .0. = ndarray of dtype int64"),
        (0, ["weights"], TypeError, "target: expected arrays of real numbers, got .0. = str"),
    ],
)
def test_what_is_refused(i, target, error, message):
    opt = search()
    with pytest.raises(error, match=message):
        opt.write_candidate(i, target)


def test_injected_points_are_written_too():
    """Whichever of `ask` and `write_candidate` is called first in a generation."""
    asked, written, target = search(), search(), parts()
    for opt in (asked, written):
        opt.inject(np.full(10, 0.25))
    written.write_candidate(0, target)
    assert np.array_equal(flat(target), np.full(10, 0.25))
    assert np.array_equal(written.ask(), asked.ask())
