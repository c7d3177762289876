"""fmnes.plot(run): the course of a search in four panels, as pycma's users know it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from fmnes._history import History
from fmnes._result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PHASES = {1: "movement", 2: "stagnation", 3: "convergence"}


def plot(run: Result | History, *, figure: Any = None) -> "Figure":
    """Draw the history of a search and return the Matplotlib figure.

    Parameters
    ----------
    run : Result or History
        Of `minimize`, or ``opt.result`` at any time; or the history alone.
    figure : matplotlib.figure.Figure, optional
        Where to draw; a new one by default. Save it with ``figure.savefig(path)``.
    """
    if not isinstance(run, Result | History):
        raise TypeError(f"run: expected a Result or a History, got {run!r}")
    record = run.history if isinstance(run, Result) else run
    if len(record) == 0:
        raise ValueError("run: expected at least one generation, got none")
    if figure is None:
        figure = _new_figure()
    history = record.to_array()
    (values, scales), (shape, clock) = figure.subplots(2, 2, sharex=True)
    _draw_values(values, history)
    _draw_scales(scales, history)
    _draw_shape(shape, history)
    _draw_clock(clock, history)
    for axes in (shape, clock):
        axes.set_xlabel("evaluations")
    for axes in (values, scales, shape, clock):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", loc="best")
    ended = f"{run.status}: " if isinstance(run, Result) else ""
    best, nfev = history["best"][-1], history["nfev"][-1]
    figure.suptitle(f"{ended}f = {best:.6g} after {nfev} evaluations")
    return figure  # type: ignore[no-any-return]


def _new_figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot needs Matplotlib: pip install 'fmnes[plot]'") from None
    return Figure(figsize=(9, 6), layout="constrained")


def _draw_values(axes: Any, history: Any) -> None:
    """Objective on a log scale: |f| where positive, above the best value otherwise."""
    nfev, best = history["nfev"], history["best"]
    columns = {"generation best": "generation_best", "median": "median", "best so far": "best"}
    finite = best[np.isfinite(best)]
    offset = 0.0 if finite.size == 0 or finite.min() > 0 else finite.min()
    label = "f" if offset == 0 else f"f - ({offset:.6g})"
    for name, column in columns.items():
        shown = np.where(np.isfinite(history[column]), history[column] - offset, np.nan)
        axes.plot(nfev, np.where(shown > 0, shown, np.nan), label=name, lw=1)
    axes.set_yscale("log")
    axes.set_ylabel(label)


def _draw_scales(axes: Any, history: Any) -> None:
    nfev = history["nfev"]
    axes.plot(nfev, history["sigma"], label="sigma", lw=1.5)
    axes.plot(nfev, history["deviation_max"], label="largest deviation", lw=1)
    axes.plot(nfev, history["deviation_min"], label="smallest deviation", lw=1)
    axes.set_yscale("log")
    axes.set_ylabel("step size")


def _draw_shape(axes: Any, history: Any) -> None:
    nfev = history["nfev"]
    axes.plot(nfev, np.sqrt(history["condition"]), label="axis ratio", lw=1.5)
    if not np.isnan(history["norm_v"]).all():
        axes.plot(nfev, history["norm_v"], label="|v|", lw=1)
    axes.set_yscale("log")
    axes.set_ylabel("shape")


def _draw_clock(axes: Any, history: Any) -> None:
    """Seconds in the objective and in the optimizer, and the share of each phase."""
    nfev = history["nfev"]
    axes.plot(nfev, np.cumsum(history["seconds_objective"]), label="seconds in objective", lw=1)
    axes.plot(nfev, np.cumsum(history["seconds_optimizer"]), label="seconds in optimizer", lw=1)
    axes.set_ylabel("time")
    if history["phase"].any():
        share = "  ".join(
            f"{name} {np.mean(history['phase'] == code):.0%}" for code, name in _PHASES.items()
        )
        axes.set_title(share, fontsize="small")
