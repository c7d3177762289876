"""The records of a search as JSON with named arrays, and back: the content of a file.

Only the classes listed here are created from a file.
"""

import dataclasses
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray

from fmnes._arrays import to_host
from fmnes.algorithms import METHODS
from fmnes.algorithms import UPGRADES as METHOD_UPGRADES
from fmnes.algorithms._records import Shape
from fmnes.arguments.setup import Setup
from fmnes.constraints.constrained import Constrained
from fmnes.constraints.kinds import Kinds
from fmnes.constraints.lagrangian import Lagrangian
from fmnes.engines import Generation
from fmnes.points.injected import Injected
from fmnes.records.history import History
from fmnes.records.parts import Noise, Run
from fmnes.records.record import Limits, Record
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Budget, Stopping
from fmnes.storage.contents import check_fields
from fmnes.storage.fingerprint import Fingerprint
from fmnes.variables.bounds import Box
from fmnes.variables.discrete import Discrete, Margin
from fmnes.variables.space import Space

# The keys are the names in the file. They must not change, even if a class is renamed.
_RECORDS: dict[str, type[Any]] = {
    "Box": Box,
    "Constrained": Constrained,
    "Budget": Budget,
    "Discrete": Discrete,
    "Fingerprint": Fingerprint,
    "Generation": Generation,
    "Injected": Injected,
    "Kinds": Kinds,
    "Lagrangian": Lagrangian,
    "Limits": Limits,
    "Noise": Noise,
    "Margin": Margin,
    "Result": Result,
    "Run": Run,
    "Setup": Setup,
    "Shape": Shape,
    "Stopping": Stopping,
}
for _name, _module in METHODS.items():
    _RECORDS[_module.Settings.__name__] = _module.Settings
    _RECORDS[f"{_name}.State"] = _module.State
_RECORDS_OF_TYPES = (
    Box, Budget, Constrained, Discrete, Fingerprint, Generation, Injected, Kinds, Lagrangian,
    Limits, Margin,
    Result, Run, Setup, Shape,
)  # fmt: skip
# Records that files of earlier formats hold without some of their fields.
_UPGRADES: dict[type[Any], Callable[[dict[str, Any]], dict[str, Any]]] = {
    Result: lambda fields: {"stds": math.nan * fields["x"]} | fields,  # not in formats 3 and 4
    **METHOD_UPGRADES,
}
_NAMES = {cls: name for name, cls in _RECORDS.items()}
_LIBRARIES = ("numpy", "torch", "jax", "array_api_strict")


def encode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return JSON for ``value``; arrays are added to ``arrays`` and referred to by name."""
    if value is None or isinstance(value, bool | int | float | str):
        return str(value) if isinstance(value, Status) else value
    if isinstance(value, History):
        return {"history": encode(value.to_saved(), arrays)}
    if isinstance(value, Space):
        return {"space": value.to_dict()}
    if isinstance(value, Record):
        return {"tally": encode(value.__getstate__(), arrays)}
    if type(value) in _NAMES:
        fields = vars(value) if dataclasses.is_dataclass(value) else value._asdict()
        content = {name: encode(item, arrays) for name, item in fields.items()}
        return {"record": _NAMES[type(value)], "fields": content}
    if isinstance(value, dict):
        return {"dict": {name: encode(item, arrays) for name, item in value.items()}}
    if isinstance(value, list | tuple):
        items = [encode(item, arrays) for item in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    if is_array_api_obj(value) or isinstance(value, np.generic):
        name = f"array{len(arrays)}"
        arrays[name] = np.asarray(to_host(value))
        if arrays[name].dtype.kind not in "biufV":
            raise TypeError(f"cannot save an array of dtype {arrays[name].dtype}")
        library = type(value).__module__.split(".")[0].replace("jaxlib", "jax")
        return {"array": name, "library": library}
    raise TypeError(f"cannot save a {type(value).__name__}")


def decode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _in_library(value["library"], arrays[value["array"]])
    if "dict" in value:
        return {name: decode(item, arrays) for name, item in value["dict"].items()}
    if "tuple" in value:
        return tuple(decode(item, arrays) for item in value["tuple"])
    if "history" in value:
        saved = decode(value["history"], arrays)
        return History.from_saved(saved) if isinstance(saved, dict) else History(saved)  # format 3
    if "space" in value:
        return Space.from_dict(value["space"])
    if "tally" in value:
        record = Record.__new__(Record)
        record.__setstate__(decode(value["tally"], arrays))
        return record
    cls = _RECORDS[value["record"]]
    content = {name: decode(item, arrays) for name, item in value["fields"].items()}
    if cls in (Result, Run):
        content["status"] = Status(content["status"])
    record = cls(**_UPGRADES[cls](content) if cls in _UPGRADES else content)
    if cls in _RECORDS_OF_TYPES:
        check_fields(record)
    return record


def _in_library(library: str, array: NDArray[Any]) -> Any:
    """Return the array in the library that it came from, on the CPU."""
    if library not in _LIBRARIES:
        raise ValueError(f"its arrays are of {library!r}, not of {', '.join(_LIBRARIES)}")
    if library == "numpy":
        return array
    try:
        module = importlib.import_module("jax.numpy" if library == "jax" else library)
    except ImportError:
        raise ImportError(
            f"this search was saved with {library} arrays; install {library} to load it"
        ) from None
    return module.asarray(array)
