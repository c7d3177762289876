"""Compiled versions of the functions of `fmnes.kernels.agnostic`, where they are documented.

Each function passes once over z and allocates no temporary array of its size. Sums are computed in
float64, in an order that depends neither on the number of threads nor on the instruction level.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes.kernels import _native
from fmnes.kernels.agnostic import Survey

Array = NDArray[Any]  # float64 or float32, the same for all arguments
Namespace = Any  # unused; the functions take it because the agnostic ones do


def row_products(xp: Namespace, z: Array, vbar: Array | None = None) -> tuple[Array | None, Array]:
    """<z_i, vbar> and |z_i|^2 of each row."""
    z = _laid_out(z)
    norm2 = np.empty(z.shape[0], z.dtype)
    along = None if vbar is None else np.empty_like(norm2)
    _native.row_products(z, _laid_out(vbar), along, norm2)
    return along, norm2


def candidates(
    xp: Namespace,
    mean: Array | None,
    scale: Array,
    z: Array,
    c: Array | None = None,
    vbar: Array | None = None,
    *,
    mirrored: bool = False,
) -> Array:
    """Rows mean + scale (z_i + c_i vbar), and mirrored ones."""
    z = _laid_out(z)
    n, dim = z.shape
    out = np.empty((2 * n if mirrored else n, dim), z.dtype)
    _native.candidates(
        z, _laid_out(mean), _laid_out(scale), _laid_out(c), _laid_out(vbar), mirrored, out
    )
    return out


def moments(
    xp: Namespace,
    z: Array,
    w1: Array | None = None,
    w2: Array | None = None,
    w3: Array | None = None,
) -> tuple[Array | None, Array | None, Array | None]:
    """Sums over the rows: of w1_i z_i, of w2_i z_i, of w3_i z_i*z_i."""
    z = _laid_out(z)
    first, second, squares = (
        None if w is None else np.empty(z.shape[1], z.dtype) for w in (w1, w2, w3)
    )
    _native.moments(z, _laid_out(w1), _laid_out(w2), _laid_out(w3), first, second, squares)
    return first, second, squares


def weights_by_candidate(
    xp: Namespace, by_rank: Array, f: Array, norm_z2: Array, *, share_ties: bool = True
) -> Array:
    """Return the weight of each candidate's rank."""
    w, values, norms = (np.ascontiguousarray(x, np.float64) for x in (by_rank, f, norm_z2))
    out = np.empty_like(w)
    _native.weights_by_candidate(w, values, norms, share_ties, out)
    return out.astype(by_rank.dtype, copy=False)


def survey(values: NDArray[np.float64]) -> Survey:
    """Return the figures of a generation's values alone."""
    return _native.survey(values, Survey)


def _laid_out(x: Array | None) -> Any:
    """The array in C order, as the compiled code reads it; a copy only if it is not."""
    return None if x is None else np.ascontiguousarray(x)
