"""What a search starts from: the arguments checked, and moved into search coordinates."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes import _random as random
from fmnes._bounds import Box, read_bounds
from fmnes._result import Result
from fmnes._stopping import Stopping
from fmnes.algorithms._shared import Array, Namespace, Shape, constant, copied


class Setup(NamedTuple):
    """What a search starts from, checked: the same for every run of a restart schedule."""

    method: str
    settings: Any
    mean: Array  # in search coordinates, as are the deviations and the shape
    deviations: NDArray[np.float64]
    shape: Shape
    box: Box | None
    seed: int
    stopping: Stopping


def set_up(
    row: checks.Method, x0: Any, sigma0: Any, bounds: Any, rng: Any, stopping: Stopping | None
) -> Setup:
    """Check what a search starts from, and move it into search coordinates."""
    shape = None
    if isinstance(x0, Result):
        sigma0 = x0.sigma if sigma0 is None else sigma0
        shape, x0 = x0.shape, x0.mean
    elif sigma0 is None:
        raise TypeError("sigma0: expected a number or a vector, got none")
    xp, mean = checks.start(x0)
    deviations = checks.step_sizes(sigma0, mean.shape[0])
    box = None if bounds is None else _box(xp, mean, bounds, deviations)
    if box is not None:
        deviations = deviations[np.asarray(checks.to_host(box.free))]
        mean = box.to_search(xp, mean)
    if shape is None:
        shape = _initial_shape(xp, mean, row.settings)
    elif shape.D.shape != mean.shape:
        raise ValueError(
            f"x0: expected a Result with {mean.shape[0]} free variables, got {shape.D.shape[0]}"
        )
    else:
        shape = copied(xp, shape)
    if stopping is not None and not isinstance(stopping, Stopping):
        raise TypeError(f"stopping: expected fmnes.Stopping(...), got {stopping!r}")
    return Setup(
        method=row.name,
        settings=row.settings,
        mean=mean,
        deviations=deviations,
        shape=shape,
        box=box,
        seed=random.draw_seed(rng),
        stopping=Stopping() if stopping is None else stopping,
    )


def _initial_shape(xp: Namespace, mean: Array, settings: Any) -> Shape:
    """D, v and C of the method's settings, checked; ones, and nothing, where not given."""
    dim = mean.shape[0]
    shapes = {"D": (dim,), "v": (dim,), "C": (dim, dim)}
    given = {
        field.name: constant(
            xp,
            checks.initial_shape(field.name, getattr(settings, field.name), shapes[field.name]),
            mean,
        )
        for field in dataclasses.fields(settings)
        if field.name in shapes and getattr(settings, field.name) is not None
    }
    ones = xp.broadcast_to(constant(xp, 1.0, mean), mean.shape)  # a number, whatever the length
    return Shape(**{"D": ones, **given})


def _box(xp: Namespace, x0: Array, bounds: Any, deviations: NDArray[np.float64]) -> Box:
    """The bounds, with x0 inside them."""
    low, high = read_bounds(bounds, x0.shape[0])
    host = np.asarray(checks.to_host(x0), np.float64)
    outside = np.flatnonzero((host < low) | (host > high))
    if outside.size:
        j = int(outside[0])
        raise ValueError(
            f"x0: expected a point inside the bounds, got x0[{j}] = {host[j]:g} "
            f"outside [{low[j]:g}, {high[j]:g}]"
        )
    return Box.build(xp, x0, low, high, deviations)
