"""Arrays of any library: two conversions and the type names that every module uses."""

from typing import Any

import numpy as np
from array_api_compat import (
    device,  # unlike x.device it works under JAX's jit too
    is_array_api_obj,
    is_jax_array,
    is_torch_array,
)

Array = Any  # an array of whichever library x0 belongs to; the standard has no common base class
Namespace = Any  # that library's module of functions


def constant(xp: Namespace, value: Any, like: Array) -> Array:
    """Return a host constant as an array of the library, dtype and device of ``like``."""
    return xp.asarray(value, dtype=like.dtype, device=device(like))


def to_host(x: Any) -> Any:
    """Return an array of any library as a NumPy array, and anything else unchanged."""
    if isinstance(x, np.ndarray) or not is_array_api_obj(x):
        return x
    if is_torch_array(x):  # NumPy reads neither its devices nor its gradients
        return x.detach().cpu().numpy()
    if is_jax_array(x):  # an explicit transfer, which `jax.transfer_guard("disallow")` allows
        import jax

        return np.asarray(jax.device_get(x))
    return np.asarray(x)
