"""Where the arrays of a search live on several devices."""

import dataclasses
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fmnes.jax._search import Search

# Arrays of a state without variables, which may have as many numbers as there are variables. Of the
# other arrays, the first axis is that of the variables.
_WITHOUT_VARIABLES = frozenset({"S", "evidence", "m_averages", "sigma_averages"})


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

    whole = NamedSharding(mesh, PartitionSpec())
    searches = [None] * (search.state.mean.ndim - 1)  # the axes of `jax.vmap`, if any
    split = NamedSharding(mesh, PartitionSpec(*searches, axis))

    def of_field(name: str, array: Any) -> NamedSharding:
        has_variables = array.ndim > len(searches) and array.shape[len(searches)] == dim
        return split if has_variables and name not in _WITHOUT_VARIABLES else whole

    state = {name: of_field(name, array) for name, array in search.state._asdict().items()}
    return dataclasses.replace(
        jax.tree.map(lambda _: whole, search),
        state=type(search.state)(**state),
        initial=split,
        best_x=split,
    )
