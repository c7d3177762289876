"""Normal draws addressed by (seed, stream, generation, row, coordinate).

A draw is a pure function of its address: it does not depend on who asked first, on the number of
workers or on what was drawn before. So any machine rebuilds any candidate from a few numbers, and
a checkpoint holds no generator state beyond the seed and a counter.

One definition, one implementation per backend. native/draws.hpp (C++) and `numpy_draws` give
identical results. `triton_draws` (PyTorch on a GPU) gives identical results in float64, and in
float32 normals that differ in the last digits. `array_draws` (JAX and PyTorch, on any device) gives
identical Philox words; its normals differ in the last digits.
"""

import functools
import importlib.util
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array, constant
from fmnes.draws import array_draws, numpy_draws

if kernels.in_use == "native":
    from fmnes.kernels import _native

# How many bits of each number fit into the generator's counter, which has four words of 32 bits:
# the number of a pair of coordinates; the row; the low 32 bits of the generation; the stream (20
# bits) with the high 12 bits of the generation.
STREAM_BITS, GENERATION_BITS, ROW_BITS, DIM_BITS = 20, 44, 32, 33


class Address(NamedTuple):
    """Where the draws of a generation are found; its rows and coordinates complete the address."""

    seed: int
    stream: int
    generation: int = 0


def draw_seed(rng: "int | np.random.Generator | None") -> int:
    """One seed of 64 bits, from what NumPy's ``default_rng`` takes."""
    expected = f"rng: expected None, an int >= 0 or a numpy.random.Generator, got {rng!r}"
    if isinstance(rng, bool | np.bool_):  # NumPy would take True for the seed 1
        raise TypeError(expected)
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(expected) from None
    return int(generator.integers(2**64, dtype=np.uint64))


# Different streams have different draws. In run k of a restart schedule the populations use stream
# 2k, and the draw for the initial v uses stream 2k + 1.


def population_stream(run: int) -> int:
    """The stream of the populations of run number ``run`` of a restart schedule."""
    return 2 * _fitting("run", run, STREAM_BITS - 1)


def initial_stream(run: int) -> int:
    """The stream of the draw that starts run number ``run`` of a restart schedule."""
    return 2 * _fitting("run", run, STREAM_BITS - 1) + 1


def normals(
    seed: int,
    stream: int,
    generation: int,
    first: int,
    last: int,
    dim: int,
    out: NDArray[Any] | None = None,
    start: int = 0,
) -> NDArray[Any]:
    """Rows ``first`` to ``last - 1`` of a generation's standard normal draws, shape (rows, dim).

    In float64, or rounded to float32 if that is what ``out`` holds. They are the coordinates from
    ``start`` on.
    """
    _fitting("stream", stream, STREAM_BITS)
    _fitting("generation", generation, GENERATION_BITS)
    _fitting("first", first, ROW_BITS)
    _fitting("last", last, ROW_BITS)
    _fitting("dim", start + dim, DIM_BITS)
    if out is None:
        out = np.empty((last - first, dim))
    if kernels.in_use == "native" and start == 0:  # the compiled loop begins at coordinate 0
        _native.normals(seed, stream, generation, first, out)
    elif out.dtype == np.float64:
        numpy_draws.normals(seed, stream, generation, first, out, start)
    else:
        out[...] = normals(seed, stream, generation, first, last, dim, start=start)
    return out


def normals_like(mean: Array, address: Address, first: int, last: int, start: int = 0) -> Array:
    """Rows of a generation's draws in the array library, dtype and device of ``mean``.

    They have as many coordinates as ``mean``, from ``start`` on.

    If ``mean`` is a PyTorch array on a GPU or another device, the draws are computed there, so no
    array of size d is copied to the device.
    """
    xp, dim = array_namespace(mean), mean.shape[0]
    if is_torch_array(mean) and mean.device.type == "cuda" and _has_triton():
        from fmnes.draws import triton_draws

        placed = triton_draws.words_on(mean, address)
        return triton_draws.normals(placed, first, last - first, mean, start)
    if is_torch_array(mean) and mean.device.type != "cpu":
        words = array_draws.Words.of(*address)
        return array_draws.normals(xp, words, first, last - first, dim, mean, start)
    return constant(xp, normals(*address, first, last, dim, start=start), mean)


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def _fitting(name: str, value: int, bits: int) -> int:
    """Return ``value``; OverflowError if it needs more than ``bits`` bits.

    The counter would drop the higher bits, and two addresses would get the same draws.
    """
    if not 0 <= value < 1 << bits:
        raise OverflowError(f"{name}: expected a number from 0 to 2^{bits} - 1, got {value}")
    return value
