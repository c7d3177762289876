"""Policies as functions of a parameter vector, for many candidates at once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes.integrations._flat_module import FlatModule

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]


class Policy(Protocol):
    """A map from observations to outputs that depends on a vector of parameters."""

    x0: Floats

    def prepare(self, rows: Floats) -> Callable[[Floats], Floats]:
        """Return a function for n candidates: from observations (n, k) to outputs (n, m)."""


def read_policy(policy: Any, inputs: int, outputs: int) -> Policy:
    """Return the policy that the argument ``policy`` describes."""
    if isinstance(policy, str) and policy == "linear":
        return Network([inputs, outputs])
    if isinstance(policy, Sequence) and not isinstance(policy, str) and len(policy):
        widths = [checks.integer("policy", width, least=1) for width in policy]
        return Network([inputs, *widths, outputs])
    if callable(policy):
        return ModulePolicy(policy, inputs, outputs)
    raise ValueError(
        "policy: expected 'linear', the widths of tanh layers such as (32, 32), or a "
        f"torch.nn.Module, got {policy!r}"
    )


class Network:
    """Affine maps with tanh between them.

    The parameters of a layer are its weights, row after row (outputs by inputs), then its biases.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        self._shapes = list(zip(widths[1:], widths[:-1], strict=True))
        self.x0 = np.zeros(sum(m * k + m for m, k in self._shapes))

    def prepare(self, rows: Floats) -> Callable[[Floats], Floats]:
        """See `Policy`."""
        layers, end = [], 0
        for m, k in self._shapes:
            begin, middle, end = end, end + m * k, end + m * k + m
            layers.append((rows[:, begin:middle].reshape(-1, m, k), rows[:, middle:end]))

        def step(observations: Floats) -> Floats:
            hidden = observations
            for i, (weights, biases) in enumerate(layers):
                hidden = np.tanh(hidden) if i else hidden
                # A separate product for each row, so that its bits do not depend on other rows.
                hidden = (weights @ hidden[:, :, None])[:, :, 0] + biases
            return hidden

        return step


class ModulePolicy:
    """A PyTorch module that maps a row of observations to a row of outputs."""

    def __init__(self, module: Any, inputs: int, outputs: int) -> None:
        self._flat = FlatModule(module)
        self._type = next(module.parameters()).dtype
        self.x0 = self._flat.x0
        shape = self.prepare(self.x0[None, :])(np.zeros((1, inputs))).shape
        if shape != (1, outputs):
            raise ValueError(f"policy: expected {outputs} outputs, got shape {shape[1:]}")

    def prepare(self, rows: Floats) -> Callable[[Floats], Floats]:
        """See `Policy`."""
        import torch

        parameters = self._flat.rows(rows)
        buffers = self._flat.buffers(len(rows))

        def one(row: "torch.Tensor", own: Any, observation: "torch.Tensor") -> Any:
            return self._flat.model(row, own)(observation[None, :])[0]

        def step(observations: Floats) -> Floats:
            with torch.no_grad():
                seen = torch.tensor(observations, dtype=self._type)
                outputs: Floats = torch.func.vmap(one)(parameters, buffers, seen).double().numpy()
                return outputs

        return step
