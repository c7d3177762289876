"""Stands in for Weights & Biases: the functions that docs/callbacks.md calls, with their checks.

The real package needs an account, or a server of its own.
"""

import math


class Run:
    def __init__(self):
        self.logged, self.summary, self.step = [], {}, 0

    def log(self, data, step):
        assert all(type(value) in (int, float) and math.isfinite(value) for value in data.values())
        assert type(step) is int
        assert step > self.step
        self.step = step
        self.logged.append(data)

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        assert kind is not None or self.logged


def init(*, project, config):
    assert isinstance(project, str)
    assert isinstance(config, dict)
    return Run()
