"""Solvers of a user's own: objects that ask and tell, made by a function that can be imported."""

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class AskTell(Protocol):
    """One run of a solver."""

    def ask(self) -> Sequence[NDArray[np.float64]]:
        """Candidates to evaluate, one a row."""

    def tell(self, *told: Any) -> Any:
        """Take in their values: ``tell(f)``, or ``tell(x, f)`` where it needs both."""

    def stop(self) -> Any:
        """Whether this run should end."""


def takes_candidates(run: AskTell) -> bool:
    """Whether it wants ``tell(x, f)``; ``tell(f)`` otherwise."""
    needed = [
        p
        for p in inspect.signature(run.tell).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) > 1


def imported(argument: str, name: str, others: Sequence[str]) -> Callable[..., AskTell]:
    """The function that ``package.module:function`` names; ``others`` are what else would do."""
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
    if not callable(factory):
        raise TypeError(f"{argument}: expected a function {name}, got {factory!r}")
    made: Callable[..., AskTell] = factory
    return made


def begun(argument: str, name: str, factory: Callable[..., Any], **arguments: Any) -> AskTell:
    """A run that the factory begins.

    It is called by keyword: one that takes other arguments, or in another order, must not run.
    """
    try:
        run: AskTell = factory(**arguments)
    except Exception as error:  # a user's function may raise anything
        raise RuntimeError(
            f"{argument}: {name}({', '.join(arguments)}) fails: {type(error).__name__}: {error}"
        ) from error
    check(argument, name, run)
    return run


def check(argument: str, name: str, run: Any) -> None:
    """Complain about an object that cannot ask and tell."""
    missing = [part for part in ("ask", "tell", "stop") if not callable(getattr(run, part, None))]
    if missing:
        raise TypeError(
            f"{argument}: expected {name} to make objects with ask(), tell() and stop(), "
            f"got {type(run).__name__} without {' and '.join(missing)}"
        )
