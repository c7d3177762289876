"""Test problems: those of the CR-FM-NES paper, and some that show the limits of methods.

>>> from fmnes.problems import PROBLEMS
>>> problem = PROBLEMS["ellipsoid"](3)
>>> float(problem([1.0, 0.0, 0.0]))
1.0
>>> problem([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).shape
(2,)

A problem is a function that also knows its minimum and the paper's starting point:

>>> import fmnes
>>> result = fmnes.minimize(problem, problem.x0, problem.sigma0, ftarget=1e-10, rng=1)
>>> result.success
True

Rows are candidates: a problem takes an array of shape (n, d) or (d,), and returns n values or one,
in float64.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import kernels

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A function to minimize, with what is known about it. It can be pickled."""

    name: str
    dim: int
    x0: Vector = field(repr=False)  # the initial mean of the paper
    sigma0: float  # the initial step size of the paper
    x_opt: Vector = field(repr=False)  # where the minimum is
    function: Callable[[Vector], Any] = field(repr=False)  # of rows x
    minimum: float = 0.0

    def __call__(self, x: ArrayLike) -> Vector:
        """Return the values of the rows of x, or the value of one vector x."""
        rows = np.asarray(x)
        if rows.dtype.kind not in "biuf":
            rows = checks.numbers("x", x, "real numbers")
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.dim:
            raise ValueError(
                f"x: expected shape ({self.dim},) or (n, {self.dim}), got {rows.shape}"
            )
        return _values(self.function, rows)


_ARGUMENTS: dict[str, Callable[[str, Any], Any]] = {
    "dim": partial(checks.integer, least=1),
    "seed": partial(checks.integer, least=0),
    **dict.fromkeys(("ratio", "condition", "spread"), partial(checks.finite, above=0.0)),
}
_Arguments = ParamSpec("_Arguments")


def _checked(make: Callable[_Arguments, Problem]) -> Callable[_Arguments, Problem]:
    """Return a function that makes a problem and checks its arguments."""
    signature = inspect.signature(make)

    @wraps(make)
    def checked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Problem:
        given = signature.bind(*args, **kwargs)
        if shape := np.shape(given.arguments.get("dim", 0)):
            raise TypeError(
                f"dim: expected a whole number, got an array of shape {shape}; the function to "
                f"minimize is what {make.__name__}({shape[-1]}) returns"
            )
        for name, value in given.arguments.items():
            if name in _ARGUMENTS:
                given.arguments[name] = _ARGUMENTS[name](name, value)
        return make(*given.args, **given.kwargs)

    return checked


# === The functions of the paper (its table I) ===


@_checked
def sphere(dim: int) -> Problem:
    """Return the sphere function: the sum of x_i^2."""
    return _problem("sphere", dim, _weighted_sphere, scale=np.ones(dim))


@_checked
def ktablet(dim: int, k: int | None = None) -> Problem:
    """Return sum_{i <= k} x_i^2 + sum_{i > k} (100 x_i)^2, by default with k = d/4."""
    long = dim // 4 if k is None else checks.integer("k", k, least=0)
    scale = np.where(np.arange(dim) < long, 1.0, 100.0)
    return _problem("ktablet", dim, _weighted_sphere, scale=scale)


@_checked
def ellipsoid(dim: int, ratio: float = 1000.0) -> Problem:
    """Return the sum of (ratio^((i-1)/(d-1)) x_i)^2; its Hessian has condition number ratio^2."""
    return _problem("ellipsoid", dim, _weighted_sphere, scale=_spread(ratio, dim))


@_checked
def rosenbrock(dim: int) -> Problem:
    """Return sum_{i < d} 100 (x_{i+1} - x_i^2)^2 + (x_i - 1)^2, a curved valley; 0 for d = 1."""
    return _problem("rosenbrock", dim, _rosenbrock, start=0.0, sigma0=0.5, optimum=1.0)


@_checked
def rastrigin(dim: int) -> Problem:
    """Return 10 d + sum (x_i^2 - 10 cos(2 pi x_i)), with local minima near integer vectors."""
    return _problem("rastrigin", dim, _rastrigin)


# === Rotated functions ===


@_checked
def cigar(dim: int, condition: float = 1e6, spread: float = 1.0, seed: int = 0) -> Problem:
    """Return a function with one long axis u: c |y|^2 - (c - 1) <u, y>^2.

    The variables y_i = spread^((i-1)/(d-1)) x_i, or y = S x, are stretched by ``spread``. The
    inverse Hessian (1/2c) S^-1 (I + (c - 1) u u^T) S^-1 has exactly the form D (I + v v^T) D that
    CR-FM-NES and VD-CMA can learn.
    """
    u, scale = _unit_vector(dim, seed), _spread(spread, dim)
    return _problem("cigar", dim, _two_scales, u=u, along=1.0, across=condition, scale=scale)


@_checked
def discus(dim: int, condition: float = 1e6, seed: int = 0) -> Problem:
    """Return a function with one short axis u: |x|^2 + (c - 1) <u, x>^2.

    Its inverse Hessian does not have the form D (I + v v^T) D.
    """
    u, scale = _unit_vector(dim, seed), np.ones(dim)
    return _problem("discus", dim, _two_scales, u=u, along=condition, across=1.0, scale=scale)


@_checked
def twoaxes(dim: int, condition: float = 1e6, seed: int = 0) -> Problem:
    """Return a rotated ellipsoid with d/2 long and d/2 short axes.

    Only methods with a full covariance matrix can learn it. Its rotation matrix takes O(d^2)
    memory, and O(d^2) time for each candidate.
    """
    scale = np.where(np.arange(dim) < dim - dim // 2, 1.0, np.sqrt(condition))
    return _problem("twoaxes", dim, _rotated_sphere, rotation=_rotation(dim, seed), scale=scale)


# === An implicit constraint ===


@_checked
def halfspaces(dim: int) -> Problem:
    """Return the sphere if all x_i >= 0 and +inf (infeasible) otherwise: a minimum in a corner."""
    return _problem("halfspaces", dim, _halfspaces, start=10.0)


_ALL = (sphere, ktablet, ellipsoid, rosenbrock, rastrigin, cigar, discus, twoaxes, halfspaces)
PROBLEMS: dict[str, Callable[..., Problem]] = {make.__name__: make for make in _ALL}


# === Their parts: functions of rows x at module level, so that they can be pickled ===


def _problem(
    name: str,
    dim: int,
    function: Callable[..., Any],
    *,
    start: float = 3.0,
    sigma0: float = 2.0,
    optimum: float = 0.0,
    **constants: Vector | float,
) -> Problem:
    """Return a problem; most start as in the paper at (3, ..., 3) with sigma 2."""
    x0, x_opt = np.full(dim, start), np.full(dim, optimum)
    x0.flags.writeable = x_opt.flags.writeable = False  # no caller changes them by accident
    return Problem(name, dim, x0, sigma0, x_opt, partial(function, **constants))


def _spread(factor: float, dim: int) -> Vector:
    """Return d numbers from 1 to ``factor``, evenly in the logarithm; 1 if d = 1."""
    return np.asarray(factor ** np.linspace(0.0, 1.0, dim))


def _unit_vector(dim: int, seed: int) -> Vector:
    """Return a direction drawn uniformly from the sphere."""
    u = np.random.default_rng(seed).standard_normal(dim)
    return np.asarray(u / np.linalg.norm(u))


def _rotation(dim: int, seed: int) -> Vector:
    """Return an orthogonal matrix drawn uniformly (Haar), with signs independent of QR's choice."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))
    return np.asarray(Q * np.sign(np.diagonal(R)))


def _weighted_sphere(x: Vector, scale: Vector) -> Any:
    return np.sum((scale * x) ** 2, axis=-1)


def _rotated_sphere(x: Vector, rotation: Vector, scale: Vector) -> Any:
    return _weighted_sphere(x @ rotation, scale)


def _two_scales(x: Vector, u: Vector, along: float, across: float, scale: Vector) -> Any:
    """Return along <u, y>^2 + across |y - <u, y> u|^2: sums of squares, free of cancellation."""
    y = scale * x
    a = y @ u
    return along * a**2 + across * np.sum((y - a[..., None] * u) ** 2, axis=-1)


def _rosenbrock(x: Vector) -> Any:
    first, second = x[..., :-1], x[..., 1:]
    return np.sum(100 * (second - first**2) ** 2 + (first - 1) ** 2, axis=-1)


def _rastrigin(x: Vector) -> Any:
    """Use 1 - cos(t) = 2 sin^2(t/2), which is exact near the minimum."""
    return np.sum(x**2 + 20 * np.sin(np.pi * x) ** 2, axis=-1)


def _halfspaces(x: Vector) -> Any:
    return np.where(np.all(x >= 0, axis=-1), np.sum(x**2, axis=-1), np.inf)


# === The same functions, compiled: one pass over the rows, and no temporary arrays ===

_COMPILED: dict[Callable[..., Any], Callable[..., None]] = {}
if kernels.in_use == "native":
    from fmnes.kernels import _native

    _COMPILED = {
        _weighted_sphere: _native.weighted_sphere,
        _two_scales: _native.two_scales,
        _rosenbrock: _native.rosenbrock,
        _rastrigin: _native.rastrigin,
        _halfspaces: _native.halfspaces,
    }


def _values(function: Callable[[Vector], Any], x: NDArray[Any]) -> Vector:
    """Return the values of rows x, or of one vector: compiled if the function and x allow it."""
    formula, constants = function, {}
    if isinstance(function, partial):
        formula, constants = function.func, function.keywords
    compiled = _COMPILED.get(formula)
    rows = x if x.dtype == np.float32 else np.asarray(x, dtype=np.float64)
    if compiled is None or not (rows.flags.c_contiguous and rows.flags.aligned):
        return np.asarray(function(np.asarray(x, dtype=np.float64)))[()]
    values = np.empty(x.shape[:-1])
    compiled(x=np.atleast_2d(rows), out=np.atleast_1d(values), **constants)
    return values[()]
