"""fmnes.animate(): the sampling distribution of a search in two variables, as an animation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._optimizer import Optimizer
from fmnes._plot import _style as style
from fmnes.algorithms._records import matrix_of
from fmnes.records.history import PHASES

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation

_GRID = 120  # points per side at which the contours evaluate the function


class Frame(NamedTuple):
    """One generation: the distribution, its candidates, and their values."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    x: NDArray[np.float64]  # the candidates, rows
    f: NDArray[np.float64]
    nfev: int  # after this generation
    best: float
    phase: int  # found by the method in these values; 0 if it has no phases


def animate(
    fun: Callable[..., Any],
    x0: ArrayLike,
    sigma0: ArrayLike,
    *,
    method: Any = "auto",
    popsize: int | None = None,
    maxiter: int = 40,
    rng: int | np.random.Generator | None = None,
    limits: ArrayLike | None = None,
    width: float = style.COLUMN,
    interval: float = 250.0,
) -> FuncAnimation:
    """Run a search in two variables and animate it.

    Each frame shows one generation: contours of the function (reddish where it is infeasible), the
    candidates (crosses where infeasible), the mean with its path, ellipses at one and two standard
    deviations, and the phase.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> float`` for x of shape (2,); +inf marks an infeasible point.
    x0, sigma0, method, popsize, rng
        As for `minimize`.
    maxiter : int
        Maximum number of generations.
    limits : array_like of shape (2, 2), optional
        The range of each variable to show, ``[(low, high), (low, high)]``. By default the range of
        all candidates.
    width : float
        Width and height in inches.
    interval : float
        Milliseconds per generation.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        ``.save("search.gif", writer="pillow")`` writes it to a file; ``.to_jshtml()`` returns HTML,
        for a page or a notebook.

    Examples
    --------
    >>> import fmnes
    >>> film = fmnes.animate(fmnes.problems.rosenbrock(2), [-1.0, 1.0], 0.5, maxiter=3, rng=1)
    >>> page = film.to_jshtml()
    """
    checks.function("fun", fun)
    checks.integer("maxiter", maxiter, least=1)  # here it may not be None
    checks.finite("interval", interval, above=0)
    given = None if limits is None else _read_limits(limits)
    opt = Optimizer(x0, sigma0, method=method, popsize=popsize, rng=rng, maxiter=maxiter)
    if opt.dim != 2:
        raise ValueError(f"x0: expected two variables, got {opt.dim}")
    figure = style.make_figure("animate", style.read_width(width), width)
    frames = record(fun, opt)
    box = _extent(frames) if given is None else given

    from matplotlib.animation import FuncAnimation

    axes = figure.subplots()
    _draw_contours(axes, fun, box)
    show = _actors(axes, frames)
    axes.set(xlim=box[0], ylim=box[1])
    axes.tick_params(labelsize=7)
    return FuncAnimation(figure, show, frames=len(frames), interval=interval, blit=False)


def record(fun: Callable[..., Any], opt: Optimizer) -> list[Frame]:
    """Run the search to its end, and return its generations."""
    frames = []
    while not opt.stop():
        before = opt.result
        covariance = before.sigma**2 * matrix_of(np, before.shape)
        x = np.asarray(opt.ask())
        f = np.asarray([float(fun(row)) for row in x])
        opt.tell(f)
        after = opt.result
        phase = int(after.history.last.phase)
        frames.append(Frame(np.asarray(before.mean), covariance, x, f, opt.nfev, after.fun, phase))
    return frames


def ellipse(frame: Frame, deviations: float) -> NDArray[np.float64]:
    """Return points (rows) on the ellipse at ``deviations`` standard deviations from the mean."""
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    variances, axes = np.linalg.eigh(frame.covariance)
    root = axes * np.sqrt(np.maximum(variances, 0))
    return np.asarray(frame.mean + deviations * (root @ circle).T)


def _read_limits(limits: Any) -> NDArray[np.float64]:
    """Return the lower and upper limit of each axis."""
    expected = "[(low, high), (low, high)]"
    box = checks.numbers("limits", limits, expected)
    if box.shape != (2, 2) or not (box[:, 0] < box[:, 1]).all():
        raise ValueError(f"limits: expected {expected}, got {limits!r}")
    return box


def _extent(frames: list[Frame]) -> NDArray[np.float64]:
    """Return the range of all candidates and of the first ellipse, with a margin."""
    x = np.concatenate([ellipse(frames[0], 2.0), *(frame.x for frame in frames)])
    low, high = x.min(axis=0), x.max(axis=0)
    margin = 0.05 * (high - low)
    return np.stack([low - margin, high + margin], axis=1)


def _draw_contours(axes: Any, fun: Callable[..., Any], box: NDArray[np.float64]) -> None:
    """Draw bands of equal area, the best values darkest.

    Quantiles as levels show as many bands of a steep function as of a flat one.
    """
    x, y = (np.linspace(low, high, _GRID) for low, high in box)
    z = np.asarray([[float(fun(np.asarray([a, b]))) for a in x] for b in y])
    finite = z[np.isfinite(z)]
    axes.set_facecolor("#F6D5C3")  # visible where the function has no values
    if finite.size and finite.min() < finite.max():
        levels = np.unique(np.quantile(finite, np.linspace(0, 1, 16)))
        shown = np.ma.masked_invalid(z)
        # Greys from 0.62, on which points can still be seen, to white.
        greys = [str(round(grey, 3)) for grey in np.linspace(0.62, 1.0, len(levels) - 1)]
        axes.contourf(x, y, shown, levels=levels, colors=greys)


def _actors(axes: Any, frames: list[Frame]) -> Callable[[int], list[Any]]:
    """Create all that moves, and return the function that shows frame ``index``."""
    (path,) = axes.plot([], [], color=style.BLACK, linewidth=0.8)
    (mean,) = axes.plot([], [], "+", color=style.BLACK, markersize=8)
    (inside,) = axes.plot([], [], "o", color=style.BLUE, markersize=3)
    (outside,) = axes.plot([], [], "x", color=style.VERMILION, markersize=4)
    rings = [axes.plot([], [], linewidth=1.5 - 0.4 * k)[0] for k in range(2)]
    title = axes.set_title("", fontsize=7)

    def show(index: int) -> list[Any]:
        frame = frames[index]
        name = PHASES.get(frame.phase, "no phases")
        colour = style.PHASE_COLOURS.get(frame.phase, style.GREEN)
        feasible = np.isfinite(frame.f)
        path.set_data(*np.stack([earlier.mean for earlier in frames[: index + 1]]).T)
        mean.set_data(*frame.mean[:, None])
        inside.set_data(*frame.x[feasible].T)
        outside.set_data(*frame.x[~feasible].T)
        for deviations, ring in enumerate(rings, start=1):
            ring.set_data(*ellipse(frame, deviations).T)
            ring.set_color(colour)
        title.set_text(
            f"generation {index + 1}, {name}\nf = {frame.best:.3g} after {frame.nfev} evaluations"
        )
        return [path, mean, inside, outside, *rings, title]

    return show
