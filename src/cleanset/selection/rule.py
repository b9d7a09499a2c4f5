"""The options of the rule by which candidates are chosen and ordered, and the size of a full class.

The tables that it is applied to are not known here.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

Label = str
"""Images that count as labelled: with one reassessed label (real), with one that equals the ILSVRC label (both), or,
by the name of a study, with one that is also the only class that the study names.

For images with several reassessed labels, which only tier relaxed takes: any of them, only the ILSVRC label, or those
that the study names, too.
"""
OWN_LABELS = ("real", "both")
"""The labels that no further study is needed for."""

Order = Literal["log_odds", "float32"]
"""Descending log-odds, which do not saturate, or descending confidence, as published. Ties: the lower image id."""
Pool = Literal["ensemble", "model"]
"""Images that tier top5 is taken from: those that all models classify correctly, or, as published, this model."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The choice and order of candidates; `count`: number of images of the pool in tier top5.

    `in_random_order`: a set without a model, whose candidates are all images of a class; only `label` holds for it.
    """

    count: int = 5
    pool: Pool = "ensemble"
    order: Order = "log_odds"
    label: Label = "real"
    in_random_order: bool = False


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
