"""animate: each frame holds the distribution that its candidates were drawn from."""

import numpy as np
import pytest
from PIL import Image

import fmnes
from fmnes._plot import _animation


def bowl(x):
    return float(x[0] ** 2 + 100 * x[1] ** 2) if x[0] > -3 else np.inf


def frames_of(method, **options):
    opt = fmnes.Optimizer([2.0, 1.0], 0.5, method=method, rng=3, maxiter=6, **options)
    return _animation.record(bowl, opt)


def test_frames_hold_the_search(method):
    """The same as by hand; and the covariance is that of the steps the method takes from draws."""
    frames = frames_of(method)
    opt = fmnes.Optimizer([2.0, 1.0], 0.5, method=method, rng=3, maxiter=6)
    for frame in frames:
        module, params, state = fmnes.METHODS[method], opt._params, opt._state
        # A method may put off its root of the covariance; what it samples is what counts.
        root = module.transform(params, state, np.eye(2))
        np.testing.assert_allclose(frame.covariance, root.T @ root, rtol=1e-9, atol=1e-12)
        x = opt.ask()
        np.testing.assert_array_equal(frame.x, x)
        values = [bowl(row) for row in x]
        opt.tell(values)
        assert frame.f.tolist() == values
        assert (frame.nfev, frame.best) == (opt.nfev, opt.result.fun)
        assert frame.phase == opt.result.history["phase"][-1]
    assert len(frames) == 6
    np.testing.assert_array_equal(frames[0].mean, [2.0, 1.0])


def test_ellipses_lie_at_their_distance():
    frame = frames_of("cr-fm-nes")[-1]
    inverse = np.linalg.inv(frame.covariance)
    for deviations in (1.0, 2.0):
        steps = _animation.ellipse(frame, deviations) - frame.mean
        distance = np.sqrt(np.einsum("ij,jk,ik->i", steps, inverse, steps))
        np.testing.assert_allclose(distance, deviations, rtol=1e-9)


def test_a_gif_has_a_frame_for_each_generation(tmp_path):
    film = fmnes.animate(bowl, [2.0, 1.0], 0.5, popsize=6, maxiter=3, rng=1, width=2)
    film.save(tmp_path / "search.gif", writer="pillow", dpi=40)
    with Image.open(tmp_path / "search.gif") as image:
        assert image.n_frames == 3


def test_what_is_shown_moves():
    """The title, the candidates and the ellipses of the frame that is asked for."""
    film = fmnes.animate(
        bowl, [-3.0, 1.0], 0.5, popsize=8, maxiter=3, rng=1, limits=[(-4, 4), (-3, 3)]
    )
    axes = film._fig.axes[0]
    opt = fmnes.Optimizer([-3.0, 1.0], 0.5, popsize=8, rng=1, maxiter=3)
    frames = _animation.record(bowl, opt)
    for index, frame in enumerate(frames):
        path, mean, inside, outside, *rings, title = film._func(index)
        assert title.get_text().startswith(f"generation {index + 1}, ")
        feasible = np.isfinite(frame.f)
        np.testing.assert_array_equal(inside.get_xydata(), frame.x[feasible])
        np.testing.assert_array_equal(outside.get_xydata(), frame.x[~feasible])
        np.testing.assert_array_equal(mean.get_xydata(), frame.mean[None])
        assert len(path.get_xydata()) == index + 1
        for deviations, ring in enumerate(rings, start=1):
            expected = _animation.ellipse(frame, deviations)
            np.testing.assert_array_equal(ring.get_xydata(), expected)
    assert not np.isfinite(frames[0].f).all()  # or the crosses were not tested
    assert axes.get_xlim() == (-4, 4)
    assert axes.get_ylim() == (-3, 3)
    film._draw_was_started = True  # or Matplotlib warns that nobody has looked at it


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("x0", [1.0, 2.0, 3.0], ValueError),
        ("fun", None, TypeError),
        ("limits", [(1, 0), (0, 1)], ValueError),
        ("maxiter", 0, ValueError),
        ("maxiter", None, TypeError),
        ("interval", 0, ValueError),
        ("width", 1, ValueError),
    ],
)
def test_errors_name_the_argument(name, value, error):
    arguments = {"fun": bowl, "x0": [1.0, 2.0], "sigma0": 1.0, "maxiter": 1} | {name: value}
    with pytest.raises(error, match=f"^{name}: expected "):
        fmnes.animate(**arguments)
