"""Where the arrays of a search live on several devices."""

from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fmnes.jax._search import Search


def shardings(search: Search, mesh: Mesh, axis: str) -> Any:
    """Return the shardings that split a search along its variables over an axis of a mesh.

    ``jax.device_put(search, shardings(search, mesh, axis))`` distributes the search. The compiled
    functions then run on all devices of the axis: each draws and updates its own variables, and
    only sums over variables are exchanged.

    Parameters
    ----------
    search : Search
        The search to distribute.
    mesh : jax.sharding.Mesh
        Devices with named axes.
    axis : str
        The axis of the mesh. The number of variables has to be a multiple of its size.

    Returns
    -------
    Search
        With a `jax.sharding.NamedSharding` in place of each array.
    """
    dim, size = search.dim, mesh.shape[axis]
    if dim % size:
        raise ValueError(
            f"search: expected a number of variables that is a multiple of {size}, the number of "
            f"devices along {axis!r}, got {dim}"
        )

    def of_array(leaf: Any) -> NamedSharding:
        names: list[str | None] = [None] * leaf.ndim
        if dim in leaf.shape:
            names[leaf.shape.index(dim)] = axis
        return NamedSharding(mesh, PartitionSpec(*names))

    return jax.tree.map(of_array, search)
