"""The published studies' formula, applied to ratings as it is written: what lme4 would do with it.

Read as R reads it, the formula is rating ~ type + (1 + type | pid) + (1 + type | image_id), and the published files
number the real and the modified images each from 1. So a real and a modified image of one number are taken for the same
image, and lme4 refuses the model where the images have as many random effects as there are ratings. `mixed` avoids both
by taking the images of the two types for different ones.
"""

from collections.abc import Iterable
from typing import NamedTuple

from cleanset.studies.realness.ratings import IMAGE_KINDS, Answer


class PublishedFormula(NamedTuple):
    """Random effects of images in the published formula, and numbers of both a real and a modified image.

    `stops`: whether lme4 refuses the model, "number of observations <= number of random effects".
    """

    ratings: int
    random_effects: int
    shared_numbers: int
    stops: bool


def published_formula(ratings: Iterable[Answer]) -> PublishedFormula:
    """Random effects and shared numbers in one study's ratings."""
    rows = list(ratings)
    real, modified = ({each.image for each in rows if each.kind == kind} for kind in IMAGE_KINDS)
    effects = 2 * len(real | modified)
    return PublishedFormula(len(rows), effects, len(real & modified), len(rows) <= effects)
