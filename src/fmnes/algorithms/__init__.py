"""THE TABLE: method name -> module. `minimize`, the tests, the docs and the command line read it.

One paper, one file. Each module holds three plain records: settings (what a user may choose),
`Params` (derived once from the settings, d and lambda) and `State` (what changes), and the pure
functions of `Algorithm`.
"""

from typing import Any, Protocol

from fmnes._arrays import Array
from fmnes.algorithms import (
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
from fmnes.algorithms._shared import Report, Shape


class Algorithm(Protocol):
    """What every module of the registry offers.

    Beside its own constants, `Params` has `dim`, `popsize`, `refresh_every` (generations from one
    `refresh` to the next; 0 for never) and `store_draws` (False: draws are made again instead of
    kept from ask to tell).
    """

    LINEAR: bool  # O(d) time a candidate, and candidates can be built one by one
    ANTITHETIC: bool  # z has lambda/2 rows; candidate i + lambda/2 mirrors candidate i
    Settings: type[Any]
    Params: type[Any]
    State: type[Any]

    def default_popsize(self, dim: int, /) -> int:
        """The population size where the user names none."""

    def params(self, dim: int, popsize: int, settings: Any = ...) -> Any:
        """Every constant that depends on the dimension and the population size only."""

    def init(self, params: Any, mean: Array, sigma: Array, shape: Shape, z: Array) -> Any:
        """The first state; z of shape (d,) is the draw that an initial direction comes from."""

    def transform(self, params: Any, state: Any, z: Array) -> Array:
        """Steps x - m for rows of draws."""

    def ask(self, params: Any, state: Any, z: Array) -> Array:
        """The population of shape (lambda, d) from its draws."""

    def tell(self, params: Any, state: Any, z: Array, f: Array) -> Any:
        """The next state, from the draws given to `ask` and the values of its candidates."""

    def refresh(self, params: Any, state: Any) -> Any:
        """The same state with what rounding wears out, or what is expensive, computed again."""

    def shape(self, params: Any, state: Any) -> Shape:
        """What a warm start takes over beside the mean and sigma."""

    def report(self, params: Any, state: Any) -> Report:
        """What the history and the stopping rules look at."""


METHODS: dict[str, Algorithm] = {
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
