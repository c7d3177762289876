"""The options of a run: made from the arguments of ``fmnes run``, kept as config.json."""

import argparse
import dataclasses
import datetime
import os
import secrets
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import fmnes
from fmnes import _checks as checks
from fmnes.algorithms import MethodName
from fmnes.cli import _arguments as arguments
from fmnes.cli._errors import UsageError, arguments_as_flags
from fmnes.cli._program import ExternalProgram


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run was asked for, as values that JSON knows.

    Fields that are arguments of `minimize` or `Evaluator` have their names.
    """

    version: str  # of fmnes
    created: str
    cwd: str  # where functions, programs and their files are looked for
    function: str | None
    command: str | None
    dim: int
    x0: float | list[float] | None  # None with a space
    sigma0: float | list[float] | dict[str, float] | None
    bounds: Any  # None, a pair, or a list of pairs
    integrality: Any = None  # None, 0 or 1, or a list of them
    space: Any = None  # None, or the variables as `Space.from_dict` reads them
    constraints: str | None = None  # a number, or package.module:name
    method: MethodName
    settings: dict[str, Any]
    popsize: int | None
    ftarget: float | None
    maxfevals: int | None
    maxiter: int | None
    timeout: float | None
    vectorized: bool
    workers: int | None
    asynchronous: bool = False
    restarts: str
    rng: int
    checkpoint: str | None  # None: in the folder of the run
    evaluation_timeout: float | None
    retries: int
    on_error: Literal["raise", "penalize"]

    def __post_init__(self) -> None:
        for name in ("ftarget", "timeout"):  # JSON has no infinity: config.json holds "inf"
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, float(value))

    @classmethod
    def from_arguments(cls, parsed: argparse.Namespace) -> "RunOptions":
        """Read the arguments of ``fmnes run``; check what needs neither objective nor search."""
        _check(parsed)
        space = parsed.space and arguments.space(parsed.space, parsed)
        if space is None and parsed.x0 is None:
            raise UsageError("--x0: expected numbers, or --space FILE instead, got neither")
        x0 = np.zeros(space.dim) if space else arguments.numbers("--x0", parsed.x0)
        if space is None and parsed.dim is None and np.size(x0) == 1:
            raise UsageError(
                "--dim: expected the number of variables, because --x0 is one number for all of "
                "them, got none; add --dim 10 for ten variables, --dim 1 for one"
            )
        dim = parsed.dim or np.size(x0)
        if np.size(x0) not in (1, dim):
            raise UsageError(f"--x0: expected one number or {dim} (--dim), got {np.size(x0)}")
        sigma0 = parsed.sigma0 and arguments.deviations(parsed.sigma0, by_name=space is not None)
        if isinstance(sigma0, list) and len(sigma0) != dim:
            raise UsageError(
                f"--sigma0: expected one number or {dim}, one for each variable, got {len(sigma0)}"
            )
        arguments.restarts(parsed.restarts)
        names = {field.name for field in dataclasses.fields(cls)}
        given = {name: value for name, value in vars(parsed).items() if name in names}
        given |= {
            "version": fmnes.__version__,
            "created": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "cwd": os.getcwd(),
            "x0": None if space else x0,
            "space": space and space.to_dict(),
            "dim": dim,
            "sigma0": sigma0,
            "bounds": parsed.bounds and arguments.bounds(parsed.bounds, dim),
            "integrality": parsed.integrality
            and arguments.numbers("--integrality", parsed.integrality),
            "settings": arguments.settings(parsed.method, parsed.set),
            "rng": secrets.randbits(32) if parsed.rng is None else parsed.rng,
            "checkpoint": parsed.checkpoint and os.path.abspath(parsed.checkpoint),
            "on_error": parsed.on_error or ("penalize" if parsed.command else "raise"),
        }
        return cls(**given)

    @classmethod
    def from_saved(cls, content: Any) -> "RunOptions":
        """Return the options of config.json; TypeError or ValueError if it was changed badly."""
        if not isinstance(content, dict):
            raise TypeError(f"expected names and values, got {type(content).__name__}")
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in content.keys() - fields:
            raise ValueError(f"{name}: expected no such name{checks.did_you_mean(name, fields)}")
        for name, field in fields.items():
            if name not in content and field.default is dataclasses.MISSING:
                raise ValueError(f"{name}: expected a value, got none")
        options = cls(**content)
        for name, kind in typing.get_type_hints(cls).items():
            if not _fits(value := getattr(options, name), kind):
                shown = kind.__name__ if isinstance(kind, type) else str(kind)
                shown = shown.replace("typing.", "")
                raise TypeError(f"{name}: expected {shown}, got {value!r}")
        if isinstance(options.x0, list) and len(options.x0) != options.dim:
            raise ValueError(f"x0: expected {options.dim} numbers (dim), got {len(options.x0)}")
        return options

    @property
    def title(self) -> str:
        """The function or the command that is minimized."""
        return self.function or self.command or ""

    # === The arguments of `minimize` ===

    def search(self) -> dict[str, Any]:
        """Return the arguments that `fmnes.minimize` and `fmnes.Optimizer` share."""
        try:
            method = fmnes.METHODS[self.method].Settings(**self.settings)
        except (TypeError, ValueError) as error:
            raise UsageError(f"--set {error}") from error
        pairs = self.bounds
        if pairs is not None and not isinstance(pairs[0], list):
            pairs = [pairs] * self.dim
        start: Any = np.broadcast_to(np.asarray(self.x0 or 0, np.float64), (self.dim,))
        return {
            "x0": fmnes.Space.from_dict(self.space) if self.space else start,
            "sigma0": self.sigma0,
            "method": method,
            "bounds": pairs,
            "integrality": self.integrality,
            "popsize": self.popsize,
            "rng": self.rng,
            "ftarget": self.ftarget,
            "maxfevals": self.maxfevals,
            "maxiter": self.maxiter,
            "timeout": self.timeout,
        }

    def objective(self, folder: Path) -> Callable[..., Any]:
        """Return the Python function, or the program, which keeps its files in ``folder``."""
        if self.command is not None:
            count = self.constraints_of_search()
            printed = count if isinstance(count, int) else 0
            return ExternalProgram.parse(self.command, self.cwd, str(folder), printed)
        return arguments.function(self.function or "")

    def constraints_of_search(self) -> Any:
        """Return the constraints as `minimize` takes them."""
        return () if self.constraints is None else arguments.constraints(self.constraints)

    def evaluator(self) -> fmnes.Evaluator | None:
        """Return what evaluates candidates; None for a vectorized function.

        A program, or an evaluation with a time limit, needs a worker process, which can be killed.
        """
        if self.vectorized:
            if self.workers is not None:
                raise UsageError(f"--workers: expected none with --vectorized, got {self.workers}")
            if self.asynchronous:
                raise UsageError("--asynchronous: expected none with --vectorized, got it")
            return None
        apart = self.command is not None or self.evaluation_timeout is not None
        with arguments_as_flags():
            return fmnes.Evaluator(
                1 if self.workers is None and apart else self.workers,
                timeout=self.evaluation_timeout,
                retries=self.retries,
                on_error=self.on_error,
                asynchronous=self.asynchronous,
            )


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value that comes from JSON is of the type of a field."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(kind))
    if origin is Literal:
        return value in typing.get_args(kind)
    if kind is Any or isinstance(value, bool):
        return kind in (Any, bool)
    return isinstance(value, int | float if kind is float else origin or kind)


def _check(parsed: argparse.Namespace) -> None:
    """Check that there is one objective, and the arguments that `minimize` does not see."""
    if (parsed.function is None) == (parsed.command is None):
        expected = "function: expected package.module:function or --command"
        if parsed.function is None:
            raise UsageError(f"{expected}, got neither")
        raise UsageError(
            f"{expected}, got both, {parsed.function!r} and {parsed.command!r}; "
            "a command of several words needs quotes"
        )
    if parsed.vectorized and (parsed.command or parsed.evaluation_timeout or parsed.retries):
        raise UsageError(
            "--vectorized: expected a Python function, and neither --evaluation-timeout nor "
            "--retries, which act on single candidates; got one of them"
        )
    with arguments_as_flags():
        if parsed.dim is not None:
            checks.integer("dim", parsed.dim, least=1)
        if parsed.rng is not None:
            checks.integer("rng", parsed.rng, least=0)
        if parsed.evaluation_timeout is not None:
            checks.finite("evaluation_timeout", parsed.evaluation_timeout, above=0)
        if parsed.checkpoint:
            checks.path_to_write("checkpoint", parsed.checkpoint)
