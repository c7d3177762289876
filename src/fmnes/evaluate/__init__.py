"""Evaluation of populations: in place, in worker processes, in any pool with ``submit``.

An `Evaluator` takes an (n, d) array and returns an `Outcome`. It handles everything that can go
wrong in between: exceptions, bad values, hangs and dead workers. The way of the data:

    Evaluator.evaluate
        without workers   a loop over the rows, or calls of a map     _evaluator
        with workers      Driver: submits chunks of rows, waits,      _driver
                          retries, and records values
                              the workers are WorkerGroups            _group, _workers
                                  processes of our own                _process, _launch, _pipe
                                  pools of the user                   _executor, _dask, _ray
                                  workers that hold the search        cluster/

`_chunks` decides how many candidates go out at a time. `_payload` sends the objective and large
populations to each worker once. In the worker, `_call` calls the objective and catches what it
raises, and `_values` converts its return value to a float.
"""

from fmnes.evaluate._call import ObjectiveCall, call_user, copied
from fmnes.evaluate._driver import Supply
from fmnes.evaluate._evaluator import Evaluator, evaluate_vectorized, read_only
from fmnes.evaluate._launch import end_if_unguarded
from fmnes.evaluate._outcome import (
    EvaluationError,
    Outcome,
    StreamRecord,
    Value,
    ValueCallback,
    attach,
    keep_values,
    kept_values,
)
from fmnes.evaluate._ray import RayExecutor
from fmnes.evaluate._values import to_constraints, to_value, to_values

__all__ = [
    "EvaluationError",
    "Evaluator",
    "ObjectiveCall",
    "Outcome",
    "RayExecutor",
    "StreamRecord",
    "Supply",
    "Value",
    "ValueCallback",
    "attach",
    "call_user",
    "copied",
    "end_if_unguarded",
    "evaluate_vectorized",
    "keep_values",
    "kept_values",
    "read_only",
    "to_constraints",
    "to_value",
    "to_values",
]
