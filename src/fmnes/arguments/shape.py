"""The initial shape of the covariance matrix: D, v and C, from settings or a Result."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms._records import Shape, diagonal_of
from fmnes.algorithms._settings import MethodSettings


def initial_shape(xp: Namespace, mean: Array, settings: MethodSettings) -> Shape:
    """Return D, v and C of the method's settings, checked; ones for D if it is not given."""
    dim = mean.shape[0]
    shapes = {"D": (dim,), "v": (dim,), "C": (dim, dim)}
    given = settings.given_shape.items()
    parts = {name: _shape_part(name, value, shapes[name]) for name, value in given}
    info = xp.finfo(mean.dtype)
    for name, part in parts.items():
        least = float(info.smallest_normal) if name == "D" else 0.0
        checks.in_scale(name, part.ravel(), info, least=least)
    parts = {name: constant(xp, part, mean) for name, part in parts.items()}
    ones = xp.broadcast_to(constant(xp, 1.0, mean), mean.shape)  # takes the memory of one number
    return Shape(**{"D": ones, **parts})


def _shape_part(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an initial D, v or C of a method's settings, checked."""
    array = checks.numbers(name, value, f"an array of real numbers of shape {shape}")
    if array.shape != shape:
        raise ValueError(f"{name}: expected an array of shape {shape}, got shape {array.shape}")
    if not (finite := np.isfinite(array)).all():
        raise ValueError(f"{name}: expected finite numbers, got {array[~finite][0]}")
    if name == "D" and not (array > 0).all():
        raise ValueError(f"D: expected numbers > 0, got {array.min()}")
    if name == "v" and not array.any():
        raise ValueError("v: expected a vector that is not zero, got zeros")
    if name == "C":
        if not np.allclose(array, array.T, rtol=1e-12, atol=0):
            gap = np.abs(array - array.T).max()
            raise ValueError(f"C: expected a symmetric matrix, got entries that differ by {gap:g}")
        smallest = float(np.linalg.eigvalsh(array)[0])
        if smallest <= 0:
            raise ValueError(f"C: expected a positive definite matrix, got eigenvalue {smallest}")
    return array


def check_deviations(
    xp: Namespace, mean: Array, deviations: NDArray[np.float64], shape: Shape
) -> None:
    """Raise an error if numbers cannot hold the initial deviations, or none of them moves x0.

    In the latter case the first generation would count as converged, also after a warm start from a
    search that has converged to all digits.
    """
    info = xp.finfo(mean.dtype)
    sizes = _sizes(xp, mean, deviations, shape)
    smallest, largest = float(xp.min(sizes)), float(xp.max(sizes))
    tiny = float(info.smallest_normal)
    checks.in_scale("sigma0", np.array([smallest, largest]), info, least=tiny)
    if smallest / largest < tiny:
        raise ValueError(
            f"sigma0: expected standard deviations whose ratio numbers of {info.bits} bits can "
            f"hold, got {smallest:.3g} and {largest:.3g}; rescale your variables"
        )
    spacing = info.eps * xp.abs(mean)
    if not bool(xp.any(sizes > spacing)):
        raise ValueError(
            "sigma0: expected more than the spacing of floating-point numbers at x0, which is "
            f"{float(xp.min(spacing)):.3g} or more, got {largest:.3g}; use a larger sigma0, or "
            "subtract an offset from your variables"
        )


def least_factor(
    xp: Namespace, mean: Array, deviations: NDArray[np.float64], shape: Shape
) -> float:
    """Return the factor of the deviations at which they no longer move x0."""
    info = xp.finfo(mean.dtype)
    with np.errstate(over="ignore"):
        return float(xp.min(info.eps * xp.abs(mean) / _sizes(xp, mean, deviations, shape)))


def _sizes(xp: Namespace, mean: Array, deviations: NDArray[np.float64], shape: Shape) -> Array:
    """Return the initial standard deviation of each variable."""
    # A copy, because PyTorch warns of read-only memory.
    sizes = constant(xp, np.array(checks.distinct(deviations)), mean)
    with np.errstate(over="ignore"):
        return sizes * diagonal_of(xp, shape)
