"""Parameters of any structure as one vector, and back."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fmnes._arrays import Array


class Layout(NamedTuple):
    """The structure, shapes and dtypes of parameters: what JAX knows before it runs a program."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]

    @property
    def dim(self) -> int:
        """The number of variables."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def dtype(self) -> Any:
        """The dtype of the vector: that of the most precise array, and float32 at least."""
        return jnp.result_type(*self.dtypes, jnp.float32)


def layout_of(parameters: Any) -> Layout:
    """The layout of a pytree of floating-point arrays."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(parameters)
    for path, leaf in leaves:
        dtype = jnp.result_type(leaf)
        if not jnp.issubdtype(dtype, jnp.floating):
            where = jax.tree_util.keystr(path)
            raise TypeError(
                f"x0{where}: expected floating-point numbers, got {dtype}; "
                "leave out what is not to be optimized"
            )
    shapes = tuple(jnp.shape(leaf) for _, leaf in leaves)
    layout = Layout(structure, shapes, tuple(jnp.result_type(leaf) for _, leaf in leaves))
    if layout.dim == 0:
        raise ValueError("x0: expected at least one number, got none")
    return layout


def to_vector(layout: Layout, parameters: Any, name: str = "x0") -> Array:
    """Parameters as one vector of shape (d,)."""
    leaves, structure = jax.tree.flatten(parameters)
    if structure != layout.structure:
        raise ValueError(f"{name}: expected the structure {layout.structure}, got {structure}")
    flat = []
    for leaf, shape in zip(leaves, layout.shapes, strict=True):
        if jnp.shape(leaf) != shape:
            raise ValueError(f"{name}: expected an array of shape {shape}, got {jnp.shape(leaf)}")
        flat.append(jnp.ravel(jnp.asarray(leaf, layout.dtype)))
    return jnp.concatenate(flat)


def to_parameters(layout: Layout, vector: Array) -> Any:
    """A vector of shape (..., d) as parameters with the same leading axes."""
    ends = np.cumsum([math.prod(shape) for shape in layout.shapes])
    parts = jnp.split(vector, ends[:-1], axis=-1)
    leaves = [
        jnp.reshape(part, (*vector.shape[:-1], *shape)).astype(dtype)
        for part, shape, dtype in zip(parts, layout.shapes, layout.dtypes, strict=True)
    ]
    return jax.tree.unflatten(layout.structure, leaves)


def to_deviations(layout: Layout, sigma0: Any) -> Array:
    """Initial standard deviations as a number, or as a vector if they are a pytree.

    One number for all variables, or a pytree with the structure of the parameters that has a number
    or an array for each array.
    """
    leaves, structure = jax.tree.flatten(sigma0)
    if structure == jax.tree.structure(0.0) and jnp.shape(sigma0) == ():
        return jnp.asarray(sigma0, layout.dtype)
    if structure != layout.structure:
        raise ValueError(
            f"sigma0: expected a number, or the structure {layout.structure}, got {structure}"
        )
    parts = zip(leaves, layout.shapes, strict=True)
    wide = [jnp.broadcast_to(jnp.asarray(leaf, layout.dtype), shape) for leaf, shape in parts]
    return jnp.concatenate([jnp.ravel(leaf) for leaf in wide])
