"""Between the coordinates of a search and the user's: bounds, fixed and discrete variables."""

from typing import NamedTuple

from array_api_compat import array_namespace

from fmnes._arrays import Array
from fmnes.variables.bounds import Box
from fmnes.variables.discrete import Discrete, Margin, to_user


class CoordinateMap(NamedTuple):
    """The maps between them, as they are in one generation."""

    box: Box | None
    discrete: Discrete | None
    margin: Margin | None

    @property
    def are_the_same(self) -> bool:
        """Whether the user's coordinates are those of the search."""
        return self.box is None and self.discrete is None

    def latent(self, mean: Array, y: Array) -> Array:
        """Return coordinates of the search with the latent numbers of discrete variables."""
        if self.discrete is None or self.margin is None:
            return y
        return self.discrete.latent(self.margin, mean, y)

    def latent_mean(self, mean: Array) -> Array:
        """Return the mean, with the latent numbers of discrete variables."""
        if self.discrete is None or self.margin is None:
            return mean
        return self.discrete.latent_mean(self.margin, mean)

    def to_user(self, latent: Array) -> Array:
        """Return what `latent` returned in the user's coordinates."""
        return to_user(self.box, self.discrete, latent)

    def deviations_to_user(self, mean: Array, deviations: Array) -> Array:
        """Return standard deviations at the mean of the search as those of the user's variables."""
        xp, y = array_namespace(mean), mean
        if self.margin is not None:
            y, deviations = self.latent_mean(mean), self.margin.scale * deviations
        if self.box is None:
            return xp.asarray(deviations, copy=True)
        return self.box.deviations_to_user(xp, y, deviations)
