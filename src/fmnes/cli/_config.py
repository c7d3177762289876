"""What a run was asked for: made from the options of ``fmnes run``, kept as config.json."""

import dataclasses
import datetime
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fmnes
from fmnes.cli import _arguments as arguments
from fmnes.cli._errors import UsageError, arguments_as_flags
from fmnes.cli._program import Program


@dataclass(frozen=True, kw_only=True)
class Config:
    """Plain values only. `minimize`'s arguments have their names there."""

    version: str  # of fmnes
    created: str
    cwd: str  # where functions, programs and their files are looked for
    function: str | None
    command: str | None
    dim: int
    x0: float | list[float]
    sigma0: float | list[float]
    bounds: Any  # None, a pair, or a list of pairs
    method: str
    settings: dict[str, Any]
    popsize: int | None
    ftarget: float | None
    maxfevals: int | None
    maxiter: int | None
    timeout: float | None
    vectorized: bool
    workers: int | None
    restarts: str
    rng: int
    checkpoint: str | None  # None: in the folder of the run
    evaluation_timeout: float | None
    retries: int
    on_error: str

    @classmethod
    def from_options(cls, options: Any) -> "Config":
        """Read and check what can be checked without the objective."""
        if (options.function is None) == (options.command is None):
            came = "neither" if options.function is None else "both"
            raise UsageError(
                f"function: expected package.module:function first, or --command, got {came}"
            )
        if options.vectorized and (
            options.command or options.evaluation_timeout or options.retries
        ):
            raise UsageError(
                "--vectorized: expected a Python function without --evaluation-timeout and "
                "--retries, which go by the candidate, got one of them"
            )
        x0 = arguments.numbers("--x0", options.x0)
        dim = options.dim or (len(x0) if isinstance(x0, list) else 1)
        if isinstance(x0, list) and len(x0) != dim:
            raise UsageError(f"--x0: expected one number or {dim} (--dim), got {len(x0)}")
        arguments.restarts(options.restarts)
        given = {
            field.name: getattr(options, field.name)
            for field in dataclasses.fields(cls)
            if field.name in options
        }
        given |= {
            "x0": x0,
            "dim": dim,
            "sigma0": arguments.numbers("--sigma0", options.sigma0),
            "bounds": options.bounds and arguments.bounds(options.bounds, dim),
            "rng": secrets.randbits(32) if options.rng is None else options.rng,
            "checkpoint": options.checkpoint and os.path.abspath(options.checkpoint),
            "on_error": options.on_error or ("penalize" if options.command else "raise"),
        }
        return cls(
            version=fmnes.__version__,
            created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            cwd=os.getcwd(),
            settings=arguments.settings(options.method, options.set),
            **given,
        )

    @classmethod
    def read(cls, path: Path) -> "Config":
        """What `write` has written."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, TypeError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(
                f"DIR: expected the folder of a run, got {path.parent} ({path.name}: {why})"
            ) from None

    def write(self, path: Path) -> None:
        """As JSON, all or nothing."""
        write_text(path, json.dumps(dataclasses.asdict(self), indent=1) + "\n")

    @property
    def title(self) -> str:
        """The objective in a few words."""
        return self.function or self.command or ""

    # === What `minimize` takes ===

    def start(self) -> NDArray[np.float64]:
        """The vector x0."""
        return np.broadcast_to(np.asarray(self.x0, np.float64), (self.dim,)).copy()

    def search(self) -> dict[str, Any]:
        """The arguments that `fmnes.Optimizer` takes, too."""
        try:
            method = fmnes.METHODS[self.method].Settings(**self.settings)
        except (TypeError, ValueError) as error:
            raise UsageError(f"--set {error}") from error
        pairs = self.bounds
        if pairs is not None and not isinstance(pairs[0], list):
            pairs = [pairs] * self.dim
        names = ("popsize", "rng", "ftarget", "maxfevals", "maxiter", "timeout")
        return {
            "x0": self.start(),
            "sigma0": self.sigma0,
            "method": method,
            "bounds": pairs,
            **{name: getattr(self, name) for name in names},
        }

    def objective(self, folder: Path) -> Callable[..., Any]:
        """The Python function, or the program; it may use ``folder`` for its files."""
        if self.command is not None:
            return Program.parse(self.command, self.cwd, str(folder))
        return arguments.function(self.function or "")

    def evaluator(self) -> fmnes.Evaluator | None:
        """How candidates are evaluated: programs, and what is timed, in processes of their own."""
        if self.vectorized:
            if self.workers is not None:
                raise UsageError(f"--workers: expected none with --vectorized, got {self.workers}")
            return None
        apart = self.command is not None or self.evaluation_timeout is not None
        workers = 1 if self.workers is None and apart else self.workers
        with arguments_as_flags():
            return fmnes.Evaluator(
                workers,
                timeout=self.evaluation_timeout,
                retries=self.retries,
                on_error=self.on_error,  # type: ignore[arg-type]  # the parser has checked it
            )


def write_text(path: Path, text: str) -> None:
    """Write a file all or nothing: whoever reads it meanwhile sees the old one or the new one."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)
