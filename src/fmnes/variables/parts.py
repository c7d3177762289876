"""A candidate written into the arrays of its owner, such as the parameters of a module."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_torch_array

from fmnes._arrays import Array, to_host


class Part(NamedTuple):
    """Some neighbouring coordinates of a candidate, and the array that they are written into."""

    start: int
    array: Array

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return int(np.prod(self.array.shape))


def read_parts(target: Any, dim: int) -> list[Part]:
    """Return the parts of a module or of a collection of arrays; they have to hold ``dim`` numbers.

    The order is that of `named_parameters`, without those that have ``requires_grad=False``, or
    that of the collection.
    """
    parts, start = [], 0
    for name, array in _named(target):
        if type(getattr(array, "data", None)).__name__ == "DTensor":
            raise TypeError(
                f"target: expected whole tensors, got {name}, a DTensor, of which every process "
                "has a part"
            )
        if not _is_writable(array):
            raise TypeError(f"target: expected arrays of real numbers, got {name} = {_kind(array)}")
        parts.append(Part(start, array))
        start += parts[-1].size
    if start != dim:
        raise ValueError(
            f"target: expected arrays with {dim} numbers in all, as the search has variables, "
            f"got {start}"
        )
    return parts


def _named(target: Any) -> list[tuple[str, Any]]:
    if type(target).__name__ == "FullyShardedDataParallel":
        raise TypeError(
            "target: expected a module with whole parameters, got one that "
            "FullyShardedDataParallel has split"
        )
    if hasattr(target, "named_parameters"):
        named = target.named_parameters()
        return [(name, value) for name, value in named if value.requires_grad]
    if isinstance(target, Mapping):
        return [(repr(name), value) for name, value in target.items()]
    if isinstance(target, Sequence) and not isinstance(target, str):
        return [(f"[{i}]", value) for i, value in enumerate(target)]
    raise TypeError(
        "target: expected a torch.nn.Module, or a list or dict of tensors or arrays, got "
        f"{_kind(target)}"
    )


def _is_writable(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return array.flags.writeable and np.issubdtype(array.dtype, np.floating)
    return bool(is_torch_array(array)) and array.is_floating_point()


def _kind(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ + ("" if dtype is None else f" of dtype {dtype}")


def write_parts(parts: list[Part], vector: Array) -> None:
    """Copy a vector into its parts, rounded to their dtypes."""
    for part in parts:
        write_part(part, vector[part.start : part.start + part.size])


def write_part(part: Part, values: Array) -> None:
    """Copy some numbers into the array of a part, of any layout and on any device."""
    array = part.array
    if isinstance(array, np.ndarray):
        array[...] = np.reshape(to_host(values), array.shape)
    else:
        import torch

        new = values if isinstance(values, torch.Tensor) else torch.as_tensor(to_host(values))
        array.detach().copy_(new.reshape(array.shape))


def write_made(parts: list[Part], like: Array, make: Callable[[int, Array], None]) -> None:
    """Let ``make(start, out)`` write each part where it lies.

    It writes contiguous tensors on the device of ``like``; others are copied.
    """
    for part in parts:
        array = part.array
        direct = is_torch_array(array) and array.device == like.device and array.is_contiguous()
        out = array.detach() if direct else like.new_empty(part.size)
        make(part.start, out)
        if not direct:
            write_part(part, out)
