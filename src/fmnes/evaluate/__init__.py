"""Evaluation of populations: serial, vectorized, in processes, in any pool with ``submit``.

The optimizer hands over an (n, d) array and gets an `Outcome`; everything that can go wrong in
between (an exception, a bad value, a hang, a dead worker) is settled here. The way of the data:

    Evaluator.evaluate -> a plain loop                                   (no pool)
                       -> waves through a map                            (`from_map`)
                       -> _driver: submit, wait, retry -> slots          (a pool)
                            a slot is one process of ours (_worker) or somebody's pool (_pool),
                            of an engine that can do more or less (_engines, _dask, _ray)

`_pace` says how many candidates go out at a time, `_cargo` what each worker gets once. There
`_guard` calls the objective, and `_values` turns what it returned into a float.
"""

from typing import TYPE_CHECKING, Any

from fmnes.evaluate._evaluator import Evaluator, evaluate_vectorized, read_only
from fmnes.evaluate._outcome import EvaluationError, Outcome
from fmnes.evaluate._values import to_value, to_values

if TYPE_CHECKING:
    from fmnes.evaluate._ray import RayExecutor

__all__ = [
    "EvaluationError",
    "Evaluator",
    "Outcome",
    "RayExecutor",
    "evaluate_vectorized",
    "read_only",
    "to_value",
    "to_values",
]


def __getattr__(name: str) -> Any:
    if name == "RayExecutor":  # pools are imported only when asked for
        from fmnes.evaluate._ray import RayExecutor

        return RayExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
