"""How a method's generations are computed: a contract, a registry, and one file per engine.

`contract.py` says what an engine is. `ENGINES` is the registry: the first row that serves a
method, array library, device and dtype is used. Three engines are not in the registry. A search
chooses `asynchronous.py` and `injected.py` by what it does and not by its arrays, and `sharded.py`
needs a group of processes.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from array_api_compat import device, is_jax_array, is_numpy_array, is_torch_array

from fmnes import kernels
from fmnes._arrays import Array
from fmnes.engines.array import ArrayEngine
from fmnes.engines.compiled import CompiledEngine
from fmnes.engines.compiled_auto import CompiledAutoEngine
from fmnes.engines.contract import Engine as Engine
from fmnes.engines.contract import EngineSpec as EngineSpec
from fmnes.engines.contract import Generation as Generation
from fmnes.engines.jax_engine import JaxEngine
from fmnes.engines.triton_auto import TritonAutoEngine
from fmnes.engines.triton_base import available as triton_available
from fmnes.engines.triton_engine import TritonEngine


class Registration(NamedTuple):
    """One engine and what it serves; None means that it serves all of them."""

    name: str
    engine: Callable[[EngineSpec], Engine]
    methods: tuple[str, ...] | None = None
    libraries: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    available: Callable[[], bool] = lambda: True
    # With store_draws=False it saves memory of the device: it computes in the arrays of a state
    # that it owns, and x0 and the best candidate are kept on the host.
    streams: bool = False

    def serves(self, method: str, library: str, device: str, dtype: str) -> bool:
        """Whether this engine computes the method on such arrays, here and now."""
        served = self.methods, self.libraries, self.devices, self.dtypes
        asked = method, library, device, dtype
        fits = all(all_ is None or one in all_ for all_, one in zip(served, asked, strict=True))
        return fits and self.available()

    def streams_with(self, settings: Any) -> bool:
        """Whether a search with these settings (or Params) saves memory of the device."""
        return self.streams and not settings.store_draws


ENGINES = (
    Registration(
        "compiled",
        CompiledEngine,
        methods=("cr-fm-nes",),
        libraries=("numpy",),
        devices=("cpu",),
        dtypes=("float64", "float32"),
        available=lambda: kernels.in_use == "native",
    ),
    Registration(
        "triton",
        TritonEngine,
        methods=("cr-fm-nes",),
        libraries=("torch",),
        devices=("cuda",),
        dtypes=("float64", "float32"),
        available=triton_available,
        streams=True,
    ),
    Registration(
        "triton",
        TritonAutoEngine,
        methods=("auto",),
        libraries=("torch",),
        devices=("cuda",),
        dtypes=("float64", "float32"),
        available=triton_available,
    ),
    Registration(
        "compiled",
        CompiledAutoEngine,
        methods=("auto",),
        libraries=("numpy",),
        devices=("cpu",),
        dtypes=("float64", "float32"),
        available=lambda: kernels.in_use == "native",
    ),
    Registration("jax", JaxEngine, libraries=("jax",)),
    Registration("array", ArrayEngine),
)


def registration(method: str, mean: Array) -> Registration:
    """The first row of the registry that serves a method and the arrays of its state."""
    place = device(mean).type if is_torch_array(mean) else str(device(mean))
    dtype = str(mean.dtype).removeprefix("torch.")
    library = library_of(mean)
    # The last row serves everything.
    row = next(row for row in ENGINES if row.serves(method, library, place, dtype))
    if library == "torch" and place == "cuda":
        _say_what_computes(method, row.name)
    return row


@functools.cache
def _say_what_computes(method: str, engine: str) -> None:
    """Warn once if no row of the registry is made for this method on CUDA tensors."""
    made = [row.methods or () for row in ENGINES if row.devices and "cuda" in row.devices]
    methods = [name for names in made for name in names]
    if method not in methods:
        warnings.warn(
            f"method: fused kernels for CUDA tensors exist for {', '.join(map(repr, methods))} "
            f"only, so {method!r} is computed by the {engine} engine with PyTorch's own "
            "operations, which takes 10 to 100 times as long for a generation",
            RuntimeWarning,
            stacklevel=2,
        )


def library_of(array: Array) -> str:
    """The name of an array's library, as the registry has it."""
    if is_numpy_array(array):
        return "numpy"
    if is_torch_array(array):
        return "torch"
    return "jax" if is_jax_array(array) else type(array).__module__
