"""The result of a search."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

from fmnes import _checks as checks
from fmnes._arrays import Array
from fmnes._files import replacing
from fmnes._html import table
from fmnes.algorithms._records import Shape
from fmnes.records.content import from_content, to_content
from fmnes.records.history import History
from fmnes.records.parts import Noise, Run
from fmnes.records.status import Status
from fmnes.variables.space import Space


@dataclass(frozen=True, eq=False)  # to compare arrays field by field would raise an error
class Result:
    """The result of a search, with SciPy's field names.

    Attributes
    ----------
    x : array of shape (d,)
        The best point that was evaluated: a candidate, or x0 if no candidate is better; the mean
        if no point had a usable value. With constraints: the best feasible point, or the one with
        the least violation.
    fun : float
        The value of ``x``; inf if no point had a usable value.
    nfev, nit : int
        Number of evaluations and of complete generations, over all runs.
    success : bool
        Whether the target was reached; without a target, whether the search converged. In both
        cases ``x`` has to be feasible.
    status : Status
        How the search ended, e.g. "ftarget".
    message : str
        The same as a sentence. It also says if the target was not reached, and what to do if the
        values rose for long.
    mean : array of shape (d,)
        The mean of the sampling distribution: the better choice if the objective is noisy.
    sigma : float
        The step size at the end.
    stds : array of shape (d,)
        The standard deviation of each variable in the sampling distribution at the end: how far
        the search still varies it. It shrinks as the search converges, so it is no error bar of a
        fit. 0 for a fixed variable, NaN if the Result comes from a file of an earlier version.
    history : History
        One row per generation, over all runs; fewer rows for a long search.
    restarts : tuple of Run
        The runs of the restart schedule, in order; a single run if there were no restarts.
    nfailed : int
        Number of evaluations that returned NaN, or failed under an `Evaluator`'s policy.
    first_error : str or None
        The traceback of the first evaluation that failed under an `Evaluator`'s policy.
    shape : Shape
        The shape of the sampling distribution at the end. Pass the Result as ``x0`` of `minimize`
        to continue from there.

    constr : array of shape (m,), or None
        The values of the constraints at ``x``, in the form g <= 0 or h = 0; None without them.
    constr_violation : float
        By how much ``x`` violates its worst constraint; 0 if ``x`` is feasible, that is if no
        violation exceeds the tolerance of its constraint.
    multipliers : array of shape (m,), or None
        The Lagrange multipliers at the end, in the order of ``constr``: by how much the optimal
        value would fall if the constraint were relaxed by a small unit.

    space : Space or None
        The named variables, if the search had any. ``best`` has their values at ``x``, which is the
        vector of their coordinates.

    noise : Noise or None
        How noisy the objective is, and which of ``mean`` and ``x`` is better, if `reevaluate` has
        found out; None otherwise.

    `save` writes a Result to a file, and `Result.load` reads it.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 2.0, maxfevals=82, rng=1)
    >>> result.success, result.status, result.nfev
    (False, <Status.MAXFEVALS: 'maxfevals'>, 82)
    >>> more = fmnes.minimize(lambda x: (x**2).sum(), result, ftarget=1e-8, rng=2)
    >>> more.success
    True
    """

    x: Array
    fun: float
    nfev: int
    nit: int
    success: bool
    status: Status
    message: str
    mean: Array
    sigma: float
    stds: Array
    history: History = field(repr=False)
    restarts: tuple[Run, ...]
    nfailed: int
    first_error: str | None
    shape: Shape = field(repr=False)
    constr: Array | None = None
    constr_violation: float = 0.0
    multipliers: Array | None = None
    space: Space | None = field(default=None, repr=False)
    noise: Noise | None = None

    @property
    def best(self) -> Any:
        """The named values of ``x``, as the objective function gets them; None without a Space."""
        return None if self.space is None else self.space.decode(self.x)

    def __getitem__(self, name: object) -> Never:
        """Say how a field is read: SciPy's results are dicts too, and a Result is not."""
        field = name if isinstance(name, str) and name.isidentifier() else "x"
        raise TypeError(f"Result: expected an attribute, result.{field}, got result[{name!r}]")

    # === Files ===

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, texts, lists and dicts, which JSON can hold.

        Arrays become lists, and numbers that are not finite the words "inf", "-inf" and "nan".
        """
        return to_content(vars(self))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Result":
        """Return the Result of `to_dict`, with the same numbers; its arrays are NumPy arrays."""
        return cls(**from_content(content))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, from which `load` returns the same Result.

        The file holds the rows of the history and the shape of the distribution, so that `plot`
        and a warm start (``minimize(fun, result)``) work with a loaded Result. It does not hold
        the state of the search: use a checkpoint, or `Optimizer.save`, to resume a search. If the
        path is that of a checkpoint, nothing is written, and a ValueError says so.
        """
        path = checks.path_to_write("path", path)
        if _is_archive(path):
            raise ValueError(
                f"path: expected the path of a JSON file, such as result.json, got {path}, which "
                "is a checkpoint; it was not overwritten"
            )
        text = json.dumps(self.to_dict(), allow_nan=False)
        with replacing(path) as file:
            Path(file).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Return the Result that `save` wrote; its arrays are NumPy arrays."""
        path = checks.path("path", path)
        expected = f"path: expected a file of Result.save, got {path}"
        if _is_archive(path):
            raise ValueError(
                f"{expected}, which holds a search: Optimizer.load reads a file of "
                "Optimizer.save, and minimize(..., checkpoint=path) resumes from a checkpoint"
            )
        with open(path, encoding="utf-8") as file:
            try:
                return cls.from_dict(json.load(file))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{expected} ({error})") from error

    # === On a screen ===

    def _lines(self) -> dict[str, str]:
        """Return names and texts of what is shown."""
        noun = "variable" if self.space is None else "coordinate"

        def short(x: Array, digits: int = 6) -> str:
            return _short(x, digits, noun)

        rows: Mapping[str, Any] = {
            "success": self.success,
            "status": self.status,
            "fun": f"{self.fun:.10g}",
            **({} if self.space is None else {"best": f"{self.best!r:.200}"}),
            "x": short(self.x),
            "mean": short(self.mean),
            "sigma": f"{self.sigma:.4g}",
            "stds": short(self.stds, 4),
            "nfev": self.nfev,
            "nit": self.nit,
            "nfailed": self.nfailed,
            "restarts": len(self.restarts) - 1,
        }
        if self.noise is not None:
            noise = self.noise
            rows = {
                **rows,
                "noise": f"{noise.std:.4g} (standard deviation at a point)",
                "f(mean)": f"{noise.mean_fun:.6g} ± {noise.mean_error:.2g}",
                "f(x)": f"{noise.x_fun:.6g} ± {noise.x_error:.2g}",
            }
        if self.constr is not None:
            rows = {**rows, "violation": f"{self.constr_violation:.4g}"}
        return {name: str(value) for name, value in rows.items()}

    def __str__(self) -> str:
        rows = {"message": self.message, **self._lines()}
        return "\n".join(f"{name:>9}: {value}" for name, value in rows.items())

    def _repr_html_(self) -> str:
        return table(self.message, self._lines().items())


def _is_archive(path: str) -> bool:
    """Return whether there is a file of arrays at a path, as checkpoints are."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _short(x: Array, digits: int, noun: str) -> str:
    """Return the first values of a vector, and their number, as text."""
    head = ", ".join(f"{float(x[i]):.{digits}g}" for i in range(min(4, x.shape[0])))
    return f"[{head}]" if x.shape[0] <= 4 else f"[{head}, ...] ({x.shape[0]} {noun}s)"
