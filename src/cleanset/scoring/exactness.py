"""How far scores of a lower precision are from float64, measured on a sample of whole classes."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from cleanset.scoring.comparison import compare_scores
from cleanset.selection.candidates import correct, ordered

SAMPLE_SIZE = 1000
"""The number of images to reach with whole classes of the original labels."""
SMALLEST_SAMPLE, SAMPLE_SHARE = 200, 0.1
"""Of few images a tenth will do, but not fewer than these: float64 takes three times as long as what it checks."""
SEED = 0
EASIEST, CHOSEN = 5, 3
"""Images of a class whose order, and whose choice, is compared."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The difference between two score tables of the same images.

    `top1_agreement` is the share of images with the same top-1 class. `largest_difference` is the largest
    one between two probabilities of the same image and class. `classes` is the number of classes with an
    image that is classified correctly by either table; of these, `classes_reordered` have their five
    easiest images in another order, and `classes_changed` have other images among the three easiest.
    """

    images: int
    top1_agreement: float
    largest_difference: float
    classes: int
    classes_reordered: int
    classes_changed: int

    def as_json(self) -> dict[str, float | int]:
        """The numbers, rounded to the digits that mean something."""
        return asdict(self) | {
            "top1_agreement": round(self.top1_agreement, 6),
            "largest_difference": float(f"{self.largest_difference:.3g}"),
        }

    def __str__(self) -> str:
        return (
            f"top-1 agreement {self.top1_agreement:.2%} of {self.images:,} images, largest difference in "
            f"probability {self.largest_difference:.2g}, of {self.classes} classes {self.classes_reordered} with "
            f"another order of the five easiest, {self.classes_changed} with other three"
        )


def sample_size(images: int) -> int:
    """How many of so many images to compute in float64 too."""
    return min(SAMPLE_SIZE, max(SMALLEST_SAMPLE, int(images * SAMPLE_SHARE)))


def sample(index: pd.DataFrame, size: int) -> list[str]:
    """The ids of all images of classes that are drawn with a fixed seed until there are `size` images; sorted."""
    classes = sorted(index["ilsvrc_class"].unique().tolist())
    random.Random(SEED).shuffle(classes)
    of_class = index.groupby("ilsvrc_class")["image_id"].agg(list)
    drawn: list[str] = []
    for each in classes:
        if len(drawn) >= size:
            break
        drawn.extend(of_class[each])
    return sorted(drawn)


def distance(index: pd.DataFrame, exact: pd.DataFrame, other: pd.DataFrame) -> Distance:
    """How far `other` is from `exact`, both in the columns of table SCORES, on the images of `exact`."""
    other = other[other["image_id"].isin(exact["image_id"])]
    found = compare_scores(exact, other)
    ours, theirs = easiest(index, exact), easiest(index, other)
    every = sorted(set(ours) | set(theirs))
    pairs: list[tuple[Sequence[str], Sequence[str]]] = [(ours.get(c, ()), theirs.get(c, ())) for c in every]
    return Distance(
        len(exact),
        1 - found.top1_changed / found.images,
        found.largest_difference,
        len(every),
        sum(a != b for a, b in pairs),
        sum(set(a[:CHOSEN]) != set(b[:CHOSEN]) for a, b in pairs),
    )


def easiest(index: pd.DataFrame, scores: pd.DataFrame) -> dict[int, list[str]]:
    """By class, the five correctly classified single-label images of highest confidence, in order."""
    index = index[index["image_id"].isin(scores["image_id"])]
    found = ordered(correct(index, scores).assign(tier="top5")).groupby("class_index").head(EASIEST)
    return {int(str(class_index)): list(ids) for class_index, ids in found.groupby("class_index")["image_id"]}
