"""A PyTorch module as an objective: its parameters are the variables; no gradients are needed.

Needs ``pip install 'fmnes[torch]'``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import Optimizer
from fmnes import _checks as checks
from fmnes.integrations._flat_module import FlatModule

try:
    import torch
    from torch.func import vmap
except ImportError as error:
    raise ImportError(
        "fmnes.integrations.torch needs PyTorch: pip install 'fmnes[torch]'"
    ) from error


class ModuleObjective:
    """The loss of a PyTorch module, as a function of its parameters.

    Parameters
    ----------
    module : torch.nn.Module
        Evaluations do not change the module; only `load` does. If the module updates buffers (such
        as the running statistics of BatchNorm in training mode), it updates copies, which are
        discarded.
    loss : callable
        ``loss(model, *args)`` returns one number as a tensor. ``model`` is called like the module
        and uses the parameters of a candidate. ``args`` are those of `minimize`. The loss need not
        be differentiable.
    parameters : sequence of str, optional
        Names of the parameters to search, as in `named_parameters`; by default those with
        ``requires_grad``. The others keep their values.
    groups : mapping of str to float or None, optional
        Patterns of names, such as ``"*.bias"``, and the scale of the parameters that match: their
        initial standard deviation relative to the others, see `scales`. None freezes them.
        The first pattern that matches counts.
    batched : bool
        Whether to evaluate many candidates at once with `torch.func.vmap`. It supports modules that
        consist of tensor operations, but not ``.item()``, branches on values, or random numbers
        such as Dropout's. Use False for these: it evaluates one candidate after the other.
    chunk_size : int, optional
        Number of candidates per call of `vmap`, to limit memory; by default all.

    Attributes
    ----------
    x0 : array of shape (d,)
        The parameters that the module has now, as a NumPy array in float64.
    vector : tensor of shape (d,)
        The same on the device of the module, in float32, or in float64 if that is the dtype of a
        parameter: pass it as x0 to a search that runs there.
    scales : array of shape (d,)
        The scale of each variable, from ``groups``: pass ``sigma0=0.1 * objective.scales``.
    tensors : list of tensors
        The parameters that are searched, in the order of the variables: a target for
        `Optimizer.write_candidate`.

    Notes
    -----
    A call with one candidate, shape (d,), returns a float: use it with ``workers``. A call with
    many, shape (n, d), returns n values: use it with ``vectorized=True``.

    The search runs in float64, the module in its own dtype. Candidates are rounded to that dtype
    before they are evaluated, and `load` rounds in the same way, so it loads exactly what was
    evaluated. Candidates may be NumPy arrays or tensors. With ``objective.vector`` as x0, the
    search itself runs in PyTorch on the device of the module.

    Examples
    --------
    Fit a line to points of which a fifth are wrong, by minimizing the median error:

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
        groups: Mapping[str, float | None] | None = None,
        batched: bool = True,
        chunk_size: int | None = None,
    ) -> None:
        self._loss = checks.function("loss", loss)
        self._batched = checks.boolean("batched", batched)
        if chunk_size is not None:
            checks.integer("chunk_size", chunk_size, least=1)
        self._flat, self._chunk_size = FlatModule(module, parameters, groups), chunk_size
        self.module = module

    # Made when they are asked for: they take memory of the size of the module or more.

    @property
    def x0(self) -> NDArray[np.float64]:
        """The parameters that the module has now."""
        return self._flat.x0

    @property
    def vector(self) -> torch.Tensor:
        """The parameters that the module has now, on its device."""
        return self._flat.vector

    @property
    def scales(self) -> NDArray[np.float64]:
        """The scale of each variable."""
        return self._flat.scales

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The parameters that are searched."""
        return self._flat.parameters

    def __call__(self, x: Any, *args: Any) -> Any:
        """Return the loss: a float for one candidate, an array for many."""
        rows = self._flat.rows(x)
        with torch.no_grad():
            if np.ndim(x) == 1:
                return self._evaluate_one(rows[0], args)
            if self._batched:
                return self._evaluate_batched(rows, args)
            return np.array([self._evaluate_one(row, args) for row in rows], np.float64)

    def evaluate(self, opt: Optimizer, *args: Any) -> NDArray[np.float64]:
        """Return the values of all candidates of a search, for `Optimizer.tell`.

        The candidates are written into the module one after the other, so that a second copy of
        the parameters is never needed; afterwards the module has the mean of the search. Buffers
        are restored after each candidate. If the loss raises an error, the module has the mean
        too, and the search is unchanged.
        """
        values = []
        try:
            for i in range(opt.popsize):
                values.append(self.value_of(opt, i, *args))
        finally:
            opt.write_mean(self.tensors)
        return np.array(values, np.float64)

    def value_of(self, opt: Optimizer, i: int, *args: Any) -> float:
        """Write candidate i of a search into the module, and return its value."""
        buffers = {name: value.clone() for name, value in self.module.named_buffers()}
        opt.write_candidate(i, self.tensors)
        with torch.no_grad():
            try:
                value = _one_number(self._loss(self.module, *args))
            finally:
                for name, buffer in self.module.named_buffers():
                    buffer.copy_(buffers[name])
        return float(value.item())

    def load(self, x: Any) -> torch.nn.Module:
        """Put the parameters of a candidate, shape (d,), into the module, and return it."""
        own = dict(self.module.named_parameters())
        if np.ndim(x) != 1:
            raise ValueError(f"x: expected shape ({self._flat.dim},), got {np.shape(x)}")
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
                "batched: expected a module and a loss that torch.func.vmap supports, got "
                f"{type(self.module).__name__} (the error above says why not); use batched=False"
            ) from error
        _one_number(values[0])
        on_host: NDArray[np.float64] = values.reshape(-1).to("cpu", torch.float64).numpy()
        return on_host


def _one_number(value: Any) -> torch.Tensor:
    """Return what a loss returned for one candidate, if it is a tensor of one element."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"loss: expected one number as a tensor, got {value!r}")
    if value.numel() != 1:
        raise TypeError(f"loss: expected one number, got shape {tuple(value.shape)}")
    return value
