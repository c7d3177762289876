"""What an Evaluator does about evaluations that fail or take long."""

from typing import NamedTuple, get_args

from fmnes import _checks as checks
from fmnes.evaluate._outcome import OnError


class Policies(NamedTuple):
    """The policies, as described in `Evaluator`."""

    timeout: float | None = None
    retries: int = 0
    on_error: OnError = "raise"
    fraction: float = 1.0
    chunksize: int | None = None

    def checked(self) -> "Policies":
        """The same policies as plain numbers; TypeError or ValueError if one is wrong."""
        checks.choice("on_error", self.on_error, get_args(OnError))
        fraction = checks.real("fraction", self.fraction, above=0)
        if fraction > 1:
            raise ValueError(f"fraction: expected at most 1, got {self.fraction!r}")
        if fraction < 1 and self.on_error == "raise":
            raise ValueError(
                "fraction: expected 1 with on_error='raise', because late candidates count as "
                f"failed, got {self.fraction!r}"
            )
        timeout, chunksize = self.timeout, self.chunksize
        return Policies(
            None if timeout is None else checks.finite("timeout", timeout, above=0),
            checks.integer("retries", self.retries, least=0),
            self.on_error,
            fraction,
            None if chunksize is None else checks.integer("chunksize", chunksize, least=1),
        )
