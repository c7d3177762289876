"""One search whose variables are split over processes: each has a part of every vector."""

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from fmnes import CRFMNES, Result, Stopping
from fmnes import _checks as checks
from fmnes._arrays import Array, to_host
from fmnes.algorithms import MethodName, MethodSettings, cr_fm_nes
from fmnes.arguments.method import read_method
from fmnes.arguments.start import Start, read_start
from fmnes.engines.sharded import Share
from fmnes.evaluate import to_values
from fmnes.integrations._torch_group import Group
from fmnes.integrations._torch_shard_files import ShardFiles
from fmnes.integrations._torch_shard_optimizer import ShardOptimizer

_ADVICE = (
    "start the process again, form a new process group, and call Shards.load in the new process "
    "and rejoin in the others"
)


class Shards:
    """A search whose variables are split over the processes of a `torch.distributed` group.

    Every process holds the mean, D, v and the evolution paths of its own variables, and makes its
    own part of each candidate. All processes evaluate each candidate together. A generation
    exchanges a few numbers for each candidate.

    Parameters
    ----------
    x0 : torch.Tensor of shape (n,)
        The starting point: the variables of this process, on its device. The variables of the
        search are those of process 0, then those of process 1, and so on.
    sigma0 : float or array_like of shape (n,)
        Initial standard deviation, one number for all variables or one for each of this process.
    method : str or settings
        "cr-fm-nes", or `CRFMNES` in its safe variant. D and v, if given, have the variables of this
        process. Draws are never stored: ``store_draws`` makes no difference.
    popsize, rng, ftarget, maxfevals, maxiter, stopping
        See `Optimizer`. They have to be the same in every process. Without ``rng``, the seed is
        that of process 0.
    group : process group, optional
        By default the default group of `torch.distributed`.

    Notes
    -----
    If a process dies, `tell` raises a RuntimeError in the others, and their parts stay as they were
    before the generation. Start the process again and form a new group. Then call `load` in the new
    process and `rejoin` in the others: the search continues from the latest generation that every
    process has, in memory or in a file of `save`.

    Examples
    --------
    Run with ``torchrun --nproc-per-node=8 program.py``:

    >>> def main():  # doctest: +SKIP
    ...     torch.distributed.init_process_group()
    ...     shards = Shards(x0, 0.1, method="cr-fm-nes", rng=1)
    ...     while not shards.stop():
    ...         parts = [part_of_value(x) for x in shards.ask()]
    ...         shards.tell(shards.total(parts))  # the same values in every process
    """

    def __init__(
        self,
        x0: torch.Tensor,
        sigma0: Any,
        *,
        method: MethodName | MethodSettings = "cr-fm-nes",
        popsize: int | None = None,
        rng: "int | np.random.Generator | None" = None,
        ftarget: float | None = None,
        maxfevals: int | None = None,
        maxiter: int | None = None,
        stopping: Stopping | None = None,
        group: Any = None,
    ) -> None:
        if not isinstance(x0, torch.Tensor):
            raise TypeError(f"x0: expected a torch.Tensor, got a {type(x0).__name__}")
        settings = _read_settings(method)
        self._group = Group(group, "shards", _ADVICE)
        if self._group.backend == "nccl" and not x0.is_cuda:
            raise ValueError(
                "x0: expected a tensor on the GPU of this process, because the group exchanges "
                f"numbers by NCCL, got one on {x0.device}"
            )
        sizes = self._group.objects(x0.numel())
        if popsize is None:
            popsize = cr_fm_nes.default_popsize(max(sum(sizes), 1))
        start = read_start(
            x0=x0,
            sigma0=sigma0,
            method=settings,
            popsize=popsize,
            rng=rng,
            ftarget=ftarget,
            maxfevals=maxfevals,
            maxiter=maxiter,
            stopping=stopping,
        )
        seed = self._agreed_seed(start, settings, given=rng is not None)
        setup = start.setup._replace(seed=seed)
        self._part = ShardOptimizer.begun(start._replace(setup=setup), self._share_of(sizes))

    def _agreed_seed(self, start: Start, settings: CRFMNES, *, given: bool) -> int:
        """Return the seed of all processes; raise an error if they have different arguments."""
        setup = start.setup
        seed = setup.seed if given else self._group.objects(setup.seed)[0]
        bare = dataclasses.replace(settings, D=None, v=None)
        dtype, v_given = str(setup.mean.dtype), setup.shape.v is not None
        own = bare, start.popsize, start.budget, setup.stopping, dtype, v_given, seed
        self._check_same("arguments", own)
        return seed

    def _check_same(self, what: str, own: tuple[Any, ...]) -> None:
        everyone = self._group.objects(own)
        for rank, other in enumerate(everyone):
            if other != everyone[0]:
                raise ValueError(
                    f"{what}: expected the same in every process, got {everyone[0]} in process 0 "
                    f"and {other} in process {rank}"
                )

    def _share_of(self, sizes: list[int]) -> Share:
        return Share(sum(sizes[: self._group.rank]), sum(sizes), self._group.gather)

    # === Ask and tell ===

    def ask(self, *, rows: slice | None = None) -> torch.Tensor:
        """Return this process's part of the candidates, shape (popsize, n), or of some rows."""
        part: torch.Tensor = self._part.ask(rows=rows)
        return part

    def write_candidate(self, i: int, target: Any) -> None:
        """Write this process's part of candidate i into tensors of your own, in their dtypes.

        See `Optimizer.write_candidate`. The sizes have to add up to n, the number of variables of
        this process.
        """
        self._part.write_candidate(i, target)

    def write_mean(self, target: Any) -> None:
        """Write this process's part of the mean, as `write_candidate` does."""
        self._part.write_mean(target)

    def total(self, parts: Any) -> torch.Tensor:
        """Return the sum of the numbers of all processes, which have the same shape.

        All processes get identical sums, so that they may be passed to `tell`.
        """
        numbers = torch.as_tensor(parts, dtype=torch.float64)
        return self._group.gather(numbers).sum(dim=0)

    def tell(self, values: Any) -> None:
        """Pass the values of all candidates: the same in every process."""
        own = torch.from_numpy(to_values(to_host(values), self.popsize, "values"))
        everyone = self._group.gather(own)
        for rank, other in enumerate(everyone):
            differs = (everyone[0] != other) & ~(everyone[0].isnan() & other.isnan())
            if differs.any():
                i = int(differs.nonzero()[0])
                raise ValueError(
                    f"values: expected the same in every process, got {float(everyone[0][i])!r} in "
                    f"process 0 and {float(other[i])!r} in process {rank} for candidate {i}; "
                    "`total` adds up the parts of all processes"
                )
        self._part.tell(own.numpy())

    # === Where the search is ===

    def stop(self) -> dict[str, str]:
        """Return the reasons to end as {name: sentence}: the same in every process."""
        return self._part.stop()

    @property
    def result(self) -> Result:
        """The result so far; x, mean and stds have the variables of this process."""
        return self._part.result

    @property
    def dim(self) -> int:
        """The number of variables of all processes."""
        return self._part.dim

    @property
    def variables(self) -> range:
        """The numbers of the variables of this process."""
        start = self._part.share.start
        return range(start, start + int(self._part.setup.mean.shape[0]))

    @property
    def popsize(self) -> int:
        """The number of candidates per generation."""
        return self._part.popsize

    @property
    def nit(self) -> int:
        """The number of generations so far."""
        return self._part.nit

    @property
    def nfev(self) -> int:
        """The number of evaluations so far."""
        return self._part.nfev

    # === Save and load ===

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the part of this process to a file in a folder; all processes have to call it.

        The files of the generation that was saved before are removed when every process has written
        its new one, so that a kill at any moment leaves a generation that is complete.
        """
        files = self._files(folder)
        files.write(self.nit, self._part.to_file())
        self._group.objects(None)  # every process has written its file
        files.remove(files.generations - {self.nit})

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        like: "torch.Tensor | None" = None,
        group: Any = None,
    ) -> Self:
        """Return the search that `save` wrote; every process calls this, or `rejoin`.

        The tensors are on the CPU, or on the device of ``like``. The number of processes and their
        ranks have to be those of `save`.
        """
        shards = cls.__new__(cls)
        shards._group = Group(group, "shards", _ADVICE)
        like = torch.empty(0) if like is None else checks.an_array("like", like)
        shards._join(None, shards._files(folder), like)
        return shards

    def rejoin(self, folder: str | os.PathLike[str] | None = None, *, group: Any = None) -> None:
        """Continue in a new process group after a process died, while others call `load`.

        All processes go to the latest generation that everyone has: in memory, or in a file of
        ``folder``.
        """
        self._group = Group(group, "shards", _ADVICE)
        files = None if folder is None else self._files(folder)
        self._join(self._part, files, self._part.setup.mean)

    def _join(self, part: ShardOptimizer | None, files: ShardFiles | None, like: Array) -> None:
        """Bring all processes to one generation, from their memory and their files."""
        saved = set() if files is None else files.generations
        ways: dict[int, Callable[[], ShardOptimizer]] = {}
        if files is not None:
            ways |= {g: partial(ShardOptimizer.read, files, g, like) for g in saved}
        if part is not None:
            ways |= {g: partial(part.entered, g) for g in part.generations}
        goal = _latest_of_all(self._group.objects(set(ways)))
        found = ways[goal]()
        self._check_same("parts", found.common)
        share = self._share_of(self._group.objects(int(found.setup.mean.shape[0])))
        if (share.start, share.dim) != found.share[:2]:
            raise ValueError(
                f"parts: expected variable {share.start} of {share.dim} to be the first one of "
                f"process {self._group.rank}, got {found.share.start} of {found.share.dim}"
            )
        found.join(share)
        self._part = found
        if files is not None:  # generations that are computed again
            files.remove({newer for newer in saved if newer > goal})

    def _files(self, folder: str | os.PathLike[str]) -> ShardFiles:
        return ShardFiles(Path(checks.path("folder", folder)), self._group.rank, self._group.size)


def _read_settings(method: Any) -> CRFMNES:
    settings = read_method(method).settings
    if not isinstance(settings, CRFMNES) or settings.variant != "safe":
        raise ValueError(
            "method: expected cr-fm-nes in its safe variant, because the others cannot be split "
            f"over processes, got {method!r}"
        )
    return settings


def _latest_of_all(everyone: list[set[int]]) -> int:
    """The latest generation that every process has."""
    common = set.intersection(*everyone)
    if not common:
        has = "; ".join(f"process {rank} has {sorted(own)}" for rank, own in enumerate(everyone))
        raise RuntimeError(
            f"folder: expected a generation that every process has, in memory or in a file, {has}"
        )
    return max(common)
