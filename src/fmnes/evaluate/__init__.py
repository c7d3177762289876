"""Evaluation of populations: serial, vectorized, in processes, in any pool with ``submit``.

The optimizer hands over an (n, d) array and gets an `Outcome`; everything that can go wrong in
between (an exception, a bad value, a hang, a dead worker) is settled here. The way of the data:

    Evaluator.evaluate -> a plain loop                                   (no pool)
                       -> waves through a map                            (`from_map`)
                       -> _driver: submit, wait, retry -> slots          (a pool)
                            a slot is one process of ours (_worker) or somebody's pool (_pool)

In a worker `_guard` calls the objective, and `_values` turns what it returned into a float.
"""

from fmnes.evaluate._evaluator import Evaluator, evaluate_vectorized, read_only
from fmnes.evaluate._outcome import EvaluationError, Outcome
from fmnes.evaluate._values import to_value, to_values

__all__ = [
    "EvaluationError",
    "Evaluator",
    "Outcome",
    "evaluate_vectorized",
    "read_only",
    "to_value",
    "to_values",
]
