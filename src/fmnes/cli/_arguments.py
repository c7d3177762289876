"""Convert the words after a flag, or the content of a file, to arguments of `minimize`."""

import argparse
import ast
import dataclasses
import importlib
import json
import operator
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from fmnes import BIPOP, IPOP, METHODS, Space
from fmnes import _checks as checks
from fmnes.cli._errors import UsageError

Pair = list[float | None]  # low and high; None, JSON's null, where there is no bound


def numbers(flag: str, words: Sequence[str]) -> float | list[float]:
    """Return one number or a list: from ``0.5``, ``1 2 3``, ``1,2,3`` or ``@FILE``."""
    rows = _rows(flag, words)
    try:
        found: list[float] = np.hstack([np.ravel(row) for row in rows]).astype(float).tolist()
    except (TypeError, ValueError) as error:
        if words[0].startswith("@"):
            by_name = isinstance(rows, dict)
            why = "values by name need --space" if by_name else error if rows else "it is empty"
            raise UsageError(
                f"{flag}: expected a file of numbers, got {words[0][1:]} ({why})"
            ) from None
        raise UsageError(
            f"{flag}: expected numbers, or @FILE, got {' '.join(words)!r}{_hint_of_file(words)}"
        ) from None
    return found[0] if len(found) == 1 else found


def deviations(words: Sequence[str], *, by_name: bool) -> float | list[float] | dict[str, float]:
    """Return --sigma0: numbers; with --space also a dict, from ``lr=0.7 layers=2``."""
    if not by_name or not any("=" in word for word in words):
        return numbers("--sigma0", words)
    found = {}
    for word in words:
        name, _, value = word.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"--sigma0: expected NAME=NUMBER, got {word!r}") from None
    return found


def bounds(words: Sequence[str], dim: int) -> Pair | list[Pair]:
    """Return one pair for all variables, from ``-5 5``; or from a file one for each variable."""
    rows = _rows("--bounds", words)
    try:
        pairs = [[_bound(low, -np.inf), _bound(high, np.inf)] for low, high in rows]
    except (TypeError, ValueError):
        pairs = []
    if len(pairs) not in (1, dim):
        found = f" with {checks.count(len(pairs), 'pair')}" if pairs else ""
        raise UsageError(
            f"--bounds: expected LOW HIGH, or @FILE with such a pair for each of {dim} variables, "
            f"got {' '.join(words)!r}{found}{_hint_of_file(words)}"
        )
    for low, high in pairs:
        if low is not None and high is not None and low > high:
            raise UsageError(f"--bounds: expected LOW <= HIGH, got {low:g} {high:g}")
    return pairs[0] if len(pairs) == 1 else pairs


def _hint_of_file(words: Sequence[str]) -> str:
    """Return how to write the name of a file, if that is what the words are."""
    return f" (for the file write @{words[0]})" if os.path.isfile(words[0]) else ""


def _bound(value: Any, none: float) -> float | None:
    return None if value is None or float(value) == none else float(value)


def _rows(flag: str, words: Sequence[str]) -> Any:
    """Return the words as one row; or the rows of an .npy, .json or text file (``@FILE``)."""
    lines = [",".join(words)]
    if words[0].startswith("@"):
        path = Path(words[0][1:])
        try:
            if path.suffix == ".npy":
                return np.load(path, allow_pickle=False).tolist()
            if path.suffix == ".json":
                return json.loads(path.read_text())
            lines = [line.partition("#")[0] for line in path.read_text().splitlines()]
        except (OSError, ValueError) as error:
            raise UsageError(f"{flag}: expected a file of numbers, got {path} ({error})") from None
    rows = [line.replace(",", " ").split() for line in lines]
    return [row for row in rows if row]


def space(path: str, parsed: argparse.Namespace) -> Space:
    """Return the named variables of a JSON file; ``--x0`` may hold their starting values."""
    for name in ("dim", "bounds", "integrality"):
        if getattr(parsed, name) is not None:
            raise UsageError(f"--{name}: expected none with --space, got {getattr(parsed, name)}")
    try:
        found = Space.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(
            f"--space: expected a JSON file of variables, got {path} ({error})"
        ) from None
    if parsed.x0 is None:
        return found
    expected = "--x0: expected @FILE.json with values by name, such as best.json, with --space"
    if len(parsed.x0) != 1 or not parsed.x0[0].startswith("@"):
        raise UsageError(f"{expected}, got {' '.join(parsed.x0)!r}")
    try:
        values = json.loads(Path(parsed.x0[0][1:]).read_text(encoding="utf-8"))
        return Space(found.variables, values)
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(f"{expected}, got {parsed.x0[0]} ({error})") from None


def settings(method: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a method that ``NAME=VALUE`` words give."""
    if method not in METHODS:
        hint = checks.did_you_mean(method, METHODS)
        raise UsageError(f"--method: expected one of {', '.join(METHODS)}, got {method!r}{hint}")
    names = [field.name for field in dataclasses.fields(METHODS[method].Settings)]
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in names:
            raise UsageError(
                f"--set: expected NAME=VALUE with a setting of {method} "
                f"({', '.join(names) or 'it has none'}), got {word!r}"
            )
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):  # a word without quotes
            found[name] = value
    return found


def restarts(text: str) -> IPOP | BIPOP:
    """Return the restart schedule that ``9`` or ``ipop:9``, which are IPOP, or ``bipop:9`` name."""
    kind, colon, count = text.rpartition(":")
    kinds: dict[str, type[IPOP] | type[BIPOP]] = {"": IPOP, "ipop": IPOP, "bipop": BIPOP}
    if (colon and not kind) or kind not in kinds or not count.isdecimal():
        raise UsageError(f"--restarts: expected a number or bipop:NUMBER, got {text!r}")
    return kinds[kind](int(count))


def function(text: str) -> Callable[..., Any]:
    """Return the function that ``package.module:function`` names."""
    expected = f"function: expected package.module:function, got {text!r}"
    if " " in text or (os.path.isfile(text) and not text.endswith(".py")):
        raise UsageError(f"{expected} (for a program: --command {shlex.quote(text)})")
    found = _named(text, expected)
    if not callable(found):
        raise UsageError(f"{expected}, which is of type {type(found).__name__}")
    return found


def constraints(text: str) -> Any:
    """Return the constraints that ``2`` or ``package.module:name`` stand for.

    A function returns numbers that have to be <= 0. Other objects are what `minimize` accepts.
    """
    if text.isdecimal():
        return int(text)
    found = _named(
        text, f"--constraints: expected a number, or package.module:function, got {text!r}"
    )
    return SimpleNamespace(fun=found, lb=-np.inf, ub=0.0) if callable(found) else found


def _named(text: str, expected: str) -> object:
    """Return the object that ``package.module:name`` names; ``expected`` begins the errors."""
    module, colon, name = text.partition(":")
    if not colon or not name or not module or module.endswith(".py") or "/" in module:
        raise UsageError(expected + _hint_of_name(text))
    try:
        found: object = operator.attrgetter(name)(importlib.import_module(module))
    except (ModuleNotFoundError, AttributeError) as error:
        raise UsageError(f"{expected} ({error})") from error
    return found


def _hint_of_name(text: str) -> str:
    """Return how to write what is not of the form package.module:name."""
    path, _, name = text.partition(":")
    if ".py" in path:
        return f" (for a file: {Path(path).stem}:{name or 'function'}, in its folder)"
    if not name and os.path.isfile(f"{path}.py"):
        return f" (for the file {path}.py: {path}:function)"
    module, _, last = path.rpartition(".")
    return f" (did you mean '{module}:{last}'?)" if module and not name else ""
