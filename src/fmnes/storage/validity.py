"""Checks of what a file holds. A file with the right checksum may still hold anything.

All checks are done before memory is taken for the population or for the state of the search.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fmnes import draws
from fmnes._arrays import Array, to_host
from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._records import Shape
from fmnes.arguments.method import MOST_CANDIDATES
from fmnes.engines import Generation
from fmnes.records.history import History
from fmnes.records.record import Limits, Record
from fmnes.records.status import Status
from fmnes.storage.contents import (
    LANE,
    PARALLEL,
    RUNS,
    SEARCH,
    SHARD,
    check_array,
    check_layout,
    check_types,
)
from fmnes.storage.validity_of_setup import (
    check_constrained,
    check_injected,
    check_margin,
    check_setup,
)

_SMALL = 7  # variables of the search that shows how the arrays of a method look

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
            check_array("finished", vector, setup.mean if setup.box is None else setup.box.fixed)
        if len(result.restarts) != 1:
            raise ValueError(f"finished: expected one run each, got {len(result.restarts)}")


def _check_flight(flight: dict[str, Any], mean: Array) -> None:
    """Raise an error if the candidates in flight of an asynchronous search do not fit it."""
    check_types(flight, {"origins": np.ndarray, "y": Any})
    count = len(flight["origins"])
    check_layout("flight.origins", flight["origins"], (count, 2), np.dtype(np.int64))
    check_layout("flight.y", flight["y"], (count, mean.shape[0]), mean.dtype)
    if (flight["origins"] < 0).any():
        raise ValueError("flight.origins: expected numbers >= 0, got a negative one")


def _check_parallel(parallel: dict[str, Any], finished: int) -> None:
    """Raise an error if the runs in progress of a schedule do not fit together."""
    check_types(parallel, PARALLEL)
    if len(parallel["numbers"]) != finished or not parallel["lanes"]:
        raise ValueError(f"parallel: expected a number for each of {finished} finished runs")
    for lane in parallel["lanes"]:
        check_types(lane, LANE)
        check_search(lane["search"])
        setup, arrived = lane["search"]["setup"], lane["arrived"]
        _check_flight(lane["flight"], setup.mean)
        count, kinds = len(arrived), setup.constraints
        check_layout("parallel.arrived", arrived, (count,), np.dtype(np.int64))
        shape = (count,) if kinds is None or not count else (count, 1 + kinds.number)
        check_layout("parallel.values", lane["values"], shape, np.dtype(np.float64))
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
    check_setup(setup)
    check_constrained(setup.constraints, saved["constrained"])
    if setup.multipliers is not None and setup.constraints is not None:
        numbers = np.empty(setup.constraints.number)
        check_array("multipliers", setup.multipliers, numbers)
    check_injected(saved["injected"], setup.mean, popsize)
    dim, varies = setup.mean.shape[0], setup.settings.adapts_popsize
    _check_record(record, dim if variables is None else variables, popsize, varies=varies)
    _check_state(method, saved)


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
        check_layout(f"state.{name}", value, shape, small.dtype)
    if method.GROWING and not any(sizes[name] for name in sizes if name != "d"):
        raise ValueError(f"state: expected one of {', '.join(method.GROWING)}, got empty arrays")
    for name in ("initial", "best"):
        if saved[name] is not None:
            check_array(name, saved[name], mean)
    if (saved["margin"] is None) != (setup.discrete is None):
        raise ValueError("margin: expected one if there are discrete variables, got the opposite")
    if setup.discrete is not None:
        check_margin(saved["margin"], setup.discrete, mean)
    if saved["extra_x"] is not None:
        check_array("extra_x", saved["extra_x"], mean if setup.box is None else setup.box.fixed)
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
