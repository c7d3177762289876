"""The solvers of ``fmnes coco`` by name.

    cr-fm-nes, vd-cma, ...     a method of this library
    cr-fm-nes:paper            one of its variants
    pycma, pycma:vd            pycma's CMA-ES, and its VD-CMA
    package.module:factory     a solver of the user

``factory(x0=, sigma0=, seed=, restart=)`` starts run number ``restart`` (0, 1, ...). It
returns an object with ``ask()``, ``tell(f)`` or ``tell(x, f)``, and ``stop()``. Our methods and
pycma's double their population from run to run, like IPOP-CMA-ES in COCO's archive.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes._optimizer import Optimizer
from fmnes.algorithms import METHODS, MethodName
from fmnes.benchmarking import ask_tell
from fmnes.benchmarking.ask_tell import AskTell
from fmnes.benchmarking.packages import pycma, require

_PYCMA = {"pycma": "full", "pycma:vd": "vd"}

Factory = Callable[..., AskTell]  # of x0, sigma0, seed and restart, by name


@cache
def factory_of(name: str) -> Factory:
    """Return the factory of a solver, after one start to see that it works."""
    method, _, variant = name.partition(":")
    if method in METHODS:
        factory: Factory = partial(_ours, method, _settings(method, variant))
    elif name in _PYCMA:
        require("coco", "cma")
        factory = partial(_pycma, _PYCMA[name])
    else:
        factory = ask_tell.imported("solvers", name, [*METHODS, *_PYCMA])
    ask_tell.start("solvers", name, factory, x0=np.zeros(20), sigma0=2.0, seed=1, restart=0)
    return factory


def _settings(method: MethodName, variant: str) -> Any:
    settings = METHODS[method].Settings
    if not variant:
        return settings()
    if "variant" not in [f.name for f in fields(settings)]:
        raise ValueError(f"solvers: expected {method}, which has no variants, got {variant!r}")
    return settings(variant=variant)


def _ours(
    method: MethodName,
    settings: Any,
    *,
    x0: NDArray[np.float64],
    sigma0: float,
    seed: int,
    restart: int,
) -> AskTell:
    popsize = METHODS[method].default_popsize(x0.size) * 2**restart
    if restart:
        settings = settings.for_restart()
    return Optimizer(x0, sigma0, method=settings, popsize=popsize, rng=seed)


def _pycma(
    kind: str, *, x0: NDArray[np.float64], sigma0: float, seed: int, restart: int
) -> AskTell:
    run: AskTell = pycma(kind, x0, sigma0, seed=seed, popsize_factor=2**restart)
    return run
