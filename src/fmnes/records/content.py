"""The fields of a Result as numbers, texts, lists and dicts, which JSON can hold, and back."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fmnes._arrays import Array, to_host
from fmnes._json import from_json, to_json
from fmnes._version import __version__
from fmnes.algorithms._records import Shape
from fmnes.records.history import COLUMNS, History
from fmnes.records.parts import Noise, Run
from fmnes.records.status import Status
from fmnes.variables.space import Space, plain

_FORMAT = 3  # a later version of fmnes reads the earlier ones


def to_content(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `Result.to_dict` returns, from the fields of a Result."""
    space, noise, history = fields["space"], fields["noise"], fields["history"].to_array()
    names = ("x", "mean", "stds", "fun", "sigma", "constr_violation")
    return {
        "format": _FORMAT,
        "fmnes": __version__,
        **fields,
        **{name: to_json(fields[name]) for name in names},
        "dtype": str(np.asarray(to_host(fields["x"])).dtype),
        "status": str(fields["status"]),
        **{name: _json_or_none(fields[name]) for name in ("constr", "multipliers")},
        "space": None if space is None else space.to_dict(),
        "noise": noise and {name: to_json(value) for name, value in vars(noise).items()},
        "best": None if space is None else plain(space.values(fields["x"])),
        "history": {name: to_json(history[name]) for name in COLUMNS},
        "restarts": [
            {**vars(run), "fun": to_json(run.fun), "status": str(run.status)}
            for run in fields["restarts"]
        ],
        "shape": {name: _json_or_none(part) for name, part in fields["shape"]._asdict().items()},
    }


def _json_or_none(array: Array | None) -> Any:
    return None if array is None else to_json(array)


def from_content(content: Any) -> dict[str, Any]:
    """Return the fields of a Result that `to_content` described; its arrays are NumPy arrays."""
    if not isinstance(content, Mapping) or "format" not in content:
        hint = ""
        if isinstance(content, Mapping) and "status" in content:
            hint = "; the result.json of `fmnes run` is a summary, which json.load reads"
        raise TypeError(f"content: expected a dict of Result.to_dict, got {content!r:.60}{hint}")
    if content["format"] not in range(1, _FORMAT + 1):
        raise ValueError(
            f"content: expected format 1 to {_FORMAT}, got {content['format']!r}, which fmnes "
            f"{content.get('fmnes')} wrote; this is fmnes {__version__}"
        )
    try:
        return _read(content)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"content: expected a dict of Result.to_dict, got a damaged one ({error!r})"
        ) from error


def _read(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Result that `Result.to_dict` described."""
    dtype, status = np.dtype(content["dtype"]), Status(content["status"])
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype: expected float32 or float64, got {dtype}")
    x, mean = (from_json(content[name], dtype) for name in ("x", "mean"))
    stds = from_json(content["stds"], dtype) if "stds" in content else math.nan * x  # format 1
    for name, vector in (("mean", mean), ("stds", stds)):
        if vector.shape != x.shape:
            raise ValueError(f"{name}: expected {len(x)} numbers, got {len(vector)}")
    columns = {name: from_json(content["history"][name], kind) for name, kind in COLUMNS.items()}
    shape = {
        name: None if part is None else from_json(part, dtype, ndim=2 if name == "C" else 1)
        for name, part in content["shape"].items()
    }
    return {
        **{name: content[name] for name in ("success", "message", "first_error")},
        **{name: int(content[name]) for name in ("nfev", "nit", "nfailed")},
        **{name: float(content[name]) for name in ("fun", "sigma")},
        "constr_violation": float(content.get("constr_violation", 0.0)),  # format 3 on
        **{
            name: None if content.get(name) is None else from_json(content[name], np.float64)
            for name in ("constr", "multipliers")
        },
        "x": x,
        "mean": mean,
        "stds": stds,
        "status": status,
        "history": History.from_columns(columns),
        "restarts": tuple(
            Run(**{**run, "fun": float(run["fun"]), "status": Status(run["status"])})
            for run in content["restarts"]
        ),
        "shape": Shape(**shape),
        "space": None if content.get("space") is None else Space.from_dict(content["space"]),
        "noise": _read_noise(content.get("noise")),
    }


def _read_noise(content: Mapping[str, Any] | None) -> Noise | None:
    if content is None:
        return None
    numbers = {name: float(value) for name, value in content.items() if name != "n"}
    return Noise(n=int(content["n"]), **numbers)
