"""The exchanges between the processes of a `torch.distributed` group."""

import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from fmnes._arrays import Array

_PIECE = 2**26  # bytes that `spread` sends at a time


class Group:
    """A process group, and this process in it.

    Every process has to call the same methods in the same order. If a process has died, they raise
    a RuntimeError, which ``advice`` completes.
    """

    def __init__(self, group: Any, owner: str, advice: str) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError(
                "group: expected a process group, got none; call "
                "torch.distributed.init_process_group() first"
            )
        self._group, self._owner, self._advice = group, owner, advice
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.backend = str(dist.get_backend(group))

    def gather(self, part: Array) -> Array:
        """The tensors of all processes, which have the same shape, stacked."""
        sent = part.detach().reshape(-1).to(self._place(part))
        found = [torch.empty_like(sent) for _ in range(self.size)]
        self._call(dist.all_gather, found, sent)
        return torch.stack(found).to(part.device).reshape(self.size, *part.shape)

    def objects(self, own: Any) -> list[Any]:
        """A small object of each process."""
        found: list[Any] = [None] * self.size
        self._call(dist.all_gather_object, found, own)
        return found

    def object_from(self, source: int, own: Any) -> Any:
        """A small object of the process ``source``; that of the others is ignored."""
        found = [own]
        self._call(dist.broadcast_object_list, found, self._global_rank(source))
        return found[0]

    def spread(self, source: int, flat: Array | None, size: int, like: Array) -> None:
        """Copy the bytes of process ``source`` into ``flat``, a piece at a time.

        A process that does not need them has None. ``like`` is a tensor on its device.
        """
        for first in range(0, size, _PIECE):
            last = min(first + _PIECE, size)
            piece = torch.empty(last - first, dtype=torch.uint8, device=self._place(like))
            if self.rank == source and flat is not None:
                piece.copy_(flat[first:last])
            self._call(dist.broadcast, piece, self._global_rank(source))
            if self.rank != source and flat is not None:
                flat[first:last].copy_(piece)

    def _place(self, like: Array) -> torch.device:
        """The device on which the group exchanges tensors that are on the device of ``like``."""
        if self.backend == "nccl":
            return like.device if like.is_cuda else torch.device("cuda")
        return torch.device("cpu") if self.backend == "gloo" else like.device

    def _global_rank(self, rank: int) -> int:
        return rank if self._group is None else int(dist.get_global_rank(self._group, rank))

    def _call(self, collective: Callable[..., Any], *args: Any) -> None:
        try:
            collective(*args, group=self._group)
        except RuntimeError as error:
            # The frames of the error hold the group. Without them, `destroy_process_group` closes
            # its connections at once, so that the other processes need not wait for a timeout.
            traceback.clear_frames(error.__traceback__)
            raise RuntimeError(
                f"{self._owner}: a process of the group does not answer (the error above says "
                f"more). The search is as it was before: {self._advice}"
            ) from error
