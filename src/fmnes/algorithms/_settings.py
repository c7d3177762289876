"""What the settings of every method have in common: what the search asks of them."""

from dataclasses import dataclass
from typing import Any, Self

from fmnes.algorithms._records import Shape


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """Base class of the settings of all methods, with the answers that most of them give."""

    @property
    def tries_steps(self) -> bool:
        """Whether the first generation may try other step sizes if sigma0 was given."""
        return False

    def with_fixed_rates(self) -> Self:
        """The settings for a search with integers, choices or constraints.

        The method does not see where the centres of discrete variables are, so that its own mean
        drifts along their coordinates. It does not see the multipliers of constraints either, which
        change the values from one generation to the next. Learning rates that follow the noise
        would take both for noise.
        """
        return self

    def with_constraints(self) -> Self:
        """The settings for a search whose ranking includes penalties of constraints."""
        return self.with_fixed_rates()

    @property
    def detects_noise(self) -> bool:
        """Whether `minimize` evaluates x0 twice, to see whether the objective is noisy."""
        return False

    def for_noise(self) -> Self:
        """The settings for an objective that was found to be noisy."""
        return self

    def for_restart(self) -> Self:
        """The settings of runs after the first one of a restart schedule."""
        return self

    @property
    def adapts_popsize(self) -> bool:
        """Whether the method chooses the size of each generation (`Algorithm.next_popsize`)."""
        return False

    @property
    def given_shape(self) -> dict[str, Any]:
        """The parts of the initial shape (D, v, C) that the user has set, not checked."""
        given = vars(self)
        return {name: given[name] for name in Shape._fields if given.get(name) is not None}
