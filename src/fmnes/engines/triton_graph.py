"""A CUDA graph of kernels that are launched again and again."""

from collections.abc import Callable
from typing import Any

Work = Callable[[], None]


class Recorded:
    """Work that always launches the same kernels on the same memory: on a GPU, a CUDA graph.

    The first call launches the kernels one by one, which compiles them. Later calls replay a graph,
    which `record` makes.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._compiled = False
        self._graph: Any = None

    def record(self, work: Work) -> None:
        """Record the work if its kernels are compiled; nothing is computed.

        If this fails, for example because memory is short, there is still no graph, and the next
        call tries again.
        """
        if self._graph is not None or not self._compiled or self._device.type != "cuda":
            return
        import torch

        graph = torch.cuda.CUDAGraph()
        # A stream of this device: that of PyTorch belongs to the device which recorded first.
        stream = torch.cuda.Stream(self._device)
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            work()
        self._graph = graph

    def __call__(self, work: Work) -> None:
        """Do the work."""
        self.record(work)
        if self._graph is not None:
            self._graph.replay()
            return
        work()
        self._compiled = True
