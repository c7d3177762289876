"""The compiled extension; its source is in native/."""

from typing import Any, type_check_only

import numpy as np
from numpy.typing import NDArray

from fmnes.kernels.agnostic import Survey

_Rows = NDArray[Any]  # float64 or float32, in C order
_Vector = NDArray[np.float64]

def compiler() -> str: ...
def level() -> str: ...
def levels() -> list[str]: ...
def levels_here() -> list[str]: ...
def set_level(name: str) -> None: ...
def num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
def weighted_sphere(x: _Rows, scale: _Vector, out: _Vector) -> None: ...
def two_scales(
    x: _Rows, u: _Vector, along: float, across: float, scale: _Vector, out: _Vector
) -> None: ...
def rosenbrock(x: _Rows, out: _Vector) -> None: ...
def rastrigin(x: _Rows, out: _Vector) -> None: ...
def halfspaces(x: _Rows, out: _Vector) -> None: ...
def row_products(z: _Rows, vbar: _Rows | None, a: _Rows | None, norm2: _Rows) -> None: ...
def candidates(
    z: _Rows,
    mean: _Rows | None,
    scale: _Rows,
    c: _Rows | None,
    vbar: _Rows | None,
    mirrored: bool,
    out: _Rows,
) -> None: ...
def moments(
    z: _Rows,
    w1: _Rows | None,
    w2: _Rows | None,
    w3: _Rows | None,
    out1: _Rows | None,
    out2: _Rows | None,
    out3: _Rows | None,
) -> None: ...
def survey(f: _Vector, record: type[Survey]) -> Survey: ...
def normals(seed: int, stream: int, generation: int, first: int, out: _Rows) -> None: ...
def words(seed: int, stream: int, generation: int, row: int, out: NDArray[np.uint32]) -> None: ...
def normals_of_words(words: NDArray[np.uint32], first: _Vector, second: _Vector) -> None: ...
def log_and_exp(x: _Vector, logs: _Vector, exps: _Vector) -> None: ...

@type_check_only
class _CRFMNES:
    """One run. `tell` returns a `record`, which is fmnes.engines.Generation; vectors are views."""

    def __init__(
        self,
        dim: int,
        popsize: int,
        safe: bool,
        store_draws: bool,
        constants: dict[str, float],
        w_hat: _Vector,
        rates: dict[str, _Vector],
        seed: int,
        stream: int,
        generation: int,
        record: type[Any],
    ) -> None: ...
    def set_state(
        self,
        mean: _Rows,
        sigma: float,
        D: _Rows,
        v: _Rows,
        p_sigma: _Rows,
        p_c: _Rows,
        initial: _Rows | None,
        tolx: float,
    ) -> None: ...
    def ask(self, out: _Rows, first: int) -> None: ...
    def tell(self, f: _Vector, best_so_far: float) -> Any: ...
    @property
    def sigma(self) -> float: ...
    @property
    def mean(self) -> _Rows: ...
    @property
    def D(self) -> _Rows: ...
    @property
    def v(self) -> _Rows: ...
    @property
    def p_sigma(self) -> _Rows: ...
    @property
    def p_c(self) -> _Rows: ...
    @property
    def initial(self) -> _Rows: ...
    @property
    def best(self) -> _Rows: ...

class CRFMNES64(_CRFMNES): ...
class CRFMNES32(_CRFMNES): ...

@type_check_only
class _Auto:
    """One run of the method auto, as above; `get_state` fills copies."""

    def __init__(
        self,
        dim: int,
        popsize: int,
        constants: dict[str, float],
        noise: dict[str, float],
        w_hat: _Vector,
        scores: _Vector,
        rates: dict[str, _Vector],
        seed: int,
        stream: int,
        generation: int,
        record: type[Any],
    ) -> None: ...
    def set_state(
        self,
        mean: _Rows,
        sigma: float,
        D: _Rows,
        V: _Rows,
        S: _Rows,
        scouts: _Rows,
        evidence: _Rows,
        p_sigma: _Rows,
        p_c: _Rows,
        D_gradient: _Rows,
        D_signal: float,
        D_noise: float,
        eta: float,
        m_gradient: _Rows,
        m_averages: _Rows,
        sigma_averages: _Rows,
        initial: _Rows | None,
        tolx: float,
    ) -> None: ...
    def get_state(
        self,
        V: _Rows,
        S: _Rows,
        scouts: _Rows,
        evidence: _Rows,
        m_averages: _Rows,
        sigma_averages: _Rows,
    ) -> None: ...
    def ask(self, out: _Rows, first: int) -> None: ...
    def tell(self, f: _Vector, best_so_far: float) -> Any: ...
    @property
    def sigma(self) -> float: ...
    @property
    def eta(self) -> float: ...
    @property
    def D_signal(self) -> float: ...
    @property
    def D_noise(self) -> float: ...
    @property
    def axes(self) -> int: ...
    @property
    def room(self) -> int: ...
    @property
    def mean(self) -> _Rows: ...
    @property
    def D(self) -> _Rows: ...
    @property
    def p_sigma(self) -> _Rows: ...
    @property
    def p_c(self) -> _Rows: ...
    @property
    def D_gradient(self) -> _Rows: ...
    @property
    def m_gradient(self) -> _Rows: ...
    @property
    def initial(self) -> _Rows: ...
    @property
    def best(self) -> _Rows: ...

class Auto64(_Auto): ...
class Auto32(_Auto): ...

def weights_by_candidate(
    by_rank: _Vector, f: _Vector, norm2: _Vector, share_ties: bool, out: _Vector
) -> None: ...
