"""A search on disk: a JSON header and arrays in one npz file, without pickle.

Loading such a file runs no code from it: only the classes listed here are rebuilt, and arrays
with ``allow_pickle=False``. A file is written whole under another name and then renamed, so a
crash while saving leaves the old one as it was.
"""

import dataclasses
import importlib
import json
import os
import tempfile
import zipfile
from collections.abc import Collection
from typing import IO, Any

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._bounds import Box
from fmnes._engine import Generation
from fmnes._history import History
from fmnes._result import Result, Run, Status
from fmnes._setup import Setup
from fmnes._stopping import Budget, Limits, Stopping
from fmnes._tally import Tally
from fmnes.algorithms import METHODS
from fmnes.algorithms._shared import Shape

FORMAT = 2
_HEADER = "header"
_RECORDS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (Box, Budget, Generation, Limits, Result, Run, Setup, Shape, Stopping)
}
for _name, _module in METHODS.items():
    _RECORDS[_module.Settings.__name__] = _module.Settings
    _RECORDS[f"{_name}.State"] = _module.State  # type: ignore[attr-defined]  # every module has one
_NAMES = {cls: name for name, cls in _RECORDS.items()}
_LIBRARIES = ("numpy", "torch", "jax", "array_api_strict")


def write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a dict of records, lists, dicts, numbers and arrays to ``path``, all or nothing."""
    arrays: dict[str, Any] = {}
    header = json.dumps({"format": FORMAT, "content": _encode(content, arrays)})
    arrays[_HEADER] = np.frombuffer(header.encode(), np.uint8)
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path), suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # numbers only, see _encode: nothing to pickle
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# What zip files, arrays, JSON and records raise where a bit is wrong.
_DAMAGE = (
    zipfile.BadZipFile,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)


def read(path: str | os.PathLike[str], names: Collection[str]) -> dict[str, Any]:
    """The dict with these names that `write` wrote; ValueError for any other or damaged file."""
    with open(path, "rb") as file:  # what cannot be opened is an OSError, as everywhere
        try:
            content = _read(file)
            if set(content) != set(names):
                raise ValueError(f"it holds {', '.join(content)}, not {', '.join(names)}")
        except _DAMAGE as error:
            raise ValueError(
                f"path: expected a file saved by fmnes, got {path} ({error})"
            ) from error
    return content


def _read(file: IO[bytes]) -> dict[str, Any]:
    with np.load(file, allow_pickle=False) as saved:
        arrays = {name: saved[name] for name in saved.files}  # all now: npz reads lazily
    header = json.loads(arrays.pop(_HEADER).tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']}, not {FORMAT}")
    content: dict[str, Any] = _decode(header["content"], arrays)
    return content


def _encode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """JSON for ``value``; arrays are put aside and referred to by name."""
    if value is None or isinstance(value, bool | int | float | str):
        return str(value) if isinstance(value, Status) else value
    if isinstance(value, History):
        return {"history": _encode(value.to_array(), arrays)}
    if isinstance(value, Tally):
        return {"tally": _encode(value.__getstate__(), arrays)}
    if type(value) in _NAMES:
        names = _fields(type(value))
        content = {name: _encode(getattr(value, name), arrays) for name in names}
        return {"record": _NAMES[type(value)], "fields": content}
    if isinstance(value, dict):
        return {"dict": {name: _encode(item, arrays) for name, item in value.items()}}
    if isinstance(value, list | tuple):
        items = [_encode(item, arrays) for item in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    if is_array_api_obj(value) or isinstance(value, np.generic):
        name = f"array{len(arrays)}"
        arrays[name] = np.asarray(checks.to_host(value))
        if arrays[name].dtype.kind not in "biufV":
            raise TypeError(f"cannot save an array of dtype {arrays[name].dtype}")
        library = type(value).__module__.split(".")[0].replace("jaxlib", "jax")
        return {"array": name, "library": library}
    raise TypeError(f"cannot save a {type(value).__name__}")


def _decode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The inverse of `_encode`."""
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _in_library(value["library"], arrays[value["array"]])
    if "dict" in value:
        return {name: _decode(item, arrays) for name, item in value["dict"].items()}
    if "tuple" in value:
        return tuple(_decode(item, arrays) for item in value["tuple"])
    if "history" in value:
        return History(_decode(value["history"], arrays))
    if "tally" in value:
        tally = Tally.__new__(Tally)
        tally.__setstate__(_decode(value["tally"], arrays))
        return tally
    cls = _RECORDS[value["record"]]
    content = {name: _decode(item, arrays) for name, item in value["fields"].items()}
    if cls in (Result, Run):
        content["status"] = Status(content["status"])
    return cls(**content)


def _fields(cls: type[Any]) -> tuple[str, ...]:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(cls._fields)


def _in_library(library: str, array: NDArray[Any]) -> Any:
    """The array in the library it came from, on the CPU."""
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
