"""One search on many GPUs or machines: one process each, by `torch.distributed`.

With `Replicas` every process holds the whole search and evaluates its share of the candidates. A
generation exchanges popsize values: each process makes the same update from them. With `Shards`
every process holds some of the variables. Needs ``pip install 'fmnes[torch]'``.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import Optimizer
from fmnes import _checks as checks

try:
    import torch

    from fmnes.integrations._torch_group import Group
    from fmnes.integrations._torch_shards import Shards as Shards
    from fmnes.integrations._torch_transfer import received
except ImportError as error:
    raise ImportError(
        "fmnes.integrations.torch_distributed needs PyTorch: pip install 'fmnes[torch]'"
    ) from error

_PIECE = 2**24  # numbers of a vector that are hashed at a time


class _Standing(NamedTuple):
    """Where a process is: its generation, and a fingerprint of its state."""

    generation: int
    fingerprint: int


class Replicas:
    """The processes of a `torch.distributed` group that hold one search.

    Parameters
    ----------
    opt : Optimizer
        The search, created with the same arguments and the same ``rng`` in every process.
    group : process group, optional
        By default the default group of `torch.distributed`.
    check_every : int
        The processes compare fingerprints of their states after so many generations. If they
        differ, every process warns and takes the state that most of them have. Without a majority,
        as with two processes, this is the state of the first of them, and the warning says so.

    Notes
    -----
    Creating this object brings all processes to the same state: that of the process with the most
    generations. If a process dies, the exchange of the others raises a RuntimeError, and their
    searches stay as they were before the generation. Start the process again, form a new group and
    create a new `Replicas`: the new process gets the state of the others.

    Examples
    --------
    Run with ``torchrun --nproc-per-node=4 program.py``:

    >>> def main():  # doctest: +SKIP
    ...     torch.distributed.init_process_group()
    ...     opt = fmnes.Optimizer(x0, 0.1, method="cr-fm-nes", rng=1)
    ...     replicas = Replicas(opt)
    ...     while not opt.stop():
    ...         replicas.step(evaluate)  # evaluate(i) writes candidate i and returns its value
    """

    def __init__(self, opt: Optimizer, *, group: Any = None, check_every: int = 100) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError(f"opt: expected an fmnes.Optimizer, got {opt!r}")
        if opt.budget.timeout is not None:
            raise ValueError(
                "opt: expected a search without timeout, because the clocks of the processes "
                f"differ, got timeout={opt.budget.timeout}"
            )
        advice = "start the process again, form a new process group and create a new Replicas"
        self.opt, self._group = opt, Group(group, "replicas", advice)
        self._check_every = checks.integer("check_every", check_every, least=1)
        self.rank, self.size = self._group.rank, self._group.size
        self.repaired = 0  # how often this process got its state from another
        self._check_setup()
        self._agree()

    @property
    def share(self) -> range:
        """The numbers of the candidates that this process evaluates."""
        return range(self.rank, self.opt.popsize, self.size)

    def step(self, evaluate: Callable[[int], float]) -> None:
        """Run one generation: ``evaluate(i)`` returns the value of candidate i.

        If it raises an error in one process, the others raise a RuntimeError that names it, and all
        searches stay as they were. If the update fails in one process, for lack of memory, the next
        step raises a RuntimeError in all of them: create a new `Replicas`.
        """
        self._tell(lambda: [evaluate(i) for i in self.share])

    def tell(self, values: Any) -> None:
        """Pass the values of `share`, exchange them with the other processes, and update."""
        self._tell(lambda: values)

    def _tell(self, evaluate: Callable[[], Any]) -> None:
        # Whether it failed, its generation, and its values.
        sent = np.full(2 + -(-self.opt.popsize // self.size), np.nan)
        sent[1] = self.opt.nit
        try:
            own = self._read_values(evaluate())
            sent[0], sent[2 : 2 + own.size] = 0, own
        except BaseException as error:  # the others wait for the values
            sent[0] = 1
            self._exchanged(sent, f"{type(error).__name__}: {error}")
            raise
        everyone = self._exchanged(sent, None)
        self.opt.hand_out()  # whether or not this process had a candidate
        is_checked = (self.opt.nit + 1) % self._check_every == 0
        try:
            self.opt.tell(everyone.T.ravel()[: self.opt.popsize])
        finally:  # the others wait for a process that fails, too
            if is_checked:
                self._agree()

    def _read_values(self, values: Any) -> NDArray[np.float64]:
        own = np.asarray([float(value) for value in values], np.float64)
        if own.shape != (len(self.share),):
            raise ValueError(f"values: expected {len(self.share)} numbers, got {own.size}")
        return own

    def _exchanged(self, sent: NDArray[np.float64], failure: str | None) -> NDArray[np.float64]:
        """The values of all processes, a row each; raise an error if another process failed."""
        everyone: NDArray[np.float64] = self._group.gather(torch.from_numpy(sent)).numpy()
        if everyone[:, 0].any():
            failures = self._group.objects(failure)
            if failure is None:
                said = "; ".join(f"process {r}: {f}" for r, f in enumerate(failures) if f)
                raise RuntimeError(
                    f"replicas: another process could not evaluate its candidates ({said}). "
                    "The search is as it was before this generation"
                )
        generations = everyone[:, 1].astype(int).tolist()
        if len(set(generations)) > 1:
            raise RuntimeError(
                "replicas: expected the same generation in every process, got "
                f"{generations}: `tell` has failed in some of them. The search is as it was before "
                "this generation; create a new Replicas in every process, which brings all of them "
                "to the same state"
            )
        return everyone[:, 2:]

    # === Agreement ===

    def _check_setup(self) -> None:
        """Raise an error if the processes were not started with the same search."""
        setup = self.opt.setup
        own = setup.method, self.opt.dim, self.opt.popsize, setup.seed, str(setup.settings)
        everyone = self._group.objects(own)
        for rank, other in enumerate(everyone):
            if other != everyone[0]:
                raise ValueError(
                    "opt: expected the same method, variables, popsize and rng in every process, "
                    f"got {everyone[0]} in process 0 and {other} in process {rank}"
                )

    def _agree(self) -> None:
        """Bring every process to the state that most of the furthest ones have."""
        standing = _Standing(self.opt.nit, state_fingerprint(self.opt))
        everyone = self._group.objects(standing)
        if len(set(everyone)) == 1:
            return
        furthest = max(other.generation for other in everyone)
        votes = Counter(other for other in everyone if other.generation == furthest)
        chosen = votes.most_common(1)[0][0]
        source = everyone.index(chosen)
        if len(votes) > 1:
            self._say_who_differs(everyone, votes, source)
        needed, like = standing != chosen, self.opt.like
        saved = received(self._group, source, self.opt.to_saved(), like, needed=needed)
        if needed:
            self.opt.__setstate__(saved)
            self.repaired += 1

    def _say_who_differs(
        self, everyone: list[_Standing], votes: Counter[_Standing], source: int
    ) -> None:
        """Warn, in every process, that states of the same generation are not the same."""
        chosen = everyone[source]
        others = [rank for rank, other in enumerate(everyone) if other in votes and other != chosen]
        why = "which most processes have"
        if list(votes.values()).count(votes[chosen]) > 1:
            why = (
                "but no majority says that it is the right one; to be sure, continue from a "
                "checkpoint that was saved before"
            )
        warnings.warn(
            f"replicas: after generation {chosen.generation}, the states of processes {others} "
            f"differ from that of process {source}. All continue with that of process {source}, "
            f"{why}",
            RuntimeWarning,
            stacklevel=4,
        )


def state_fingerprint(opt: Optimizer) -> int:
    """A number of 64 bits that depends on every bit of the state; computed where the state is."""
    total = 0
    for field in opt.to_saved()["state"]:
        tensor = field if isinstance(field, torch.Tensor) else torch.from_numpy(np.array(field))
        bits = tensor.detach().reshape(-1)
        bits = bits.view(torch.int64 if bits.element_size() == 8 else torch.int32)
        total = 31 * total + _weighted_sum(bits)
    return total % 2**64


def _weighted_sum(bits: Any) -> int:
    """The sum of bits[j] (2 j + 1) modulo 2^64: odd factors, so no single change is lost."""
    total = 0
    for start in range(0, bits.shape[0], _PIECE):
        piece = bits[start : start + _PIECE].to(torch.int64)
        odd = torch.arange(start, start + len(piece), device=bits.device) * 2 + 1
        total += int((piece * odd).sum())
    return total % 2**64
