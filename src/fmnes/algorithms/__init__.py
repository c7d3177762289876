"""The registry of the methods: name -> module.

One paper, one file. Each module holds three plain records: settings (what a user may choose),
`Params` (computed once from the settings, d and lambda) and `State` (what changes from generation
to generation), and the pure functions of `Algorithm`. What several methods share is in the modules
whose names start with an underscore.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from fmnes._arrays import Array
from fmnes.algorithms import (
    auto,
    cma_es,
    cr_fm_nes,
    dx_nes_ic,
    fm_nes,
    r1_nes,
    sep_cma,
    snes,
    vd_cma,
    xnes,
)
from fmnes.algorithms._records import Shape, Summary
from fmnes.algorithms._settings import MethodSettings as MethodSettings


class Algorithm(Protocol):
    """What the module of a method offers: four constants, three records and thirteen functions.

    A module of pure functions satisfies this Protocol; the type checker compares each module of
    the registry with it. `Params` and `State` are NamedTuples:

    - Beside its own constants, `Params` has `dim`, `popsize`, `refresh_every` (the number of
      generations between two calls of `refresh`; 0 for never) and `store_draws` (False: draws are
      made again instead of kept from ask to tell). `patience` multiplies the number of generations
      that the rule of stagnation looks at by default; 1 for most methods.
    - `State` holds arrays of one dtype on one device, of which the search reads `mean`. It is saved
      in checkpoints under the names of its fields. Its arrays keep their shapes, apart from those
      that `GROWING` lists.
    - `Settings` is a `MethodSettings`, a frozen dataclass that checks its fields
      (`fmnes._checks.fields`), apart from `D`, `v` and `C`: these are checked when a search starts,
      because only then is d known, and become the `Shape` given to `init`.

    The functions work on arrays of any library, under `jit`, `vmap` and `scan` too: no item
    assignment, and no Python ``if`` on array values.
    """

    COVARIANCE: str  # of the sampling distribution, as `fmnes methods` shows it
    LINEAR: bool  # O(d) time a candidate, and candidates can be built one by one
    ANTITHETIC: bool  # z has lambda/2 rows; candidate i + lambda/2 mirrors candidate i
    # For each array that grows: what its sizes are. "d" is the dimension, "0|d" nothing or d, any
    # other name a number from 0 to d, the same one for all arrays. They are not all 0. {} for most
    # methods.
    GROWING: dict[str, tuple[str, ...]]
    Settings: type[Any]  # a subclass of MethodSettings
    Params: type[Any]
    State: type[Any]

    def default_popsize(self, dim: int, /) -> int:
        """The population size if the user gives none."""

    def params(self, dim: int, popsize: int, settings: Any = ...) -> Any:
        """Every constant that depends on the dimension, the population size and the settings."""

    def fixed(self, params: Any) -> Any:
        """The Params for programs with fixed shapes, under which `resized` changes nothing.

        Most methods use `_records.as_they_are`.
        """

    def init(self, params: Any, mean: Array, sigma: Array, shape: Shape, z: Array) -> Any:
        """The first state; z of shape (d,) is the draw that an initial direction comes from."""

    def transform(self, params: Any, state: Any, z: Array) -> Array:
        """Steps x - m for rows of draws."""

    def draws_of(self, params: Any, state: Any, steps: Array) -> Array:
        """The draws of rows of steps x - m: `transform` backwards, for points from elsewhere."""

    def ask(self, params: Any, state: Any, z: Array) -> Array:
        """The population of shape (lambda, d) from its draws."""

    def tell(self, params: Any, state: Any, z: Array, f: Array) -> Any:
        """The next state, from the draws given to `ask` and the values of its candidates."""

    def refresh(self, params: Any, state: Any) -> Any:
        """The same state with an expensive part computed again, such as a decomposition.

        A method that has nothing of the kind uses `_records.unchanged`.
        """

    def resized(self, params: Any, state: Any) -> Any:
        """The state with larger arrays, if its model needs them (`GROWING`).

        Engines call it after `refresh`, on array values and never under `jit`. Most methods use
        `_records.unchanged`.
        """

    def next_popsize(self, params: Any, state: Any, least: int) -> tuple[int, Any]:
        """The size of the next generation, and the state for it; ``least`` is the first size.

        Searches whose settings have `adapts_popsize` call it after each generation, on array
        values and never under `jit`. Most methods use `_records.same_popsize`.
        """

    def shape(self, params: Any, state: Any) -> Shape:
        """The part of the state that a warm start takes over, apart from the mean and sigma."""

    def summary(self, params: Any, state: Any) -> Summary:
        """What the history and the stopping rules read."""


MethodName = Literal[
    "auto",
    "cr-fm-nes",
    "fm-nes",
    "dx-nes-ic",
    "xnes",
    "snes",
    "r1-nes",
    "vd-cma",
    "sep-cma",
    "cma-es",
]
METHODS: dict[MethodName, Algorithm] = {
    "auto": auto,
    "cr-fm-nes": cr_fm_nes,
    "fm-nes": fm_nes,
    "dx-nes-ic": dx_nes_ic,
    "xnes": xnes,
    "snes": snes,
    "r1-nes": r1_nes,
    "vd-cma": vd_cma,
    "sep-cma": sep_cma,
    "cma-es": cma_es,
}

# Records of methods that files of earlier versions hold without some of their fields: functions
# that return the fields, complete. `storage` calls them when it reads a file.
UPGRADES: dict[type[Any], Callable[[dict[str, Any]], dict[str, Any]]] = {
    auto.Auto: auto.upgraded_settings,
    auto.State: auto.upgraded_state,
}
