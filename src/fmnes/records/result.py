"""The result of a search, and the ways in which a search can end."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from fmnes import _checks as checks
from fmnes._arrays import Array, to_host
from fmnes._files import replacing
from fmnes._html import table
from fmnes._json import from_json, to_json
from fmnes._version import __version__
from fmnes.algorithms._records import Shape
from fmnes.records.history import COLUMNS, History
from fmnes.records.status import OF_ONE_RUN, Status, message, succeeded
from fmnes.variables.space import Space, plain

_FORMAT = 3  # of `Result.to_dict`; a later version reads the earlier ones


@dataclass(frozen=True)
class Run:
    """Summary of one run of a restart schedule.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [1.0, 2.0], 0.5, maxiter=3, rng=1)
    >>> run = result.restarts[-1]
    >>> run.popsize, run.nit, run.nfev
    (6, 3, 20)
    """

    popsize: int  # of the first generation
    sigma0: float  # the initial step size
    nfev: int  # evaluations and generations
    nit: int
    fun: float  # the best value
    status: Status


@dataclass(frozen=True)
class Noise:
    """What repeated evaluations of a search's two points showed; see `fmnes.reevaluate`.

    Examples
    --------
    >>> import fmnes
    >>> noise = fmnes.Noise(n=25, std=1.0, mean_fun=0.1, mean_error=0.2, x_fun=0.9, x_error=0.2)
    >>> noise.is_noisy, noise.better, round(noise.certainty, 3)
    (True, 'mean', 0.998)
    """

    n: int  # evaluations of each point
    std: float  # standard deviation of the values at the same point
    mean_fun: float  # average value at the mean of the distribution, and its standard error
    mean_error: float
    x_fun: float  # the same for the best point of the search
    x_error: float

    @property
    def is_noisy(self) -> bool:
        """Whether the values at one point differed."""
        return self.std > 0

    @property
    def better(self) -> str:
        """The point with the better average: "mean" or "x"."""
        return "mean" if self.mean_fun < self.x_fun else "x"

    @property
    def certainty(self) -> float:
        """Probability that `better` is right, for normal errors: 0.5 is a guess, NaN unknown."""
        error = math.hypot(self.mean_error, self.x_error)
        difference = abs(self.mean_fun - self.x_fun)
        if error == 0:
            return 1.0 if difference else 0.5
        return 0.5 * (1 + math.erf(difference / error / math.sqrt(2)))


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

    # === Files ===

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, texts, lists and dicts, which JSON can hold.

        Arrays become lists, and numbers that are not finite the words "inf", "-inf" and "nan".
        """
        names = ("x", "mean", "stds", "fun", "sigma", "constr_violation")
        numbers = {name: to_json(getattr(self, name)) for name in names}
        history = self.history.to_array()
        return {
            "format": _FORMAT,
            "fmnes": __version__,
            **{item.name: getattr(self, item.name) for item in fields(self)},
            **numbers,
            "dtype": str(np.asarray(to_host(self.x)).dtype),
            "status": str(self.status),
            **{name: _json_or_none(getattr(self, name)) for name in ("constr", "multipliers")},
            "space": None if self.space is None else self.space.to_dict(),
            "noise": self.noise
            and {name: to_json(value) for name, value in vars(self.noise).items()},
            "best": None if self.space is None else plain(self.space.values(self.x)),
            "history": {name: to_json(history[name]) for name in COLUMNS},
            "restarts": [
                {**vars(run), "fun": to_json(run.fun), "status": str(run.status)}
                for run in self.restarts
            ],
            "shape": {
                name: None if part is None else to_json(part)
                for name, part in self.shape._asdict().items()
            },
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Result":
        """Return the Result of `to_dict`, with the same numbers; its arrays are NumPy arrays."""
        if not isinstance(content, Mapping) or "format" not in content:
            hint = ""
            if isinstance(content, Mapping) and "status" in content:
                hint = "; the result.json of `fmnes run` is a summary, which json.load reads"
            raise TypeError(
                f"content: expected a dict of Result.to_dict, got {content!r:.60}{hint}"
            )
        if content["format"] not in range(1, _FORMAT + 1):
            raise ValueError(
                f"content: expected format 1 to {_FORMAT}, got {content['format']!r}, which fmnes "
                f"{content.get('fmnes')} wrote; this is fmnes {__version__}"
            )
        try:
            return cls(**_read(content))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"content: expected a dict of Result.to_dict, got a damaged one ({error!r})"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, from which `load` returns the same Result.

        The file holds the rows of the history and the shape of the distribution, so that `plot`
        and a warm start (``minimize(fun, result)``) work with a loaded Result. It does not hold
        the state of the search: use a checkpoint, or `Optimizer.save`, to resume a search. If the
        path is that of a checkpoint, nothing is written, and a ValueError says so.
        """
        path = checks.path("path", path)
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


def _json_or_none(array: Array | None) -> Any:
    return None if array is None else to_json(array)


def _is_archive(path: str) -> bool:
    """Return whether there is a file of arrays at a path, as checkpoints are."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


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


def merged(
    runs: Sequence[Result],
    status: Status,
    ftarget: float | None,
    advice: str = "",
    first_error: str | None = None,
) -> Result:
    """Return the best of several runs with the totals of all; their histories are not joined.

    ``status`` is that of the last run. If this run ended by itself, the status of the best run
    takes its place, because x, mean and sigma are those of the best run.
    """
    best = min(runs, key=lambda run: (run.constr_violation, run.fun))
    if status in OF_ONE_RUN and best.restarts[0].status in OF_ONE_RUN:
        status = best.restarts[0].status
    nfev, nfailed = sum(run.nfev for run in runs), sum(run.nfailed for run in runs)
    text = message(best.fun, status, ftarget, best.constr_violation, advice)
    if status == Status.INFEASIBLE and first_error is not None and nfailed == nfev:
        text = f"Every evaluation failed. The first error is: {error_summary(first_error)}"
    return replace(
        best,
        success=succeeded(best.fun, best.restarts[0].status, ftarget, best.constr_violation),
        nfev=nfev,
        nit=sum(run.nit for run in runs),
        status=status,
        message=text,
        restarts=tuple(run.restarts[0] for run in runs),
        nfailed=nfailed,
        first_error=first_error,
    )


def error_summary(traceback: str) -> str:
    """Return type and message of an exception on one line, with its notes, from its traceback."""
    lines = traceback.strip().splitlines()
    indented = [k for k, line in enumerate(lines) if line.startswith(" ")]
    return " ".join(lines[indented[-1] + 1 if indented else 0 :])[:500]


def _short(x: Array, digits: int, noun: str) -> str:
    """Return the first values of a vector, and their number, as text."""
    head = ", ".join(f"{float(x[i]):.{digits}g}" for i in range(min(4, x.shape[0])))
    return f"[{head}]" if x.shape[0] <= 4 else f"[{head}, ...] ({x.shape[0]} {noun}s)"
