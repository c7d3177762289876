"""Checks of what a file holds. A file with the right checksum may still hold anything.

All checks are done before memory is taken for the population or for the state of the search.
"""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from fmnes import draws
from fmnes._arrays import Array, to_host
from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._records import Shape
from fmnes.arguments.start import MOST_CANDIDATES, Setup
from fmnes.constraints.constrained import Constrained
from fmnes.constraints.kinds import Kinds
from fmnes.engines import Generation
from fmnes.points.injected import Injected
from fmnes.records.history import History
from fmnes.records.record import Limits, Record
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Budget
from fmnes.storage.fingerprint import Fingerprint
from fmnes.variables.bounds import Box
from fmnes.variables.discrete import Discrete, Margin

_SMALL = 7  # variables of the search that shows how the arrays of a method look

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
_PARALLEL: dict[str, Any] = {
    "lanes": list[dict[str, Any]],
    "numbers": list[int],
    **dict.fromkeys(("batches", "begun", "popsize", "arrived"), int),
}
_LANE: dict[str, Any] = {
    "search": dict,
    "flight": dict,
    "arrived": np.ndarray,
    "values": np.ndarray,
    "ended": str | None,
    "x0_is_open": bool,
}
_COUNTERS = (
    *("generation", "nfev", "listed_nfev", "nfailed", "extra_nfev", "free"),
    *("flat", "infeasible", "violated", "rose_at", "popsize"),
)
_RECORD: dict[str, Any] = {
    **dict.fromkeys(_COUNTERS, int),
    "limits": Limits,
    "sigma0": float,
    "varied": bool,
    "all_nan_at_first": bool,
    "best_f": float,
    "extra_f": float,
    "first_median": float,
    "last": Generation | None,
    "history": History,
    "started": float,
}


# === Types ===


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


# === Searches ===


def check_content(saved: dict[str, Any]) -> None:
    """Raise an error if the parts of a search, or of the runs of a search, do not fit together."""
    if isinstance(saved, dict) and "variables" in saved:
        _check_shard(saved)
        return
    if not isinstance(saved, dict) or "current" not in saved:
        check_search(saved)
        return
    check_types(saved, RUNS)
    if len(bytes.fromhex(saved["search"])) != 16:
        raise ValueError(f"search: expected 16 bytes, got {saved['search']!r}")
    current = saved["current"]
    check_search(current)
    setup = current["setup"]
    if saved["flight"] is not None:
        _check_flight(saved["flight"], setup.mean)
    if saved["parallel"] is not None:
        _check_parallel(saved["parallel"], len(saved["finished"]))
    for result in saved["finished"]:
        for vector in (result.x, result.stds):
            _check_array("finished", vector, setup.mean if setup.box is None else setup.box.fixed)
        if len(result.restarts) != 1:
            raise ValueError(f"finished: expected one run each, got {len(result.restarts)}")


def _check_flight(flight: dict[str, Any], mean: Array) -> None:
    """Raise an error if the candidates in flight of an asynchronous search do not fit it."""
    check_types(flight, {"origins": np.ndarray, "y": Any})
    count = len(flight["origins"])
    _check_layout("flight.origins", flight["origins"], (count, 2), np.dtype(np.int64))
    _check_layout("flight.y", flight["y"], (count, mean.shape[0]), mean.dtype)
    if (flight["origins"] < 0).any():
        raise ValueError("flight.origins: expected numbers >= 0, got a negative one")


def _check_parallel(parallel: dict[str, Any], finished: int) -> None:
    """Raise an error if the runs in progress of a schedule do not fit together."""
    check_types(parallel, _PARALLEL)
    if len(parallel["numbers"]) != finished or not parallel["lanes"]:
        raise ValueError(f"parallel: expected a number for each of {finished} finished runs")
    for lane in parallel["lanes"]:
        check_types(lane, _LANE)
        check_search(lane["search"])
        setup, arrived = lane["search"]["setup"], lane["arrived"]
        _check_flight(lane["flight"], setup.mean)
        count, kinds = len(arrived), setup.constraints
        _check_layout("parallel.arrived", arrived, (count,), np.dtype(np.int64))
        shape = (count,) if kinds is None or not count else (count, 1 + kinds.number)
        _check_layout("parallel.values", lane["values"], shape, np.dtype(np.float64))
        if ((arrived < 0) | (arrived >= len(lane["flight"]["origins"]))).any():
            raise ValueError("parallel.arrived: expected candidates in flight, got others")
        if lane["ended"] is not None:
            Status(lane["ended"])


def _check_shard(saved: dict[str, Any]) -> None:
    """Raise an error if one process's part of a search does not fit into the whole."""
    check_types(saved, SHARD)
    start, variables = saved["start"], saved["variables"]
    check_search({name: saved[name] for name in SEARCH}, variables)
    end = start + saved["setup"].mean.shape[0]
    if not 0 <= start < end <= variables:
        raise ValueError(f"start: expected a part of {variables} variables, got {start} to {end}")


def check_search(saved: dict[str, Any], variables: int | None = None) -> None:
    """Raise an error if the parts of a search do not fit together.

    ``variables`` is their number in the whole search, if this is a part of it.
    """
    check_types(saved, SEARCH)
    setup, popsize, record = saved["setup"], saved["popsize"], saved["tally"]
    if setup.method not in METHODS:
        raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {setup.method!r}")
    method = METHODS[setup.method]
    check_types(
        {"settings": setup.settings, "state": saved["state"]},
        {"settings": method.Settings, "state": method.State},
    )
    if type(popsize) is not int or not 2 <= popsize <= MOST_CANDIDATES:
        raise ValueError(f"popsize: expected 2 to {MOST_CANDIDATES}, got {popsize!r}")
    if method.ANTITHETIC and popsize % 2:
        raise ValueError(f"popsize: expected an even number, got {popsize}")
    if not 0 <= setup.seed < 2**64:
        raise ValueError(f"seed: expected 64 bits, got {setup.seed}")
    draws.population_stream(saved["run"])  # raises an error if there is no such run
    _check_setup(setup)
    _check_constrained(setup.constraints, saved["constrained"])
    if setup.multipliers is not None and setup.constraints is not None:
        numbers = np.empty(setup.constraints.number)
        _check_array("multipliers", setup.multipliers, numbers)
    _check_injected(saved["injected"], setup.mean, popsize)
    dim, varies = setup.mean.shape[0], setup.settings.adapts_popsize
    _check_record(record, dim if variables is None else variables, popsize, varies=varies)
    _check_state(method, saved)


def _check_setup(setup: Setup) -> None:
    mean, dim = setup.mean, setup.mean.shape[0]
    if mean.ndim != 1 or dim < 1:
        raise ValueError(f"mean: expected a vector, got shape {tuple(mean.shape)}")
    if not array_namespace(mean).isdtype(mean.dtype, "real floating"):
        raise ValueError(f"mean: expected floating-point numbers, got {mean.dtype}")
    _check_array("deviations", setup.deviations, np.empty(dim))
    _check_array("shape.D", setup.shape.D, mean)
    if setup.shape.v is not None:
        _check_array("shape.v", setup.shape.v, mean)
    if setup.shape.C is not None:
        _check_layout("shape.C", setup.shape.C, (dim, dim), mean.dtype)
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
    _check_layout("bounds.fixed", box.fixed, free.shape, mean.dtype)
    for name in ("low", "high", "margin"):
        _check_array(f"bounds.{name}", getattr(box, name), mean)
    for name in ("has_low", "has_high"):
        _check_layout(f"bounds.{name}", getattr(box, name), tuple(mean.shape), box.free.dtype)


def _check_constrained(kinds: Kinds | None, constrained: Constrained | None) -> None:
    """Raise an error if the state of the constraints has another size than was declared."""
    if (kinds is None) != (constrained is None):
        raise ValueError("constraints: expected their state, got none, or the state of others")
    if kinds is None or constrained is None:
        return
    flags, numbers = np.empty(kinds.number, bool), np.empty(kinds.number)
    likes = {"equality": flags, "settled": flags}
    for name in ("equality", "tolerance"):
        _check_array(f"constraints.{name}", getattr(kinds, name), likes.get(name, numbers))
    if not all(map(np.array_equal, constrained.kinds, kinds)):
        raise ValueError("constraints: expected those of the search, got others")
    _check_array("constraints.g", constrained.g, numbers)
    for name, value in constrained.lagrangian._asdict().items():
        if name not in ("updates", "margin", "drought"):
            _check_array(f"lagrangian.{name}", value, likes.get(name, numbers))


def _check_discrete(discrete: Discrete, mean: Array) -> None:
    for name in ("low", "high", "reach"):
        _check_array(f"integrality.{name}", getattr(discrete, name), mean)
    like = np.empty(mean.shape, np.bool_)
    for name in ("is_integer", "is_choice"):
        _check_layout(
            f"integrality.{name}", to_host(getattr(discrete, name)), like.shape, like.dtype
        )
    choice, column, options = (
        np.asarray(to_host(part)) for part in (discrete.choice, discrete.column, discrete.options)
    )
    _check_layout("choices.choice", choice, tuple(mean.shape), np.dtype(np.int64))
    _check_layout("choices.column", column, (column.size,), np.dtype(np.int64))
    for name in ("options", "least"):
        _check_layout(f"choices.{name}", getattr(discrete, name), column.shape, mean.dtype)
    if ((column < 0) | (column >= mean.shape[0])).any():
        raise ValueError("choices: expected the coordinate of each choice, got others")
    if ((choice < 0) | (choice >= max(len(column), 1))).any() or (options < 3).any():
        raise ValueError("choices: expected the number of a choice, and 3 or more options each")


def _check_margin(margin: Margin, discrete: Discrete, mean: Array) -> None:
    for part in margin[:3]:
        _check_array("margin", part, mean)
    options = np.asarray(to_host(discrete.options))
    for name in ("q", "path"):
        shape = len(options), int(np.max(options, initial=1))
        _check_layout(f"choices.{name}", getattr(margin, name), shape, mean.dtype)
    _check_layout("choices.pace", margin.pace, (2,), mean.dtype)


def _check_injected(injected: Injected | None, mean: Array, popsize: int) -> None:
    if injected is None:
        return
    values = np.asarray(injected.values)
    n = values.shape[0] if values.ndim else 0
    _check_layout("injected.values", values, (n,), np.dtype(np.float64))
    _check_layout("injected.points", injected.points, (n, mean.shape[0]), mean.dtype)
    _check_layout("injected.withdrawn", injected.withdrawn, (popsize,), np.dtype(bool))
    if not 0 <= injected.active <= min(n, popsize):
        raise ValueError(f"injected: expected at most {n} points in use, got {injected.active}")


def _check_record(record: Record, dim: int, popsize: int, *, varies: bool) -> None:
    """Raise an error if a record is not of this search; ``varies``: generations differ in size."""
    check_types({name: getattr(record, name) for name in _RECORD}, _RECORD)
    limits, history = record.limits, record.history
    first = limits.popsize
    fits = 2 <= first <= popsize if varies else first == popsize
    if (limits.dim, record.popsize) != (dim, popsize) or not fits:
        raise ValueError(
            f"popsize: expected {popsize} candidates of {dim} variables, got a record of "
            f"{record.popsize} of {limits.dim}, at first {first}"
        )
    if any(getattr(record, name) < 0 for name in _COUNTERS):
        raise ValueError("record: expected numbers >= 0, got a negative one")
    least = record.extra_nfev + record.generation * first - record.free
    if record.nfev < least or (record.nfev > least and not varies):
        raise ValueError(
            f"nfev: expected {record.generation} generations of {first} without {record.free}, "
            f"and {record.extra_nfev} beside them, got {record.nfev}"
        )
    if (record.last is None) != (record.generation == 0) or history.to_array().ndim != 1:
        raise ValueError(f"record: expected {record.generation} generations, got others")


def _check_state(method: Algorithm, saved: dict[str, Any]) -> None:
    """Compare the state with that of a small search: it may claim a size that no memory has."""
    setup, state = saved["setup"], saved["state"]
    mean, xp = setup.mean, array_namespace(setup.mean)
    dim, one = mean.shape[0], array_namespace(mean).ones(_SMALL, dtype=mean.dtype)
    # Default settings: those of the search may ask for more axes than a small search has variables.
    params = method.params(_SMALL, method.default_popsize(_SMALL))
    like = method.init(params, one, one[0], Shape(D=one), one)
    sizes = {"d": dim}
    for name, small in like._asdict().items():
        value = getattr(state, name)
        if name in method.GROWING:
            shape = _grown_shape(f"state.{name}", value, method.GROWING[name], sizes)
        else:
            shape = tuple(dim if size == _SMALL else size for size in small.shape)
        _check_layout(f"state.{name}", value, shape, small.dtype)
    if method.GROWING and not any(sizes[name] for name in sizes if name != "d"):
        raise ValueError(f"state: expected one of {', '.join(method.GROWING)}, got empty arrays")
    for name in ("initial", "best"):
        if saved[name] is not None:
            _check_array(name, saved[name], mean)
    if (saved["margin"] is None) != (setup.discrete is None):
        raise ValueError("margin: expected one if there are discrete variables, got the opposite")
    if setup.discrete is not None:
        _check_margin(saved["margin"], setup.discrete, mean)
    if saved["extra_x"] is not None:
        _check_array("extra_x", saved["extra_x"], mean if setup.box is None else setup.box.fixed)
    constrained, record = saved["constrained"], saved["tally"]
    found = record.best_f if constrained is None else constrained.f
    best = "extra_x" if record.best_is_extra or constrained is not None else "best"
    if saved[best] is None and found < xp.inf:
        raise ValueError(f"{best}: expected the best point so far, got none")


def _grown_shape(
    name: str, value: Any, names: tuple[str, ...], sizes: dict[str, int]
) -> tuple[int, ...]:
    """The shape that an array of variable size should have; its sizes enter ``sizes``.

    See `Algorithm.GROWING` for the names of the sizes.
    """
    found = np.shape(to_host(value)) + (0,) * len(names)
    for size_name, size in zip(names, found, strict=False):
        if size > sizes["d"] or (size_name == "0|d" and size not in (0, sizes["d"])):
            raise ValueError(f"{name}: expected sizes of at most {sizes['d']}, got shape {found}")
        sizes.setdefault(size_name, size)
    return tuple(sizes[size_name] for size_name in names)


def _check_array(name: str, value: Any, like: Array) -> None:
    _check_layout(name, value, tuple(like.shape), like.dtype)


def _check_layout(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise an error unless ``value`` is an array of this shape and dtype, or such a number."""
    array = value if is_array_api_obj(value) else np.asarray(value)
    if (tuple(array.shape), str(array.dtype)) != (shape, str(dtype)):
        raise ValueError(
            f"{name}: expected shape {shape}, dtype {dtype}, got shape {tuple(array.shape)}, dtype "
            f"{array.dtype}"
        )
