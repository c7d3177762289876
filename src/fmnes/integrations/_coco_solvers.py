"""Who is benchmarked: a name of the command line becomes a factory of ask/tell objects.

    cr-fm-nes, vd-cma, ...     a method of THE TABLE
    cr-fm-nes:paper            one of its variants
    pycma, pycma:vd            pycma's CMA-ES, and its VD-CMA
    package.module:factory     anything that asks and tells

``factory(x0, sigma0, seed, restart)`` begins run number ``restart`` (0, 1, ...) on a problem and
returns an object with ``ask()`` (rows), ``tell(f)`` or ``tell(x, f)``, and ``stop()`` (true when
this run should end). Ours and pycma's double their population from run to run, as IPOP-CMA-ES does:
it is what the data of COCO's archive are compared by.
"""

import importlib.util
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmnes._optimizer import Optimizer
from fmnes.algorithms import METHODS

_INSTALL = 'pip install "fmnes[coco]"'
_PEERS = ("pycma", "pycma:vd")


class AskTell(Protocol):
    """One run of a solver."""

    def ask(self) -> Sequence[NDArray[np.float64]]:
        """Candidates to evaluate, one a row."""

    def tell(self, *told: Any) -> Any:
        """Take in their values: ``tell(f)``, or ``tell(x, f)`` where it needs both."""

    def stop(self) -> Any:
        """Whether this run should end."""


Factory = Callable[[NDArray[np.float64], float, int, int], AskTell]


@cache
def factory_of(name: str) -> Factory:
    """What starts the solver of that name, after one trial start."""
    method, _, variant = name.partition(":")
    if method in METHODS:
        start: Factory = partial(_ours, method, _settings(method, variant))
    elif name in _PEERS:
        start = partial(_pycma, variant)
    else:
        start = _user_factory(name)
    try:
        run = start(np.zeros(20), 2.0, 1, 0)
    except (TypeError, ValueError) as error:
        raise TypeError(f"solvers: {name}(x0, sigma0, seed, restart) fails: {error}") from error
    _check(name, run)
    return start


def label_of(name: str) -> str:
    """What its data and its lines in the figures are called: all file systems and COCO take it."""
    return re.sub(r"[^\w.-]", "-", name)


def takes_candidates(run: AskTell) -> bool:
    """Whether it wants ``tell(x, f)``; ``tell(f)`` otherwise."""
    needed = [
        p
        for p in inspect.signature(run.tell).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) > 1


def _settings(method: str, variant: str) -> Any:
    settings = METHODS[method].Settings
    if not variant:
        return settings()
    if "variant" not in [f.name for f in fields(settings)]:
        raise ValueError(f"solvers: expected {method}, which has no variants, got {variant!r}")
    return settings(variant=variant)


def _ours(
    method: str, settings: Any, x0: NDArray[np.float64], sigma0: float, seed: int, restart: int
) -> AskTell:
    popsize = METHODS[method].default_popsize(x0.size) * 2**restart
    return Optimizer(x0, sigma0, method=settings, popsize=popsize, rng=seed)


def _pycma(
    sampler: str, x0: NDArray[np.float64], sigma0: float, seed: int, restart: int
) -> AskTell:
    """A run of pycma with its defaults, silent."""
    require("cma")
    import cma
    from cma.restricted_gaussian_sampler import GaussVDSampler

    options = {"seed": seed, "popsize_factor": 2**restart, "verbose": -9, "verb_log": 0}
    if sampler == "vd":
        options = GaussVDSampler.extend_cma_options(options)
    run: AskTell = cma.CMAEvolutionStrategy(x0, sigma0, options)
    return run


def _user_factory(name: str) -> Factory:
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ValueError(
            f"solvers: expected one of {', '.join([*METHODS, *_PEERS])} or package.module:factory, "
            f"got {name!r}"
        )
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"solvers: {name!r} cannot be imported: {error}") from error
    if not callable(factory):
        raise TypeError(f"solvers: expected a function {name}, got {factory!r}")
    made: Factory = factory
    return made


def _check(name: str, run: Any) -> None:
    missing = [part for part in ("ask", "tell", "stop") if not callable(getattr(run, part, None))]
    if missing:
        raise TypeError(
            f"solvers: expected {name} to make objects with ask(), tell() and stop(), "
            f"got {type(run).__name__} without {' and '.join(missing)}"
        )


def require(*modules: str) -> None:
    """Complain, with a way out, if an optional package is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise ModuleNotFoundError(f"{missing[0]} is not installed: {_INSTALL}", name=missing[0])
