"""Passes over the rows of draws, z of shape (n, d): the reference, for arrays of any library.

`fmnes.kernels.native` has the same functions compiled, for NumPy arrays. The bits of a row do not
depend on the other rows: a candidate that is built alone equals its row of the population.
"""

from typing import Any

Array = Any
Namespace = Any


def row_products(xp: Namespace, z: Array, vbar: Array | None = None) -> tuple[Array | None, Array]:
    """<z_i, vbar> and |z_i|^2 of each row; the former is None without a vbar.

    One row after the other: the bits of a matrix product depend on how many rows there are.
    """
    along = None if vbar is None else xp.vecdot(z, vbar)
    return along, xp.sum(z * z, axis=-1)


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
    """Rows mean + scale (z_i + c_i vbar); if mirrored then also rows mean - scale (z_i + c_i vbar).

    Without c and vbar mean + scale z_i, and without a mean only the steps from it.
    """
    step = scale * (z if c is None else z + c[:, None] * vbar)
    if mean is None:
        return step
    return xp.concat([mean + step, mean - step], axis=0) if mirrored else mean + step


def moments(
    xp: Namespace,
    z: Array,
    w1: Array | None = None,
    w2: Array | None = None,
    w3: Array | None = None,
) -> tuple[Array | None, Array | None, Array | None]:
    """Sums over the rows: of w1_i z_i, of w2_i z_i, of w3_i z_i*z_i; None without the weights."""
    first = None if w1 is None else w1 @ z
    second = None if w2 is None else w2 @ z
    squares = None if w3 is None else w3 @ (z * z)
    return first, second, squares
