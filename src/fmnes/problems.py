"""Test problems: those of the CR-FM-NES paper, and those that show where a method ends.

>>> from fmnes.problems import PROBLEMS
>>> problem = PROBLEMS["ellipsoid"](3)
>>> float(problem([1.0, 0.0, 0.0]))
1.0
>>> problem([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).shape
(2,)

A problem is a function that also knows its minimum and where the paper starts the search:

>>> import fmnes
>>> result = fmnes.minimize(problem, problem.x0, problem.sigma0, ftarget=1e-10, rng=1)
>>> result.success
True

Rows are candidates: a problem takes (n, d) or (d,), and returns (n,) or a scalar, in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import kernels

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A function to minimise, with what is known about it.

    It can be pickled, so it can be sent to other processes.
    """

    name: str
    dim: int
    x0: Vector = field(repr=False)  # the initial mean of the paper
    sigma0: float  # the initial step size of the paper
    x_opt: Vector = field(repr=False)  # where the minimum is
    function: Callable[[Vector], Vector] = field(repr=False)  # of rows x
    minimum: float = 0.0

    def __call__(self, x: ArrayLike) -> Vector:
        """The values of the rows of x, or the value of one vector x."""
        rows = np.asarray(x)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.dim:
            raise ValueError(
                f"x: expected shape ({self.dim},) or (n, {self.dim}), got {rows.shape}"
            )
        return _values(self.function, rows)


# === The functions of the paper (its table I) ===


def sphere(dim: int) -> Problem:
    """The sum of x_i^2."""
    return _problem("sphere", dim, _weighted_sphere, scale=np.ones(dim))


def ktablet(dim: int, k: int | None = None) -> Problem:
    """sum_{i <= k} x_i^2 + sum_{i > k} (100 x_i)^2; k = d/4 unless given."""
    long = dim // 4 if k is None else k
    scale = np.where(np.arange(dim) < long, 1.0, 100.0)
    return _problem("ktablet", dim, _weighted_sphere, scale=scale)


def ellipsoid(dim: int, ratio: float = 1000.0) -> Problem:
    """The sum of (ratio^((i-1)/(d-1)) x_i)^2: a Hessian of condition number ratio^2."""
    return _problem("ellipsoid", dim, _weighted_sphere, scale=_spread(ratio, dim))


def rosenbrock(dim: int) -> Problem:
    """sum_{i < d} 100 (x_{i+1} - x_i^2)^2 + (x_i - 1)^2: a curved valley; constant for d = 1."""
    x0, x_opt = _constant(dim, 0.0), _constant(dim, 1.0)
    return Problem("rosenbrock", dim, x0, 0.5, x_opt, _rosenbrock)


def rastrigin(dim: int) -> Problem:
    """10 d + sum (x_i^2 - 10 cos(2 pi x_i)): a local minimum near every vector of integers."""
    return _problem("rastrigin", dim, _rastrigin)


# === Rotated functions ===


def cigar(dim: int, condition: float = 1e6, spread: float = 1.0, seed: int = 0) -> Problem:
    """One long axis u: c |y|^2 - (c - 1) <u, y>^2 with y_i = spread^((i-1)/(d-1)) x_i.

    Its inverse Hessian is (1/2c) S^-1 (I + (c - 1) u u^T) S^-1 with S the diagonal matrix of the
    stretching: exactly the form D (I + v v^T) D that CR-FM-NES and VD-CMA can learn.
    """
    u, scale = _unit_vector(dim, seed), _spread(spread, dim)
    return _problem("cigar", dim, _two_scales, u=u, along=1.0, across=condition, scale=scale)


def discus(dim: int, condition: float = 1e6, seed: int = 0) -> Problem:
    """One short axis u: |x|^2 + (c - 1) <u, x>^2. Not of the form D (I + v v^T) D."""
    u = _unit_vector(dim, seed)
    return _problem(
        "discus", dim, _two_scales, u=u, along=condition, across=1.0, scale=np.ones(dim)
    )


def twoaxes(dim: int, condition: float = 1e6, seed: int = 0) -> Problem:
    """A rotated ellipsoid with d/2 long and d/2 short axes. Only a full matrix can learn it.

    It keeps a rotation matrix: O(d^2) memory and O(d^2) time a candidate.
    """
    scale = np.where(np.arange(dim) < dim - dim // 2, 1.0, np.sqrt(condition))
    return _problem("twoaxes", dim, _rotated_sphere, rotation=_rotation(dim, seed), scale=scale)


# === An implicit constraint ===


def halfspaces(dim: int) -> Problem:
    """The sphere where every x_i >= 0, +inf (infeasible) elsewhere: the minimum is in a corner."""
    return Problem("halfspaces", dim, _constant(dim, 10.0), 2.0, _constant(dim, 0.0), _halfspaces)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "sphere": sphere,
    "ktablet": ktablet,
    "ellipsoid": ellipsoid,
    "rosenbrock": rosenbrock,
    "rastrigin": rastrigin,
    "cigar": cigar,
    "discus": discus,
    "twoaxes": twoaxes,
    "halfspaces": halfspaces,
}


# === What they are made of: functions of rows x, at module level so that they can be pickled ===


def _problem(
    name: str, dim: int, function: Callable[..., Vector], **constants: Vector | float
) -> Problem:
    """A problem whose minimum is 0 at 0, started as in the paper at (3, ..., 3) with sigma 2."""
    return Problem(
        name, dim, _constant(dim, 3.0), 2.0, _constant(dim, 0.0), partial(function, **constants)
    )


def _constant(dim: int, value: float) -> Vector:
    """A vector of equal entries that nobody can change behind the problem's back."""
    x = np.full(dim, value)
    x.flags.writeable = False
    return x


def _spread(factor: float, dim: int) -> Vector:
    """From 1 to ``factor``, evenly in the logarithm; 1 if there is but one."""
    return np.asarray(factor ** np.linspace(0.0, 1.0, dim))


def _unit_vector(dim: int, seed: int) -> Vector:
    """A direction drawn evenly from the sphere."""
    u = np.random.default_rng(seed).standard_normal(dim)
    return np.asarray(u / np.linalg.norm(u))


def _rotation(dim: int, seed: int) -> Vector:
    """An orthogonal matrix drawn evenly (Haar): the sign of each column made independent of QR."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))
    return np.asarray(Q * np.sign(np.diagonal(R)))


def _weighted_sphere(x: Vector, scale: Vector) -> Vector:
    return np.asarray(np.sum((scale * x) ** 2, axis=-1))[()]


def _rotated_sphere(x: Vector, rotation: Vector, scale: Vector) -> Vector:
    return _weighted_sphere(x @ rotation, scale)


def _two_scales(x: Vector, u: Vector, along: float, across: float, scale: Vector) -> Vector:
    """Two terms, along <u, y>^2 + across |y - <u, y> u|^2: squares, so that nothing cancels."""
    y = scale * x
    a = y @ u
    return np.asarray(along * a**2 + across * np.sum((y - a[..., None] * u) ** 2, axis=-1))[()]


def _rosenbrock(x: Vector) -> Vector:
    first, second = x[..., :-1], x[..., 1:]
    return np.asarray(np.sum(100 * (second - first**2) ** 2 + (first - 1) ** 2, axis=-1))[()]


def _rastrigin(x: Vector) -> Vector:
    """With 1 - cos(t) = 2 sin^2(t/2), which is exact near the minimum."""
    return np.asarray(np.sum(x**2 + 20 * np.sin(np.pi * x) ** 2, axis=-1))[()]


def _halfspaces(x: Vector) -> Vector:
    return np.asarray(np.where(np.all(x >= 0, axis=-1), np.sum(x**2, axis=-1), np.inf))[()]


# === The same functions, compiled: one pass over the rows, no temporary of their size ===

_COMPILED: dict[Callable[..., Vector], Callable[..., None]] = {}
if kernels.in_use == "native":
    from fmnes.kernels import _native

    _COMPILED = {
        _weighted_sphere: _native.weighted_sphere,
        _two_scales: _native.two_scales,
        _rosenbrock: _native.rosenbrock,
        _rastrigin: _native.rastrigin,
        _halfspaces: _native.halfspaces,
    }


def _values(function: Callable[[Vector], Vector], x: NDArray[Any]) -> Vector:
    """The values of rows x, or of one vector: from the function's compiled twin if it takes x."""
    of, constants = function, {}
    if isinstance(function, partial):
        of, constants = function.func, function.keywords
    compiled = _COMPILED.get(of)
    rows = x if x.dtype == np.float32 else np.asarray(x, dtype=np.float64)
    if compiled is None or not (rows.flags.c_contiguous and rows.flags.aligned):
        return function(np.asarray(x, dtype=np.float64))
    values = np.empty(x.shape[:-1])
    compiled(x=np.atleast_2d(rows), out=np.atleast_1d(values), **constants)
    return values[()]
