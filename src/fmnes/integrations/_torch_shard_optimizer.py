"""The part of a search that one process holds, when the variables are split over processes."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from fmnes import Optimizer
from fmnes._arrays import Array
from fmnes.algorithms._records import Shape
from fmnes.arguments.setup import Setup
from fmnes.arguments.start import Start
from fmnes.engines import Registration
from fmnes.engines.sharded import ShardedEngine, Share, first_state
from fmnes.integrations._torch_shard_files import ShardFiles
from fmnes.records.history import History
from fmnes.storage.contents import SEARCH
from fmnes.storage.move import moved


class Common(NamedTuple):
    """What the parts of all processes have in common."""

    variables: int
    popsize: int
    seed: int
    generation: int
    sigma: float
    best_f: float


class ShardOptimizer(Optimizer):
    """An Optimizer of the variables of one process, whose stopping rules see all variables."""

    share: Share
    _engine: ShardedEngine

    @classmethod
    def begun(cls, start: Start, share: Share) -> "ShardOptimizer":
        """Return the part of a new search; all processes call this."""
        part = cls.__new__(cls)
        part.share = share
        start = start._replace(setup=_with_one_sigma(start.setup, share))
        part._begin(start, History(), run=0, sigma_factor=1.0)
        largest = float(share.gather(part._engine.initial.max()).max())
        part.record.limits = part.record.limits._replace(deviation0=largest)
        part._engine.measure()
        return part

    @classmethod
    def read(cls, files: ShardFiles, generation: int, like: Array) -> "ShardOptimizer":
        """Return the part that a file holds, on the device of ``like``; it has to `join` then."""
        saved = files.read(generation)
        part = cls.__new__(cls)
        part.share = Share(saved["start"], saved["variables"], _alone)
        part.__setstate__(moved({name: saved[name] for name in SEARCH}, like, may_stream=False))
        return part

    def to_file(self) -> dict[str, Any]:
        """Return what `read` reads."""
        return {**self.to_saved(), "start": self.share.start, "variables": self.dim}

    # === Generations that this process can continue from ===

    @property
    def generations(self) -> set[int]:
        """The generation of the state, and the next one if only its last exchange failed."""
        return {self.nit} if self._engine.prepared is None else {self.nit, self.nit + 1}

    def entered(self, generation: int) -> "ShardOptimizer":
        """Return this part after it has gone to one of its `generations`."""
        prepared = self._engine.prepared
        if generation != self.nit and prepared is not None:
            self._engine.accept()
            self.tell(prepared.values)
        return self

    def join(self, share: Share) -> None:
        """Go on in another process group; all processes call this."""
        self.share = self._engine.share = share
        self._engine.measure()

    @property
    def common(self) -> Common:
        """What has to be the same in every process."""
        sigma, seed = float(self._state.sigma), self.setup.seed
        return Common(self.dim, self.popsize, seed, self.nit, sigma, self.record.best_f)

    # === What differs from an Optimizer ===

    @property
    def dim(self) -> int:
        """The number of variables of all processes."""
        return self.share.dim

    def _first_state(self, params: Any, sigma0: Array, shape: Shape) -> Any:
        setup = self.setup
        return first_state(params, self.share, setup.mean, sigma0, shape, setup.seed)

    def _registration(self, mean: Array) -> Registration:
        return Registration("sharded", partial(ShardedEngine, share=self.share))


def _alone(part: Array) -> Array:
    """The `gather` of a part that has been read, before it joins a group."""
    raise RuntimeError("gather: expected a part that has joined a group, got one that has not")


def _with_one_sigma(setup: Setup, share: Share) -> Setup:
    """The same start with equal deviations: their geometric mean. The rest of them goes into D."""
    own = setup.deviations
    figures = torch.tensor([own.min(), own.max(), np.log(own).sum()], dtype=torch.float64)
    least, most, logs = share.gather(figures).T
    if least.min() == most.max():
        return setup
    sigma = math.exp(float(logs.sum()) / share.dim)
    D = setup.shape.D * torch.tensor(own / sigma).to(setup.mean)
    return setup._replace(
        deviations=np.broadcast_to(sigma, own.shape), shape=setup.shape._replace(D=D)
    )
