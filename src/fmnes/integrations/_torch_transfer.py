"""A saved search sent from one process to the others: small things at once, vectors one by one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from array_api_compat import array_namespace, device, is_array_api_obj

from fmnes._arrays import Array, to_host
from fmnes.engines import library_of
from fmnes.integrations._torch_group import Group


class _Sent(NamedTuple):
    """Stands for an array that is sent by itself."""

    library: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    repeated: bool  # all numbers are one number in memory, which alone is sent

    @property
    def sent_shape(self) -> tuple[int, ...]:
        return (1,) if self.repeated else self.shape


def received(
    group: Group, source: int, saved: dict[str, Any], like: Array, *, needed: bool
) -> dict[str, Any]:
    """Return the saved search of process ``source``, on the device of ``like``.

    ``saved`` is this process's own search. A process that does not need the other one takes part in
    the exchange, without memory for the vectors. The settings of the method are not sent: all
    processes have the same.
    """
    setup, arrays, here = saved["setup"], [], group.rank == source

    def take_out(array: Array) -> _Sent:
        arrays.append(array)
        dtype = _tensor(array[:0] if array.ndim else array).dtype
        return _Sent(library_of(array), tuple(array.shape), dtype, _is_repeated(array))

    own = _mapped({**saved, "setup": setup._replace(settings=None)}, take_out) if here else None
    bare = group.object_from(source, own)
    place = like if isinstance(like, torch.Tensor) else torch.empty(0)
    left = iter(arrays)

    def receive(sent: _Sent) -> Any:
        tensor = None
        if here:
            array = next(left)
            tensor = _tensor(array[:1] if sent.repeated else array)
        elif needed:
            on = place.device if sent.library == "torch" else "cpu"
            tensor = torch.empty(sent.sent_shape, dtype=sent.dtype, device=on)
        size = sent.dtype.itemsize * int(np.prod(sent.sent_shape))
        flat = None if tensor is None else tensor.reshape(-1).view(torch.uint8)
        group.spread(source, flat, size, place)
        return None if here or tensor is None else _as_sent(sent, tensor, like)

    found = _mapped(bare, receive)
    return {**found, "setup": found["setup"]._replace(settings=setup.settings)}


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same records, tuples, lists and dicts, with other arrays."""
    if isinstance(value, _Sent) or _is_numeric(value):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    if isinstance(value, tuple | list):
        items = [_mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _is_numeric(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return not isinstance(value, np.generic) and bool(is_array_api_obj(value))


def _is_repeated(array: Array) -> bool:
    strides = array.stride() if isinstance(array, torch.Tensor) else getattr(array, "strides", None)
    return array.ndim == 1 and array.shape[0] > 1 and strides == (0,)


def _tensor(array: Array) -> torch.Tensor:
    """An array as a contiguous tensor, whose strides are those of one."""
    if isinstance(array, torch.Tensor):
        whole = array.detach()
        whole = whole if all(whole.stride()) else whole.clone(memory_format=torch.contiguous_format)
        return whole.contiguous()
    host = np.ascontiguousarray(to_host(array)).reshape(array.shape)
    return torch.from_numpy(host if host.flags.writeable else host.copy())


def _as_sent(sent: _Sent, tensor: torch.Tensor, like: Array) -> Array:
    """The array that was sent, in its library."""
    if sent.library == "torch":
        return tensor.expand(sent.shape) if sent.repeated else tensor
    array = np.broadcast_to(tensor.numpy(), sent.shape) if sent.repeated else tensor.numpy()
    if sent.library == "numpy":
        return array
    return array_namespace(like).asarray(array, device=device(like))
