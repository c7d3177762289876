"""Networks of policies, many candidates at once: in NumPy, or a torch module of the user's."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Policy(Protocol):
    """Outputs from observations, under parameters that are a vector."""

    x0: Floats

    def prepare(self, rows: Floats) -> Callable[[Floats], Floats]:
        """The policies of these rows, as one function: observations (n, k) to outputs (n, m)."""


def read_policy(policy: Any, inputs: int, outputs: int) -> Policy:
    """The policy that the argument of this name describes."""
    if isinstance(policy, str) and policy == "linear":
        return Network([inputs, outputs])
    if hasattr(policy, "named_parameters"):
        from fmnes.integrations._torch_policy import ModulePolicy

        return ModulePolicy(policy, inputs, outputs)
    if isinstance(policy, Sequence) and not isinstance(policy, str):
        widths = list(policy)
        if widths and all(isinstance(width, int) and width > 0 for width in widths):
            return Network([inputs, *widths, outputs])
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
        layers, end = [], 0
        for m, k in self._shapes:
            begin, middle, end = end, end + m * k, end + m * k + m
            layers.append((rows[:, begin:middle].reshape(-1, m, k), rows[:, middle:end]))

        def step(observations: Floats) -> Floats:
            hidden = observations
            for i, (weights, biases) in enumerate(layers):
                hidden = np.tanh(hidden) if i else hidden
                # One product for each row, so that its bits do not depend on the other rows.
                hidden = (weights @ hidden[:, :, None])[:, :, 0] + biases
            return hidden

        return step
