"""The draws of one process of several that share a search, and the passes over them.

A process has all rows of a generation's draws, and the columns of its own variables. The passes
have the signatures of `fmnes.kernels.agnostic`. They make the columns in pieces from their
addresses, so that the whole matrix need not exist.
"""

from collections.abc import Iterator
from typing import Any

from array_api_compat import array_namespace, device

from fmnes import draws
from fmnes._arrays import Array, Namespace
from fmnes.algorithms._vectors import norm2
from fmnes.draws import Address
from fmnes.kernels import agnostic
from fmnes.kernels.agnostic import weights_by_candidate as weights_by_candidate

_PIECE = 2**24  # numbers that are drawn at a time


class Draws:
    """The draws z of a generation: a matrix that can be multiplied, but is made in pieces."""

    def __init__(self, like: Array, address: Address, rows: int, start: int) -> None:
        self.shape, self.dtype, self.device = (rows, like.shape[0]), like.dtype, device(like)
        self.address = address
        self._like, self._start = like, start  # the number of the first column's variable
        self._products: tuple[Array, Array] | None = None

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Some neighbouring columns at a time: which ones, and their draws."""
        rows, columns = self.shape
        for part in spans(0, columns, rows):
            yield part, self.part(0, rows, part)

    def part(self, first: int, last: int, columns: slice) -> Array:
        """Rows ``first`` to ``last - 1`` of some columns."""
        start = self._start + columns.start
        return draws.normals_like(self._like[columns], self.address, first, last, start)

    def products(self, xp: Namespace, vbar: Array) -> tuple[Array, Array]:
        """The <z, vbar> and the |z|^2 of each row over all variables; kept after the first call."""
        if self._products is None:
            parts = [
                xp.library.stack([z @ vbar[columns], norm2(xp.library, z)])
                for columns, z in self.pieces()
            ]
            along, lengths = xp.total(sum(parts[1:], start=parts[0]))
            self._products = along, lengths
        return self._products

    def __rmatmul__(self, weights: Array) -> Any:
        """The weighted sum of the rows."""
        xp = array_namespace(weights)
        return xp.concat([weights @ z for _, z in self.pieces()])


def spans(start: int, stop: int, rows: int = 1) -> Iterator[slice]:
    """Ranges of columns so small that a few matrices of so many rows take little memory."""
    step = max(1, _PIECE // rows)
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def row_products(xp: Namespace, z: Draws, vbar: Array) -> tuple[Array, Array]:
    """<z_i, vbar> and |z_i|^2 of each row, over the variables of all processes."""
    return z.products(xp, vbar)


def moments(xp: Namespace, z: Draws, w1: Array, w2: Array, w3: Array) -> tuple[Array, Array, Array]:
    """Sums over the rows: of w1_i z_i, of w2_i z_i, of w3_i z_i*z_i."""
    parts = [agnostic.moments(xp, piece, w1, w2, w3) for _, piece in z.pieces()]
    first, second, squares = (xp.concat(list(part)) for part in zip(*parts, strict=True))
    return first, second, squares
