"""The formula of the published studies, as R reads it: image numbers of the two types are one series.

rating ~ type + (1 + type | pid) + (1 + type | image_id), with the published files, in which real and modified images
have a series of numbers each. Two things follow that `mixed` avoids by taking the images of the two types for different
ones:

- A number that both series have is taken for one image, whose real and modified version are correlated.
- There are two random effects for each number. lme4 stops where these are as many as the ratings, although with
  distinct images one of the two never has an effect.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cleanset.studies.realness.ratings import KINDS, Rating


@dataclass(frozen=True, slots=True)
class PublishedFormula:
    """Random effects of images in the published formula, and numbers of both a real and a modified image."""

    ratings: int
    random_effects: int
    shared_numbers: int

    @property
    def stops(self) -> bool:
        """Whether lme4 refuses the model, "number of observations <= number of random effects"."""
        return self.ratings <= self.random_effects

    @property
    def differs(self) -> bool:
        """Whether the formula cannot be fitted, or is of another model than the one with distinct images."""
        return self.stops or self.shared_numbers > 0


def published_formula(ratings: Iterable[Rating]) -> PublishedFormula:
    """Random effects and shared numbers in one study's ratings."""
    rows = list(ratings)
    real, modified = ({each.image for each in rows if each.kind == kind} for kind in KINDS)
    return PublishedFormula(len(rows), 2 * len(real | modified), len(real & modified))
