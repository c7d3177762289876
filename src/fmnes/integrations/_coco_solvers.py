"""Who is benchmarked: a name of the command line becomes a factory of ask/tell objects.

    cr-fm-nes, vd-cma, ...     a method of THE TABLE
    cr-fm-nes:paper            one of its variants
    pycma, pycma:vd            pycma's CMA-ES, and its VD-CMA
    package.module:factory     anything that asks and tells

``factory(x0=, sigma0=, seed=, restart=)`` begins run number ``restart`` (0, 1, ...) on a problem
and returns an object with ``ask()`` (rows), ``tell(f)`` or ``tell(x, f)``, and ``stop()`` (true
when this run should end). Its arguments are passed by name: a factory with others, such as those of
``fmnes paper --beside``, fails at once. Ours and pycma's double their population from run to run,
as IPOP-CMA-ES does: it is what the data of COCO's archive are compared by.
"""

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes._optimizer import Optimizer
from fmnes.algorithms import METHODS
from fmnes.experiments import ask_tell
from fmnes.experiments.ask_tell import AskTell
from fmnes.experiments.extras import require

_PEERS = ("pycma", "pycma:vd")


Factory = Callable[..., AskTell]  # of x0, sigma0, seed and restart, by name


@cache
def factory_of(name: str) -> Factory:
    """What starts the solver of that name, after one trial start."""
    method, _, variant = name.partition(":")
    if method in METHODS:
        start: Factory = partial(_ours, method, _settings(method, variant))
    elif method == "pycma":
        if name not in _PEERS:
            raise ValueError(f"solvers: expected {' or '.join(_PEERS)}, got {name!r}")
        require("coco", "cma")
        start = partial(_pycma, variant)
    else:
        start = ask_tell.imported("solvers", name, [*METHODS, *_PEERS])
    ask_tell.begun("solvers", name, start, x0=np.zeros(20), sigma0=2.0, seed=1, restart=0)
    return start


def label_of(name: str) -> str:
    """What its data and its lines in the figures are called: all file systems and COCO take it."""
    return re.sub(r"[^\w.-]", "-", name)


def _settings(method: str, variant: str) -> Any:
    settings = METHODS[method].Settings
    if not variant:
        return settings()
    if "variant" not in [f.name for f in fields(settings)]:
        raise ValueError(f"solvers: expected {method}, which has no variants, got {variant!r}")
    return settings(variant=variant)


def _ours(
    method: str, settings: Any, *, x0: NDArray[np.float64], sigma0: float, seed: int, restart: int
) -> AskTell:
    popsize = METHODS[method].default_popsize(x0.size) * 2**restart
    return Optimizer(x0, sigma0, method=settings, popsize=popsize, rng=seed)


def _pycma(
    sampler: str, *, x0: NDArray[np.float64], sigma0: float, seed: int, restart: int
) -> AskTell:
    """A run of pycma with its defaults, silent."""
    import cma
    from cma.restricted_gaussian_sampler import GaussVDSampler

    options = {"seed": seed, "popsize_factor": 2**restart, "verbose": -9, "verb_log": 0}
    if sampler == "vd":
        options = GaussVDSampler.extend_cma_options(options)
    run: AskTell = cma.CMAEvolutionStrategy(x0, sigma0, options)
    return run
