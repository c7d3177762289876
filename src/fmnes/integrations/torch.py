"""A module of PyTorch as an objective: its parameters are the variables, without autograd.

Needs ``pip install 'fmnes[torch]'``.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import torch
    from torch.func import functional_call, vmap
except ImportError as error:
    raise ImportError(
        "fmnes.integrations.torch: expected PyTorch to be installed: pip install 'fmnes[torch]'"
    ) from error


class ModuleObjective:
    """The loss of a module, as a function of its parameters.

    Parameters
    ----------
    module : torch.nn.Module
        Is left as it is until `load`. A candidate that changes buffers (the running statistics of
        BatchNorm in training mode) changes a copy, and the copy is thrown away.
    loss : callable
        ``loss(model, *args)`` returns one number as a tensor; ``model`` is called like the module
        and uses the parameters of a candidate. ``args`` are those of `minimize`. It need not be
        differentiable.
    parameters : sequence of str, optional
        Names of the parameters that are searched, as `named_parameters` has them; by default those
        with ``requires_grad``. The others stay as they are.
    batched : bool
        Whether many candidates go through the module at once, by `torch.func.vmap`. It takes what
        consists of tensor operations, but no ``.item()``, no branch on values, and no random
        numbers such as Dropout's: False then evaluates one candidate after the other.
    chunk_size : int, optional
        Candidates that `vmap` takes at once, where memory is short; all by default.

    Attributes
    ----------
    x0 : array of shape (d,)
        The parameters that the module has now, in float64.

    Notes
    -----
    A call with one candidate, shape (d,), gives a float: for ``workers``. A call with many, shape
    (n, d), gives n values: for ``vectorized=True``.

    The search runs in float64, the module in its own type: candidates are rounded to that before
    they are evaluated, and `load` rounds likewise, so that what is loaded is what was evaluated.
    Candidates may be NumPy arrays or tensors; with ``torch.as_tensor(objective.x0, device=...)`` as
    x0 the search itself runs in PyTorch, where the module is.

    Examples
    --------
    A line through points of which a fifth are wrong, by the median of the errors:

    >>> import fmnes, torch
    >>> from fmnes.integrations.torch import ModuleObjective
    >>> _ = torch.manual_seed(1)
    >>> x = torch.randn(50, 3)
    >>> y = x @ torch.tensor([[1.0], [2.0], [3.0]]) + 4
    >>> y[:10] += 100
    >>> module = torch.nn.Linear(3, 1)
    >>> objective = ModuleObjective(module, lambda model: (model(x) - y).abs().median())
    >>> result = fmnes.minimize(objective, objective.x0, 1.0, ftarget=1e-3, vectorized=True, rng=1)
    >>> objective.load(result.x).weight.detach().round(decimals=1)
    tensor([[1., 2., 3.]])
    """

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Callable[..., Any],
        *,
        parameters: Sequence[str] | None = None,
        batched: bool = True,
        chunk_size: int | None = None,
    ) -> None:
        if not callable(loss):
            raise TypeError(f"loss: expected a function of the model, got {loss!r}")
        self._flat = FlatModule(module, parameters)
        self._loss, self._batched, self._chunk_size = loss, batched, chunk_size
        self.module, self.x0 = module, self._flat.x0

    def __call__(self, x: Any, *args: Any) -> Any:
        """The loss: of one candidate a float, of many an array."""
        rows = self._flat.rows(x)
        with torch.no_grad():
            if x.ndim == 1:
                return self._evaluate_one(rows[0], args)
            if self._batched:
                return self._evaluate_batched(rows, args)
            return np.array([self._evaluate_one(row, args) for row in rows], np.float64)

    def load(self, x: Any) -> torch.nn.Module:
        """Put the parameters of a candidate, shape (d,), into the module, and return it."""
        own = dict(self.module.named_parameters())
        if np.ndim(x) != 1:
            raise ValueError(f"x: expected shape {self.x0.shape}, got {np.shape(x)}")
        with torch.no_grad():
            for name, value in self._flat.tensors(self._flat.rows(x)[0]).items():
                own[name].copy_(value)
        return self.module

    def _evaluate_one(self, row: torch.Tensor, args: tuple[Any, ...]) -> float:
        value = self._loss(self._flat.model(row), *args)
        return float(_one_number(value).item())

    def _evaluate_batched(self, rows: torch.Tensor, args: tuple[Any, ...]) -> NDArray[np.float64]:
        def one(row: torch.Tensor, buffers: dict[str, torch.Tensor]) -> Any:
            return self._loss(self._flat.model(row, buffers), *args)

        try:
            values = vmap(one, chunk_size=self._chunk_size)(rows, self._flat.buffers(len(rows)))
        except RuntimeError as error:
            raise RuntimeError(
                "batched: expected a module and a loss that torch.func.vmap takes, got "
                f"{type(self.module).__name__} (the error above says why not): with batched=False "
                "one candidate is evaluated after the other"
            ) from error
        _one_number(values[0])
        on_host: NDArray[np.float64] = values.reshape(-1).to("cpu", torch.float64).numpy()
        return on_host


class FlatModule:
    """The chosen parameters of a module as one vector, in the order of `named_parameters`."""

    def __init__(self, module: torch.nn.Module, parameters: Sequence[str] | None = None) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"module: expected a torch.nn.Module, got {module!r}")
        own = dict(module.named_parameters())
        if parameters is None:
            parameters = [name for name, value in own.items() if value.requires_grad]
        elif unknown := [name for name in parameters if name not in own]:
            raise ValueError(f"parameters: expected names among {list(own)}, got {unknown[0]!r}")
        self._names = [name for name in own if name in parameters]
        if not self._names:
            raise ValueError(f"parameters: expected at least one of {list(own)}, got none")
        self._module = module
        chosen = [own[name].detach() for name in self._names]
        self._shapes = [tuple(value.shape) for value in chosen]
        self._types = [value.dtype for value in chosen]
        self._device = chosen[0].device
        flat = torch.cat([value.reshape(-1).to(torch.float64) for value in chosen])
        self.x0: NDArray[np.float64] = flat.cpu().numpy().copy()

    def rows(self, x: Any) -> torch.Tensor:
        """Candidates as a tensor of shape (n, d) where the module is."""
        if not hasattr(x, "ndim") or x.ndim not in (1, 2) or x.shape[-1] != len(self.x0):
            shape = tuple(x.shape) if hasattr(x, "shape") else type(x).__name__
            d = len(self.x0)
            raise ValueError(f"x: expected shape ({d},) or (n, {d}), got {shape}")
        # torch.tensor copies: PyTorch has no arrays that are read-only, and candidates are.
        taken = x.detach() if isinstance(x, torch.Tensor) else torch.tensor(x)
        return taken.to(self._device).reshape(-1, len(self.x0))

    def tensors(self, row: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parameters of one candidate by their names, in the module's own types."""
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        parts = zip(self._names, torch.split(row, sizes), self._shapes, self._types, strict=True)
        return {name: part.reshape(shape).to(dtype) for name, part, shape, dtype in parts}

    def buffers(self, n: int) -> dict[str, torch.Tensor]:
        """The module's buffers, n times: a candidate may change its own."""
        named = self._module.named_buffers()
        return {name: value.expand(n, *value.shape).clone() for name, value in named}

    def model(self, row: torch.Tensor, buffers: dict[str, torch.Tensor] | None = None) -> Any:
        """The module with the parameters of one candidate, to be called like the module."""
        if buffers is None:
            buffers = {name: value.clone() for name, value in self._module.named_buffers()}
        return partial(_call, self._module, {**self.tensors(row), **buffers})


def _call(
    module: torch.nn.Module, state: dict[str, torch.Tensor], *args: Any, **kwargs: Any
) -> Any:
    return functional_call(module, state, args, kwargs)


def _one_number(value: Any) -> torch.Tensor:
    """What a loss returned for one candidate, if it is a tensor of one element."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"loss: expected one number as a tensor, got {value!r}")
    if value.numel() != 1:
        raise TypeError(f"loss: expected one number, got shape {tuple(value.shape)}")
    return value
