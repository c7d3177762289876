"""Figures of several runs: medians with quartiles, and runtime distributions over targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._plot import _style as style
from fmnes.records.history import History
from fmnes.records.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A run of fmnes; or of any other package: evaluations, and the best value found until then.
Trace = Result | History | tuple[ArrayLike, ArrayLike]
_Pair = tuple[NDArray[np.int64], NDArray[np.float64]]


def plot_runs(
    runs: Mapping[str, Sequence[Trace]],
    *,
    fopt: float | None = None,
    width: float = style.COLUMN,
    figure: Figure | None = None,
) -> Figure:
    """Draw the best value over evaluations: the median of each group's runs and its quartiles.

    Parameters
    ----------
    runs : mapping of str to sequences of runs
        ``{"cr-fm-nes": [result, ...], "sep-cma": [...]}``. A run is a Result, a History, or a pair
        of arrays ``(nfev, best)``, for runs of other packages. A run that has ended keeps its last
        value. A run that has not found a feasible point counts as inf.
    fopt : float, optional
        The minimum, if you know it. Its difference to the values is drawn on a log scale. Without
        it, the values are drawn, on a log scale if all are positive and else on a linear one.
    width : float
        Width in inches; 3.3 is a column of a paper.
    figure : matplotlib.figure.Figure, optional
        The figure to draw into; by default a new one.

    Examples
    --------
    >>> import fmnes
    >>> def sphere(x):
    ...     return (x**2).sum()
    >>> runs = {
    ...     name: [
    ...         fmnes.minimize(sphere, [3.0] * 5, 1.0, method=name, maxiter=9, rng=seed)
    ...         for seed in range(3)
    ...     ]
    ...     for name in ("cr-fm-nes", "sep-cma")
    ... }
    >>> figure = fmnes.plot_runs(runs, fopt=0.0)
    """
    groups = _read(runs)
    if fopt is not None:
        checks.finite("fopt", fopt)
    figure = _figure("plot_runs", figure, width)
    axes = figure.subplots()
    found = [best[np.isfinite(best)] for pairs in groups.values() for _, best in pairs]
    log = fopt is not None or (any(len(b) for b in found) and all((b > 0).all() for b in found))
    for index, (name, pairs) in enumerate(groups.items()):
        nfev, (low, middle, high) = quartiles(pairs, (0.25, 0.5, 0.75))
        low, middle, high = (_shown(values, fopt, log) for values in (low, middle, high))
        look = style.line_style(index)
        axes.plot(nfev, middle, label=name, drawstyle="steps-post", **look)
        axes.fill_between(nfev, low, high, step="post", color=look["color"], alpha=0.2, linewidth=0)
    style.dress(axes, "best f" if not fopt else f"best f − ({fopt:.6g})", log=log)
    style.label_evaluations(axes)
    return figure


def plot_ecdf(
    runs: Mapping[str, Sequence[Trace]],
    targets: ArrayLike,
    *,
    dim: int | None = None,
    width: float = style.COLUMN,
    figure: Figure | None = None,
) -> Figure:
    """Draw the share of (run, target) pairs that are reached, over the number of evaluations.

    This is the runtime distribution of COCO without simulated restarts: a target that a run has not
    reached counts as never reached. If a group has missed targets, a cross marks the median length
    of its runs; right of the cross the line carries no information.

    Parameters
    ----------
    runs : mapping of str to sequences of runs
        As for `plot_runs`. For runs on several functions, pass pairs ``(nfev, best - fopt)``, so
        that the targets are comparable.
    targets : array_like
        Values to reach. COCO's, relative to fopt, are ``np.logspace(2, -8, 51)``.
    dim : int, optional
        The number of variables, by which evaluations are divided, as in COCO.
    width, figure : optional
        As for `plot_runs`.

    Examples
    --------
    >>> import fmnes, numpy as np
    >>> runs = {"of another package": [([10, 20, 30], [5.0, 1.0, 0.1])]}
    >>> figure = fmnes.plot_ecdf(runs, targets=[1.0, 0.01])
    >>> figure.axes[0].lines[0].get_ydata().tolist()  # one of the two targets, after 20
    [0.0, 0.5, 0.5]
    """
    groups = _read(runs)
    values = np.atleast_1d(checks.numbers("targets", targets, "numbers"))
    if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
        raise ValueError(f"targets: expected numbers, got {targets!r}")
    unit = 1 if dim is None else checks.integer("dim", dim, least=1)
    figure = _figure("plot_ecdf", figure, width)
    axes = figure.subplots()
    start = min(pair[0][0] for pairs in groups.values() for pair in pairs)
    end = max(pair[0][-1] for pairs in groups.values() for pair in pairs)
    for index, (name, pairs) in enumerate(groups.items()):
        times = np.sort(np.concatenate([runtimes(*pair, values) for pair in pairs]))
        reached = times[np.isfinite(times)]
        share = np.arange(len(reached) + 1) / len(times)
        x = np.concatenate([[start], reached, [end]]) / unit
        y = np.concatenate([share, share[-1:]])
        look = style.line_style(index)
        axes.plot(x, y, label=name, drawstyle="steps-post", **look)
        if len(reached) < len(times):
            length = np.median([pair[0][-1] for pair in pairs]) / unit
            at = np.searchsorted(reached / unit, length, side="right") / len(times)
            axes.plot([length], [at], marker="x", color=look["color"], markersize=6)
    axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.02)
    style.dress(axes, "share of targets reached")
    style.label_evaluations(axes, "evaluations" if dim is None else "evaluations / dimension")
    return figure


def quartiles(
    pairs: Iterable[_Pair], levels: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return evaluations that occur in a run, and quantiles of the best values after them."""
    pairs = list(pairs)
    nfev = np.unique(np.concatenate([pair[0] for pair in pairs]))
    values = np.empty((len(pairs), len(nfev)))
    for row, (at, best) in zip(values, pairs, strict=True):
        last = np.searchsorted(at, nfev, side="right")  # number of entries until then
        row[:] = np.concatenate([[np.inf], best])[last]
    values.sort(axis=0)
    return nfev, np.stack([_quantile(values, level) for level in levels])


def _quantile(ordered: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Return NumPy's linear quantile of sorted rows; next to inf, the worse value."""
    position = level * (len(ordered) - 1)
    low, high = ordered[int(np.floor(position))], ordered[int(np.ceil(position))]
    between = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(between, low + (position % 1) * (high - low), high))


def runtimes(
    nfev: NDArray[np.int64], best: NDArray[np.float64], targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the evaluations until best <= target, for each target; inf if it is not reached."""
    # best decreases, so -best is sorted, and its first entry >= -target is the one to find.
    first = np.searchsorted(-best, -targets, side="left")
    return np.concatenate([nfev, [np.inf]])[first]


def _shown(values: NDArray[np.float64], fopt: float | None, log: bool) -> NDArray[np.float64]:
    if log:
        return style.on_log_scale(values - (fopt or 0.0))
    return np.where(np.isfinite(values), values, np.nan)


def _figure(caller: str, figure: Figure | None, width: float) -> Figure:
    """Return the figure to draw into: the caller's, or a new one."""
    if figure is not None:
        return style.read_figure(figure)
    return style.make_figure(caller, style.read_width(width), 0.75 * width)


def _read(runs: Mapping[str, Sequence[Trace]]) -> dict[str, list[_Pair]]:
    """Return evaluations and best values of all runs."""
    if not isinstance(runs, Mapping) or not runs:
        raise TypeError(
            "runs: expected names with lists of runs, such as {'cma-es': [result, other]}, got "
            f"{runs!r:.60}"
        )
    groups: dict[str, list[_Pair]] = {}
    for name, group in runs.items():
        if not isinstance(group, list | tuple) or not group:
            raise TypeError(f"runs[{name!r}]: expected a list of runs, got {group!r:.60}")
        groups[name] = [_pair(f"runs[{name!r}][{i}]", run) for i, run in enumerate(group)]
    return groups


def _pair(where: str, run: Trace) -> _Pair:
    if isinstance(run, Result):
        run = run.history
    if isinstance(run, History):
        run = (run["nfev"], run["best"])
    if not (isinstance(run, Sequence) and len(run) == 2):
        raise TypeError(f"{where}: expected a Result, a History or (nfev, best), got {run!r}")
    nfev = checks.numbers(where, run[0], "numbers of evaluations").astype(np.int64)
    best = checks.numbers(where, run[1], "best values")
    if not (nfev.ndim == 1 and nfev.shape == best.shape and nfev.size > 0):
        raise ValueError(
            f"{where}: expected two sequences of one length, got shapes {nfev.shape}, {best.shape}"
        )
    if not (np.diff(nfev) > 0).all() or nfev[0] < 1 or not (best[1:] <= best[:-1]).all():
        raise ValueError(f"{where}: expected nfev to increase and best to decrease, got {run!r}")
    return nfev, best
