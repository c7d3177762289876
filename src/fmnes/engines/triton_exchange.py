"""What a generation of the Triton engine exchanges with the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from numpy.typing import NDArray

from fmnes._arrays import Array
from fmnes.draws import Address


class Exchange:
    """Memory of the host and of the device, and the copies between them.

    The next address, the best value so far and, if they are not on the device, the values go in;
    figures come out.
    """

    def __init__(self, popsize: int, figures: int, address: Address, like: Array) -> None:
        import torch

        from fmnes.draws import triton_draws

        self._draws, self._device = triton_draws, like.device
        size, pin = popsize + 4, like.device.type == "cuda"
        self.inbox = torch.zeros(size, dtype=torch.float64, pin_memory=pin)
        self.outbox = torch.zeros(figures, dtype=torch.float64, pin_memory=pin)
        self._received = torch.zeros(size, dtype=torch.float64, device=self._device)
        self.figures = torch.zeros(figures, dtype=torch.float64, device=self._device)
        self.words = triton_draws.words_on(self._received, address)
        self._next_words = self._received[:3].view(torch.int64)
        self.best_so_far, self.values = self._received[3:4], self._received[4:]

    def send(self, values: Array, best_so_far: float, following: Address) -> None:
        """Send what a generation needs, with the address of the next one."""
        here = bool(is_torch_array(values))
        inbox, sent = self.inbox.numpy(), 4 if here else len(self.inbox)
        inbox[:3].view(np.int64)[:] = self._draws.words_of(*following)
        inbox[3] = best_so_far
        if here:
            self.values.copy_(values.detach())
        else:
            inbox[4:] = values
        self._received[:sent].copy_(self.inbox[:sent], non_blocking=True)

    def go_on(self) -> None:
        """Use the next address: the draws of this generation are used."""
        self.words.copy_(self._next_words)

    def report(self) -> None:
        """Send the figures of a generation to the host."""
        self.outbox.copy_(self.figures, non_blocking=True)

    def arrived(self) -> NDArray[Any]:
        """The figures that the host has; `mark` says when they are there."""
        numbers: NDArray[Any] = self.outbox.numpy()
        return numbers

    def mark(self) -> Callable[[], None]:
        """Return a function that waits for the work submitted so far."""
        if self._device.type != "cuda":
            return lambda: None
        import torch

        event = torch.cuda.Event()
        event.record()
        wait: Callable[[], None] = event.synchronize
        return wait
