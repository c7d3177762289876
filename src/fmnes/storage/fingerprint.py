"""A fingerprint of the objective, which shows that a checkpoint was made with other code."""

import contextlib
import functools
import hashlib
import inspect
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple


class Fingerprint(NamedTuple):
    """What identifies the code of a function, for one version of Python."""

    name: str
    python: str  # another version compiles the same source to other code
    code: str  # a hash

    def differs_from(self, other: "Fingerprint") -> bool:
        """Return whether two fingerprints are certainly of different code."""
        return self.python == other.python and self.code != other.code


def fingerprint(fun: Callable[..., Any]) -> Fingerprint | None:
    """Return the fingerprint of a function's own code; None for a callable without Python code.

    Neither data (arguments, attributes, defaults) nor the functions that it calls count: these may
    change from run to run of the same program.
    """
    with contextlib.suppress(Exception):  # the attributes of a callable object can do anything
        code = _code(fun)
        if code is not None:
            digest = hashlib.sha256(repr(_content(code)).encode()).hexdigest()
            return Fingerprint(code.co_qualname, sys.implementation.cache_tag or "", digest[:16])
    return None


def _code(fun: Any) -> CodeType | None:
    """Return the code behind partial objects, decorators, bound methods and callable objects."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = inspect.unwrap(fun)
    fun = getattr(fun, "__func__", fun)
    if not hasattr(fun, "__code__"):
        fun = getattr(type(fun).__call__, "__func__", type(fun).__call__)
    code = getattr(fun, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return what decides the values of a function: no line numbers, file names or variables."""
    return code.co_code, code.co_names, code.co_freevars, [_plain(c) for c in code.co_consts]


def _plain(constant: Any) -> Any:
    """Return a constant in a form whose text is the same in every process."""
    if isinstance(constant, CodeType):
        return _content(constant)
    if isinstance(constant, tuple):
        return [_plain(item) for item in constant]
    if isinstance(constant, frozenset):  # its order differs from process to process
        return sorted(repr(_plain(item)) for item in constant)
    return constant
