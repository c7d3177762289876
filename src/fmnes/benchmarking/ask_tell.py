"""Solvers of a user: objects with ask, tell and stop, made by a function that can be imported."""

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks


class AskTell(Protocol):
    """One run of a solver."""

    def ask(self) -> Sequence[NDArray[np.float64]]:
        """Return candidates to evaluate, one per row."""

    def tell(self, x_or_f: Any, f: Any = None, /) -> Any:
        """Take in their values: ``tell(f)``, or ``tell(x, f)`` if it needs both."""

    def stop(self) -> Any:
        """Return whether this run should end."""


def tell_both(run: AskTell) -> Callable[[Any, Any], Any]:
    """Return a function of x and f that calls ``run.tell(x, f)`` or ``run.tell(f)``."""
    needed = [
        p
        for p in inspect.signature(run.tell).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return run.tell if len(needed) > 1 else lambda x, f: run.tell(f)


def imported(argument: str, name: str, others: Sequence[str]) -> Callable[..., AskTell]:
    """Return the function that ``package.module:function`` names; ``others`` is for the message."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        known = ", ".join(others)
        raise ValueError(
            f"{argument}: expected one of {known} or package.module:factory, got {name!r}"
        )
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{argument}: {name!r} cannot be imported: {error}") from error
    return checks.function(f"{argument}: {name}", factory)


def start(argument: str, name: str, factory: Callable[..., Any], **arguments: Any) -> AskTell:
    """Return a new run of a solver.

    The factory is called by keyword, so that one with other arguments fails at once.
    """
    try:
        run: AskTell = factory(**arguments)
    except Exception as error:  # a user's function may raise anything
        raise RuntimeError(
            f"{argument}: {name}({', '.join(arguments)}) fails: {type(error).__name__}: {error}"
        ) from error
    missing = [part for part in ("ask", "tell", "stop") if not callable(getattr(run, part, None))]
    if missing:
        raise TypeError(
            f"{argument}: expected {name} to make objects with ask(), tell() and stop(), "
            f"got {type(run).__name__} without {' and '.join(missing)}"
        )
    return run
