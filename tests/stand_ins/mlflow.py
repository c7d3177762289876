"""Stands in for MLflow: the functions that docs/callbacks.md calls, with their checks.

The real package is large: it brings a server and a database with it.
"""

import contextlib
import math
import os

_logged = []


@contextlib.contextmanager
def start_run():
    _logged.clear()
    yield
    assert _logged


def log_params(params):
    assert all(isinstance(name, str) for name in params)


def log_metrics(metrics, step):
    assert all(type(value) is float and math.isfinite(value) for value in metrics.values())
    assert type(step) is int
    assert not _logged or step > _logged[-1]
    _logged.append(step)


def log_artifact(path):
    assert os.path.isfile(path)
