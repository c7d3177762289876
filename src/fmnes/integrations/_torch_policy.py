"""A module of PyTorch as a policy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.func import vmap

from fmnes.integrations.torch import FlatModule

Floats = NDArray[np.float64]


class ModulePolicy:
    """A module that maps a row of observations to a row of outputs."""

    def __init__(self, module: torch.nn.Module, inputs: int, outputs: int) -> None:
        self._flat = FlatModule(module)
        self._type = next(module.parameters()).dtype
        self.x0 = self._flat.x0
        shape = self.prepare(self.x0[None, :])(np.zeros((1, inputs))).shape
        if shape != (1, outputs):
            raise ValueError(f"policy: expected {outputs} outputs, got shape {shape[1:]}")

    def prepare(self, rows: Floats) -> Callable[[Floats], Floats]:
        """The policies of these rows, as one function."""
        parameters = self._flat.rows(rows)
        buffers = self._flat.buffers(len(rows))

        def one(row: torch.Tensor, own: dict[str, torch.Tensor], observation: torch.Tensor) -> Any:
            return self._flat.model(row, own)(observation[None, :])[0]

        def step(observations: Floats) -> Floats:
            with torch.no_grad():
                seen = torch.tensor(observations, dtype=self._type)
                outputs: Floats = vmap(one)(parameters, buffers, seen).double().numpy()
                return outputs

        return step
