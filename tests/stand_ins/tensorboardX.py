"""Stands in for tensorboardX: the methods that docs/callbacks.md calls, with their checks."""

import math


class SummaryWriter:
    def __init__(self, logdir):
        assert isinstance(logdir, str)
        self.steps = {}

    def add_scalar(self, tag, scalar_value, global_step):
        assert type(scalar_value) is float
        assert math.isfinite(scalar_value)
        assert global_step > self.steps.get(tag, 0)
        self.steps[tag] = global_step

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        assert kind is not None or self.steps
