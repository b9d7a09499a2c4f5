"""How many images a class should have, and when it is full."""

from math import inf
from typing import Literal

ImagesPerClass = int | Literal["all"]
"""Images of a full class; all: every candidate that is found clean, however many."""


def most_images(images_per_class: ImagesPerClass) -> float:
    """The number of images that a class keeps at most; infinity for all."""
    return inf if images_per_class == "all" else images_per_class


def least_images(images_per_class: ImagesPerClass) -> int:
    """The number of images below which a class is short; with all, one that has no image is."""
    return 1 if images_per_class == "all" else images_per_class


def is_full(kept: int, undecided: int, images_per_class: ImagesPerClass) -> bool:
    """Whether a class is full with `kept` images; `undecided`: candidates that could still enter it.

    With all, a class is full when none is left undecided and it has an image.
    """
    return kept >= least_images(images_per_class) and (images_per_class != "all" or undecided == 0)
