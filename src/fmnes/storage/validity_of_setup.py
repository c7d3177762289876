"""Checks of what a search starts from, and of the state of its variables and constraints."""

import numpy as np
from array_api_compat import array_namespace

from fmnes._arrays import Array, to_host
from fmnes.arguments.setup import Setup
from fmnes.constraints.constrained import Constrained
from fmnes.constraints.kinds import Kinds
from fmnes.points.injected import Injected
from fmnes.storage.contents import check_array, check_layout
from fmnes.variables.bounds import Box
from fmnes.variables.discrete import Discrete, Margin


def check_setup(setup: Setup) -> None:
    """Raise an error if the parts of a setup do not fit together."""
    mean, dim = setup.mean, setup.mean.shape[0]
    if mean.ndim != 1 or dim < 1:
        raise ValueError(f"mean: expected a vector, got shape {tuple(mean.shape)}")
    if not array_namespace(mean).isdtype(mean.dtype, "real floating"):
        raise ValueError(f"mean: expected floating-point numbers, got {mean.dtype}")
    check_array("deviations", setup.deviations, np.empty(dim))
    check_array("shape.D", setup.shape.D, mean)
    if setup.shape.v is not None:
        check_array("shape.v", setup.shape.v, mean)
    if setup.shape.C is not None:
        check_layout("shape.C", setup.shape.C, (dim, dim), mean.dtype)
    if setup.box is not None:
        _check_box(setup.box, mean)
    if setup.discrete is not None:
        _check_discrete(setup.discrete, mean)
    if setup.space is not None and (setup.box is None or setup.space.dim != len(setup.box.free)):
        raise ValueError(f"space: expected one of {dim} coordinates, got {setup.space.dim}")


def _check_box(box: Box, mean: Array) -> None:
    free = np.asarray(to_host(box.free))
    if free.ndim != 1 or free.dtype != np.bool_ or free.sum() != mean.shape[0]:
        raise ValueError(f"bounds: expected {mean.shape[0]} free variables, got others")
    position = np.asarray(to_host(box.position))
    if not np.array_equal(position, np.where(free, np.cumsum(free) - 1, 0)):
        raise ValueError("bounds: expected the positions of the free variables, got others")
    check_layout("bounds.fixed", box.fixed, free.shape, mean.dtype)
    for name in ("low", "high", "margin"):
        check_array(f"bounds.{name}", getattr(box, name), mean)
    for name in ("has_low", "has_high"):
        check_layout(f"bounds.{name}", getattr(box, name), tuple(mean.shape), box.free.dtype)


def check_constrained(kinds: Kinds | None, constrained: Constrained | None) -> None:
    """Raise an error if the state of the constraints has another size than was declared."""
    if (kinds is None) != (constrained is None):
        raise ValueError("constraints: expected their state, got none, or the state of others")
    if kinds is None or constrained is None:
        return
    flags, numbers = np.empty(kinds.number, bool), np.empty(kinds.number)
    likes = {"equality": flags, "settled": flags}
    for name in ("equality", "tolerance"):
        check_array(f"constraints.{name}", getattr(kinds, name), likes.get(name, numbers))
    if not all(map(np.array_equal, constrained.kinds, kinds)):
        raise ValueError("constraints: expected those of the search, got others")
    check_array("constraints.g", constrained.g, numbers)
    for name, value in constrained.lagrangian._asdict().items():
        if name not in ("updates", "margin", "drought"):
            check_array(f"lagrangian.{name}", value, likes.get(name, numbers))


def _check_discrete(discrete: Discrete, mean: Array) -> None:
    for name in ("low", "high", "reach"):
        check_array(f"integrality.{name}", getattr(discrete, name), mean)
    like = np.empty(mean.shape, np.bool_)
    for name in ("is_integer", "is_choice"):
        check_layout(
            f"integrality.{name}", to_host(getattr(discrete, name)), like.shape, like.dtype
        )
    choice, column, options = (
        np.asarray(to_host(part)) for part in (discrete.choice, discrete.column, discrete.options)
    )
    check_layout("choices.choice", choice, tuple(mean.shape), np.dtype(np.int64))
    check_layout("choices.column", column, (column.size,), np.dtype(np.int64))
    for name in ("options", "least"):
        check_layout(f"choices.{name}", getattr(discrete, name), column.shape, mean.dtype)
    if ((column < 0) | (column >= mean.shape[0])).any():
        raise ValueError("choices: expected the coordinate of each choice, got others")
    if ((choice < 0) | (choice >= max(len(column), 1))).any() or (options < 3).any():
        raise ValueError("choices: expected the number of a choice, and 3 or more options each")


def check_margin(margin: Margin, discrete: Discrete, mean: Array) -> None:
    """Raise an error if a margin is not of these discrete variables."""
    for name in ("centre", "scale", "best"):
        check_array(f"margin.{name}", getattr(margin, name), mean)
    options = np.asarray(to_host(discrete.options))
    for name in ("q", "path"):
        shape = len(options), int(np.max(options, initial=1))
        check_layout(f"choices.{name}", getattr(margin, name), shape, mean.dtype)
    check_layout("choices.pace", margin.pace, (2,), mean.dtype)


def check_injected(injected: Injected | None, mean: Array, popsize: int) -> None:
    """Raise an error if points from elsewhere have other variables than the search."""
    if injected is None:
        return
    values = np.asarray(injected.values)
    n = values.shape[0] if values.ndim else 0
    check_layout("injected.values", values, (n,), np.dtype(np.float64))
    check_layout("injected.points", injected.points, (n, mean.shape[0]), mean.dtype)
    check_layout("injected.withdrawn", injected.withdrawn, (popsize,), np.dtype(bool))
    if not 0 <= injected.active <= min(n, popsize):
        raise ValueError(f"injected: expected at most {n} points in use, got {injected.active}")
