"""The parameters of a PyTorch module as one vector. PyTorch is imported when it is needed."""

import fnmatch
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]


class FlatModule:
    """The chosen parameters of a module as one vector, in the order of `named_parameters`."""

    def __init__(
        self,
        module: "torch.nn.Module",
        parameters: Sequence[str] | None = None,
        groups: Mapping[str, float | None] | None = None,
    ) -> None:
        _check_module(module)
        own = dict(module.named_parameters())  # tied weights appear once
        if parameters is None:
            parameters = [name for name, value in own.items() if value.requires_grad]
        elif unknown := [name for name in parameters if name not in own]:
            raise ValueError(f"parameters: expected names among {list(own)}, got {unknown[0]!r}")
        scales = _scales({} if groups is None else groups, list(parameters))
        parameters = [name for name in parameters if scales[name] is not None]
        self._names = [name for name in own if name in parameters]
        if not self._names:
            raise ValueError(f"parameters: expected at least one of {list(own)}, got none")
        self._module = module
        chosen = [own[name].detach() for name in self._names]
        self._shapes = [tuple(value.shape) for value in chosen]
        self._types = [value.dtype for value in chosen]
        self._device = chosen[0].device
        self._sizes = [value.numel() for value in chosen]
        self._scales = [scales[name] for name in self._names]
        self.dim = sum(self._sizes)
        self._several_devices = len({value.device for value in chosen}) > 1

    @property
    def parameters(self) -> "list[torch.Tensor]":
        """The parameters that are searched, in the order of the vector."""
        own = dict(self._module.named_parameters())
        return [own[name] for name in self._names]

    @property
    def x0(self) -> NDArray[np.float64]:
        """The parameters that the module has now, in double precision on the host."""
        import torch

        parts = [value.detach().reshape(-1) for value in self.parameters]
        flat = torch.cat([part.to("cpu", torch.float64) for part in parts])
        x0: NDArray[np.float64] = flat.numpy().copy()
        return x0

    @property
    def vector(self) -> "torch.Tensor":
        """The parameters that the module has now, on its device, in 32 bits or more."""
        import torch

        dtype = functools.reduce(torch.promote_types, self._types, torch.float32)
        out = torch.empty(self.dim, dtype=dtype, device=self._device)
        for place, value in zip(out.split(self._sizes), self.parameters, strict=True):
            place.copy_(value.detach().reshape(-1))
        return out

    @property
    def scales(self) -> NDArray[np.float64]:
        """The scale of each variable."""
        return np.repeat(np.array(self._scales, np.float64), self._sizes)

    def rows(self, x: Any) -> "torch.Tensor":
        """Return candidates as a tensor of shape (n, d) on the module's device."""
        import torch

        if self._several_devices:
            raise ValueError(
                "module: expected parameters on one device for calls with candidates, got "
                f"{sorted({str(value.device) for value in self.parameters})}; evaluate(opt) writes "
                "candidates to several devices"
            )
        d, shape = self.dim, tuple(np.shape(x))
        if len(shape) not in (1, 2) or shape[-1] != d:
            raise ValueError(f"x: expected shape ({d},) or (n, {d}), got {shape}")
        # torch.tensor copies: candidates are read-only, and PyTorch has no read-only tensors.
        taken = x.detach() if isinstance(x, torch.Tensor) else torch.tensor(x)
        return taken.to(self._device).reshape(-1, d)

    def tensors(self, row: "torch.Tensor") -> "Tensors":
        """Return the parameters of one candidate by name, in the module's dtypes."""
        parts = zip(self._names, row.split(self._sizes), self._shapes, self._types, strict=True)
        return {name: part.reshape(shape).to(dtype) for name, part, shape, dtype in parts}

    def buffers(self, n: int) -> "Tensors":
        """Return n copies of the module's buffers: each candidate may change its own."""
        named = self._module.named_buffers()
        return {name: value.expand(n, *value.shape).clone() for name, value in named}

    def model(self, row: "torch.Tensor", buffers: "Tensors | None" = None) -> Any:
        """Return the module with the parameters of one candidate, to be called like the module."""
        from torch.func import functional_call

        if buffers is None:
            buffers = {name: value.clone() for name, value in self._module.named_buffers()}
        state = {**self.tensors(row), **buffers}

        def call(*args: Any, **kwargs: Any) -> Any:
            return functional_call(self._module, state, args, kwargs)

        return call


_WRAPPERS = {
    "DistributedDataParallel": "synchronizes gradients that nobody needs here",
    "FullyShardedDataParallel": "has split its parameters over processes",
    "DataParallel": "copies the parameters to several GPUs in each call",
}


def _check_module(module: Any) -> None:
    """Raise an error for modules whose parameters are not whole, or not their own."""
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: expected a torch.nn.Module, got {module!r}")
    for name, part in module.named_modules():
        kinds = {kind.__name__ for kind in type(part).__mro__}
        for kind in kinds & set(_WRAPPERS):
            where = f"module.{name} is one" if name else "got a wrapped one"
            raise TypeError(
                f"module: expected one without {kind}, which {_WRAPPERS[kind]}; {where}. Pass "
                "module.module, and use fmnes.integrations.torch_distributed for several processes"
            )
    places = []
    for name, value in module.named_parameters():
        if type(value.data).__name__ == "DTensor":
            raise TypeError(f"module: expected whole parameters, got {name}, which is sharded")
        steps = zip(value.shape, value.stride(), strict=True)
        size = (1 + sum((n - 1) * step for n, step in steps)) * value.element_size()
        if value.numel() and value.device.type != "meta":
            places.append((value.data_ptr(), value.data_ptr() + size, name))
    places.sort()
    for (_, end, one), (begin, _, other) in itertools.pairwise(places):
        if begin < end:
            raise ValueError(
                f"module: expected parameters with memory of their own, got {one} and {other}, "
                "which share it; give both names the same Parameter, or copies"
            )


def _scales(groups: Mapping[str, float | None], names: list[str]) -> dict[str, float | None]:
    """The scale of each parameter: that of the first pattern that its name matches, else 1."""
    for pattern, scale in groups.items():
        if scale is not None:
            checks.finite(f"groups[{pattern!r}]", scale, above=0)
        if not fnmatch.filter(names, pattern):
            raise ValueError(f"groups: expected patterns for names among {names}, got {pattern!r}")

    def scale_of(name: str) -> float | None:
        matching = (scale for key, scale in groups.items() if fnmatch.fnmatchcase(name, key))
        return next(matching, 1.0)

    return {name: scale_of(name) for name in names}
