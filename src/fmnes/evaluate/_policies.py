"""What an Evaluator is told about evaluations that go wrong or take long."""

import math
from typing import Any, NamedTuple, get_args

import numpy as np

from fmnes.evaluate._outcome import OnError


class Policies(NamedTuple):
    """See `Evaluator`."""

    timeout: float | None = None
    retries: int = 0
    on_error: OnError = "raise"
    fraction: float = 1.0
    chunksize: int | None = None

    def checked(self) -> "Policies":
        """These, if they make sense; else TypeError or ValueError."""
        timeout, fraction = self.timeout, self.fraction
        if timeout is not None:
            _check_number("timeout", timeout, "seconds or None")
            if not (timeout > 0 and math.isfinite(timeout)):
                raise ValueError(f"timeout: expected a positive number of seconds, got {timeout!r}")
        _check_int("retries", self.retries, least=0)
        if self.on_error not in get_args(OnError):
            expected = " or ".join(map(repr, get_args(OnError)))
            raise ValueError(f"on_error: expected {expected}, got {self.on_error!r}")
        _check_number("fraction", fraction, "a number")
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction: expected a share above 0 and up to 1, got {fraction!r}")
        if fraction < 1 and self.on_error == "raise":
            raise ValueError(
                "fraction: expected 1 with on_error='raise', because what comes late has failed; "
                f"got {fraction!r}"
            )
        if self.chunksize is not None:
            _check_int("chunksize", self.chunksize, least=1)
        return self


def _check_number(name: str, value: Any, expected: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


def _check_int(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: expected an int, got {type(value).__name__}: {value!r}")
    if value < least:
        raise ValueError(f"{name}: expected {least} or more, got {value}")
