"""What is typed after a flag, or stands in a file, as the values that `minimize` takes."""

import ast
import dataclasses
import importlib
import json
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fmnes import BIPOP, IPOP, METHODS
from fmnes.cli._errors import UsageError

Pair = list[float | None]  # None where there is no bound


def numbers(flag: str, words: Sequence[str]) -> float | list[float]:
    """One number, or a list: ``0.5``, ``1 2 3``, ``1,2,3``, or ``@file``."""
    if len(words) == 1 and words[0].startswith("@"):
        return _vector(flag, _content(flag, words[0][1:]), words[0])
    found = _floats(flag, ",".join(words).replace(",", " ").split(), " ".join(words))
    return found[0] if len(found) == 1 else found


def bounds(words: Sequence[str], dim: int) -> Pair | list[Pair]:
    """One pair for all variables, ``-5 5`` or ``-5,5``; or a file with a pair for each."""
    if len(words) == 1 and words[0].startswith("@"):
        pairs = _pairs(words[0])
        if len(pairs) != dim:
            raise UsageError(f"--bounds: expected {dim} pairs in {words[0][1:]}, got {len(pairs)}")
        return pairs
    found = _floats("--bounds", ",".join(words).replace(",", " ").split(), " ".join(words))
    if len(found) != 2:
        raise UsageError(
            f"--bounds: expected low and high, or @file with a pair for each variable, got "
            f"{' '.join(words)}"
        )
    return _pair(found)


def _pairs(word: str) -> list[Pair]:
    rows = _content("--bounds", word[1:])
    try:
        return [_pair([float(_unbounded(k, side)) for k, side in enumerate(row)]) for row in rows]
    except (TypeError, ValueError):
        raise UsageError(
            f"--bounds: expected rows of low and high in {word[1:]}, got other things"
        ) from None


def _unbounded(side: int, value: Any) -> Any:
    """JSON's null means no bound."""
    return (-np.inf, np.inf)[side] if value is None else value


def _pair(found: Sequence[float]) -> Pair:
    low, high = found
    return [None if low == -np.inf else low, None if high == np.inf else high]


def _floats(flag: str, words: Sequence[str], came: str) -> list[float]:
    try:
        found = [float(word) for word in words]
    except ValueError:
        found = []
    if not found:
        raise UsageError(f"{flag}: expected numbers, or @file, got {came!r}")
    return found


def _vector(flag: str, content: Any, word: str) -> list[float]:
    """Numbers in any arrangement of lines."""
    try:
        vector = [float(value) for value in np.hstack([np.ravel(row) for row in content])]
    except (TypeError, ValueError):
        vector = []
    if not vector:
        raise UsageError(f"{flag}: expected a file of numbers, got {word[1:]}")
    return vector


def _content(flag: str, name: str) -> Any:
    """Of an .npy file, a .json file, or text: rows of words, with # for comments."""
    path = Path(name)
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False).tolist()
        if path.suffix == ".json":
            return json.loads(path.read_text())
        lines = [line.partition("#")[0] for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{flag}: expected a file of numbers, got {name} ({why})") from None
    return [line.replace(",", " ").split() for line in lines if line.strip()]


def settings(method: str, words: Sequence[str]) -> dict[str, Any]:
    """``name=value`` words as the settings of a method."""
    if method not in METHODS:
        raise UsageError(f"--method: expected one of {', '.join(METHODS)}, got {method!r}")
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
        except (ValueError, SyntaxError):  # a word
            found[name] = value
    return found


def restarts(text: str) -> IPOP | BIPOP:
    """``9``, which is IPOP, or ``bipop:9``."""
    kind, colon, count = text.rpartition(":")
    kinds: dict[str, type[IPOP] | type[BIPOP]] = {"": IPOP, "ipop": IPOP, "bipop": BIPOP}
    if (colon and not kind) or kind not in kinds or not count.isdecimal():
        raise UsageError(f"--restarts: expected a number or bipop:NUMBER, got {text!r}")
    return kinds[kind](int(count))


def function(text: str) -> Callable[..., Any]:
    """The function that ``package.module:function`` names."""
    expected = "expected package.module:function"
    module, colon, name = text.partition(":")
    if not colon or not name or module.endswith(".py") or "/" in module:
        hint = ""
        if ".py" in module:
            hint = f" (for a file: {Path(module).stem}:{name or 'function'}, in its folder)"
        raise UsageError(f"function: {expected}, got {text!r}{hint}")
    try:
        found = operator.attrgetter(name)(importlib.import_module(module))
    except (ModuleNotFoundError, AttributeError) as error:
        raise UsageError(f"function: {expected}, got {text!r} ({error})") from error
    if not callable(found):
        raise UsageError(f"function: {expected}, got {text!r}, a {type(found).__name__}")
    return found  # type: ignore[no-any-return]  # callable() narrows Any to Any
