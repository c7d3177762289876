"""Arrays of any library: two conversions and the type names that every module uses."""

from typing import Any

import numpy as np
from array_api_compat import (
    device,  # unlike x.device it works under JAX's jit too
    is_array_api_obj,
    is_jax_array,
    is_torch_array,
)

Array = Any  # an array of the library that x0 belongs to; the standard has no common base class
Namespace = Any  # that library's module of functions


def constant(xp: Namespace, value: Any, like: Array) -> Array:
    """Return a host constant as an array of the library, dtype and device of ``like``."""
    return xp.asarray(value, dtype=like.dtype, device=place(like, np.shape(value)))


def beside(xp: Namespace, value: Any, like: Array, dtype: Any = None) -> Array:
    """Return a host value on the device of ``like``; booleans and integers keep their dtype."""
    return xp.asarray(value, dtype=dtype, device=place(like, np.shape(value)))


def place(like: Array, shape: tuple[int, ...]) -> Any:
    """Return where an array of some shape belongs beside ``like``.

    On its device. If JAX has split ``like`` over several devices, an array of another shape is
    whole on each of them.
    """
    where = device(like)
    if not hasattr(where, "mesh") or tuple(shape) == tuple(like.shape):
        return where
    from jax.sharding import NamedSharding, PartitionSpec

    return NamedSharding(where.mesh, PartitionSpec())


def to_host(x: Any) -> Any:
    """Return an array of any library as a NumPy array, and anything else unchanged.

    Masked elements become NaN.
    """
    if type(x) is np.ndarray or not is_array_api_obj(x):
        return x
    if isinstance(x, np.ma.MaskedArray):  # the numbers below the mask mean nothing
        return _filled(x)
    if is_torch_array(x):  # NumPy reads neither its devices nor its gradients
        return (x.float() if _is_narrow(x) else x).detach().cpu().numpy()
    if is_jax_array(x):  # an explicit transfer, which `jax.transfer_guard("disallow")` allows
        import jax

        host = np.asarray(jax.device_get(x))
        return host.astype(np.float32) if host.dtype.kind == "V" else host  # bfloat16
    return np.asarray(x)


def _filled(x: Any) -> Any:
    """Return a masked array of real numbers as floats, with NaN for the masked ones."""
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    return x.filled(np.nan) if x.dtype.kind == "f" else x.filled()


def _is_narrow(x: Any) -> bool:
    """Whether a tensor's dtype may be one that NumPy does not have, such as bfloat16."""
    return bool(x.is_floating_point()) and x.element_size() < 4
