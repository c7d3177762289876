"""What a file holds: the parts by name with their types, and checks of types and arrays."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from array_api_compat import is_array_api_obj

from fmnes._arrays import Array
from fmnes.arguments.setup import Setup
from fmnes.constraints.constrained import Constrained
from fmnes.points.injected import Injected
from fmnes.records.record import Record
from fmnes.records.result import Result
from fmnes.records.stopping import Budget
from fmnes.storage.fingerprint import Fingerprint
from fmnes.variables.discrete import Margin

# What a file holds, by name: what `Optimizer.to_saved` returns ("tally" is its Record), and what
# `Runs.save` and `CheckpointFiles` write.
SEARCH: dict[str, Any] = {
    "setup": Setup,
    "budget": Budget,
    "popsize": Any,
    "run": int,
    "state": tuple,
    "initial": Any,
    "best": Any,
    "extra_x": Any,
    "constrained": Constrained | None,
    "margin": Margin | None,
    "injected": Injected | None,
    "tally": Record,
    "asked": bool,
}
# The part of one process of a search that is split over several, and where it lies.
SHARD: dict[str, Any] = {**SEARCH, "start": int, "variables": int}
RUNS: dict[str, Any] = {
    "current": dict,
    "elapsed": float,
    "finished": list[Result],
    "first_error": str | None,
    "evaluates_x0": bool,
    "sigma_factor": float,
    "schedule": str,
    "objective": Fingerprint | None,
    "flight": dict | None,
    "parallel": dict | None,
    "search": str,
}
PARALLEL: dict[str, Any] = {
    "lanes": list[dict[str, Any]],
    "numbers": list[int],
    **dict.fromkeys(("batches", "begun", "popsize", "arrived"), int),
}
LANE: dict[str, Any] = {
    "search": dict,
    "flight": dict,
    "arrived": np.ndarray,
    "values": np.ndarray,
    "ended": str | None,
    "x0_is_open": bool,
}


def check_types(values: dict[str, Any], types: dict[str, Any]) -> None:
    """Raise an error if there are other values than these, or one is not of its type."""
    if not isinstance(values, dict) or values.keys() != types.keys():
        came = ", ".join(values) if isinstance(values, dict) else type(values).__name__
        raise ValueError(f"it holds {came}, not {', '.join(types)}")
    for name, type_ in types.items():
        if not _is_of(values[name], type_):
            raise TypeError(f"{name}: expected {type_}, got {type(values[name]).__name__}")


def check_fields(record: Any) -> None:
    """Raise a TypeError if a field of a record is not of the type that its class declares."""
    types = get_type_hints(type(record))
    check_types({name: getattr(record, name) for name in types}, types)


def _is_of(value: Any, type_: Any) -> bool:
    if type_ is Any:
        return True
    origin, arguments = get_origin(type_), get_args(type_)
    if hasattr(origin, "__value__"):  # an alias, as NumPy's NDArray is since NumPy 2.5
        return _is_of(value, origin.__value__)
    if origin in (Union, UnionType):
        return any(_is_of(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if origin in (tuple, list):
        return isinstance(value, origin) and all(_is_of(item, arguments[0]) for item in value)
    if type_ in (bool, int, float):
        if isinstance(value, np.ndarray) and value.ndim == 0:  # how a NumPy number is stored
            value = value.item()
        return type(value) is type_ or (type_ is float and type(value) is int)
    return isinstance(value, origin or type_)


def check_array(name: str, value: Any, like: Array) -> None:
    """Raise an error unless ``value`` is an array of the shape and dtype of ``like``."""
    check_layout(name, value, tuple(like.shape), like.dtype)


def check_layout(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise an error unless ``value`` is an array of this shape and dtype, or such a number."""
    array = value if is_array_api_obj(value) else np.asarray(value)
    if (tuple(array.shape), str(array.dtype)) != (shape, str(dtype)):
        raise ValueError(
            f"{name}: expected shape {shape}, dtype {dtype}, got shape {tuple(array.shape)}, dtype "
            f"{array.dtype}"
        )
