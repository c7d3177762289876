"""The contract: what an Optimizer expects of an engine, and what both sides exchange."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from fmnes._arrays import Array
from fmnes.algorithms import Algorithm
from fmnes.draws import Address


class Generation(NamedTuple):
    """What one generation showed: first figures of its values, then figures of the new state.

    The compiled kernels return a record with the same fields (native/records.hpp).
    """

    nan: int  # how many values are NaN
    feasible: int  # how many can be ranked: neither +inf nor NaN
    least: float  # smallest and largest feasible value; inf if there is none
    most: float
    size: float  # largest |value| of the feasible ones
    median: float  # infeasible ones count as inf
    flat: bool  # all values are equal, and finite
    sigma: float  # the step size
    axis_ratio: float  # longest over shortest axis
    norm_v: float  # |v|; NaN for a method without v
    phase: int  # 1 movement, 2 stagnation, 3 convergence; 0 for a method without phases
    deviation_min: float  # smallest and largest standard deviation of a coordinate
    deviation_max: float
    mean_max: float  # largest |coordinate| of the mean
    shrunk: bool  # every deviation is below tolx times its initial value, or not resolved


class EngineSpec(NamedTuple):
    """What an engine needs: a method, its current state, and the address of its draws."""

    algorithm: Algorithm
    params: Any  # the method's Params
    state: Any  # the method's State, after `address.generation` generations
    address: Address
    tolx: float  # a deviation has converged below tolx times its initial value
    initial: Array | None = None  # the initial deviations; those of `state` if None
    best: Array | None = None  # the best candidate so far, in search coordinates
    owned: bool = False  # nobody else holds the arrays of `state`, so the engine may change them


class Engine(Protocol):
    """Computes the generations of one run, in search coordinates.

    An engine is a class that is called with an `EngineSpec`. Between `ask` and `tell` it keeps the
    draws of the generation, or makes them again from their addresses. Two engines for the same spec
    propose the same candidates up to rounding. CONTRIBUTING.md describes how to add one.
    """

    def __init__(self, spec: EngineSpec, /) -> None: ...

    @property
    def params(self) -> Any:
        """The method's constants."""

    @property
    def state(self) -> Any:
        """The method's State now; it may be made of views that change with the next `tell`."""

    @property
    def initial(self) -> Array:
        """The standard deviations of the coordinates at the start of the run, shape (d,)."""

    @property
    def best(self) -> Array | None:
        """The best candidate so far; undefined before the first feasible one."""

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Return candidates ``first`` to ``last - 1`` as a fresh array, or fill ``out`` (NumPy).

        A candidate does not depend on ``first`` and ``last``: alone or within a larger range, its
        coordinates are exactly the same.
        """

    def tell(self, values: Array, best_so_far: float) -> Generation:
        """Update the state from the values of all candidates, and say what the generation showed.

        The values are a NumPy array of float64, or an array that a `Reader` reads.

        A candidate better than ``best_so_far`` becomes `best`.
        """


@runtime_checkable
class Reader(Protocol):
    """An engine that can also take values where they are, without a copy to the host."""

    def reads(self, values: Any) -> bool:
        """Whether `tell` takes these values as they are."""


@runtime_checkable
class Writer(Protocol):
    """An engine that can also write parts of a candidate where its owner wants them."""

    def write(self, candidate: int, start: int, out: Array) -> None:
        """Write coordinates from ``start`` on into a contiguous tensor on the engine's device.

        They are rounded to the tensor's dtype; their number is that of its elements.
        """
