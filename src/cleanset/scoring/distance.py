"""How far scores of a lower precision are from float64 ones, and the sample of images that shows it.

The sample is of whole classes.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.selection.candidates import correct, ordered, top5_predictions
from cleanset.statistics.basics import Floats
from cleanset.statistics.formats import decimal, rounded

# minimum number of images in the sample of whole classes, by the original labels
SAMPLE_SIZE = 1000
# a tenth of fewer images suffices, but at least 200, or half of all: float64 takes three times as long as float32
MIN_SAMPLE_SIZE = 200
SAMPLE_SHARE = 0.1
MAX_SHARE = 0.5
SAMPLE_SEED = 0
# number of images of a class whose order is compared, and of those whose choice is
EASIEST = 5
CHOSEN = 3


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """The result of comparing two score tables; `different` has a row for each image whose scores differ.

    Its columns are image_id, difference, top1_a, confidence_a, top1_b, confidence_b; the largest difference
    first, then by id. The difference is the largest one between two probabilities of the same class.
    """

    images: int
    only_a: list[str]
    only_b: list[str]
    different: pd.DataFrame

    @property
    def top1_changed(self) -> int:
        """The number of images whose top-1 classes differ."""
        return int((self.different["top1_a"] != self.different["top1_b"]).sum())

    @property
    def largest_difference(self) -> float:
        """The largest difference between two probabilities of the same image and class."""
        return float(self.different["difference"].max()) if len(self.different) else 0.0

    @property
    def same(self) -> bool:
        """Whether both tables hold the same scores of the same images."""
        return not (self.only_a or self.only_b or len(self.different))


def compare_scores(a: pd.DataFrame, b: pd.DataFrame) -> ScoreComparison:
    """Compare two score tables image by image.

    The probability of a class that is in the top 5 of one table only is compared with the other's fifth. The
    other's true probability is at most that, so the true difference may be larger, but not smaller.
    """
    both = a.merge(b, on="image_id", suffixes=("_a", "_b"), validate="one_to_one").sort_values("image_id")
    (classes_a, scores_a), (classes_b, scores_b) = (top5_predictions(_side(both, side)) for side in ("_a", "_b"))
    difference = np.maximum(
        _differences(classes_a, scores_a, classes_b, scores_b), _differences(classes_b, scores_b, classes_a, scores_a)
    )
    table = pd.DataFrame(
        {
            "image_id": both["image_id"].to_numpy(),
            "difference": difference,
            "top1_a": classes_a[:, 0],
            "confidence_a": scores_a[:, 0],
            "top1_b": classes_b[:, 0],
            "confidence_b": scores_b[:, 0],
        }
    )
    other = (classes_a != classes_b).any(axis=1) | (scores_a != scores_b).any(axis=1)
    other |= (both["log_odds_a"] != both["log_odds_b"]).to_numpy()
    different = table[other].sort_values(["difference", "image_id"], ascending=[False, True], ignore_index=True)
    ids_a = set(a["image_id"])
    ids_b = set(b["image_id"])
    return ScoreComparison(len(both), sorted(ids_a - ids_b), sorted(ids_b - ids_a), different)


def _side(both: pd.DataFrame, side: str) -> pd.DataFrame:
    return both.rename(columns={f"top5_{what}{side}": f"top5_{what}" for what in ("class", "probability")})


def _differences(
    classes: NDArray[np.int16],
    scores: Floats,
    other_classes: NDArray[np.int16],
    other_scores: Floats,
) -> Floats:
    """The largest difference in each row, over the classes of one table."""
    same_class = classes[:, :, None] == other_classes[:, None, :]
    of_same_class = (same_class * other_scores[:, None, :]).sum(axis=2)
    # the other table has no more than five: a class it lacks has at most the fifth's probability
    above_fifth = (scores - other_scores.min(axis=1, keepdims=True, initial=1)).clip(min=0)
    differences = np.where(same_class.any(axis=2), np.abs(scores - of_same_class), above_fifth)
    largest: Floats = differences.max(axis=1, initial=0)
    return largest


@dataclass(frozen=True, slots=True)
class Distance:
    """The difference between two score tables of the same images.

    `top1_agreement` is the share of images with the same top-1 class. `largest_difference` is the largest
    one between two probabilities of the same image and class. `classes` is the number of classes with an
    image that is classified correctly by either table; `classes_reordered` of these have their five
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
            "top1_agreement": rounded(self.top1_agreement, 6),
            "largest_difference": float(f"{self.largest_difference:.3g}"),
        }

    def __str__(self) -> str:
        return (
            f"top-1 agreement {decimal(self.top1_agreement, 2, 100)}% of {self.images:,} images, largest difference in "
            f"probability {self.largest_difference:.2g}, of {self.classes} classes {self.classes_reordered} with "
            f"another order of the five easiest, {self.classes_changed} with other three"
        )


def sample_size(images: int) -> int:
    """Number of images to recompute in float64."""
    return min(SAMPLE_SIZE, max(MIN_SAMPLE_SIZE, int(images * SAMPLE_SHARE)), math.ceil(images * MAX_SHARE))


def sample(index: pd.DataFrame, size: int) -> list[str]:
    """The sorted ids of all images of some classes, drawn with a fixed seed until they have at least `size` images."""
    classes = sorted(index["ilsvrc_class"].unique().tolist())
    random.Random(SAMPLE_SEED).shuffle(classes)
    of_class = index.groupby("ilsvrc_class")["image_id"].agg(list)
    drawn: list[str] = []
    for each in classes:
        if len(drawn) >= size:
            break
        drawn.extend(of_class[each])
    return sorted(drawn)


def distance(index: pd.DataFrame, exact: pd.DataFrame, other: pd.DataFrame) -> Distance:
    """The distance of `other` from `exact`, both in the columns of table SCORES, on the images of `exact`."""
    other = other[other["image_id"].isin(exact["image_id"])]
    found = compare_scores(exact, other)
    ours = easiest(index, exact)
    theirs = easiest(index, other)
    every = sorted(set(ours) | set(theirs))
    pairs: list[tuple[Sequence[str], Sequence[str]]] = [(ours.get(c, ()), theirs.get(c, ())) for c in every]
    return Distance(
        images=len(exact),
        top1_agreement=1 - found.top1_changed / found.images,
        largest_difference=found.largest_difference,
        classes=len(every),
        classes_reordered=sum(a != b for a, b in pairs),
        classes_changed=sum(set(a[:CHOSEN]) != set(b[:CHOSEN]) for a, b in pairs),
    )


def easiest(index: pd.DataFrame, scores: pd.DataFrame) -> dict[int, list[str]]:
    """The five correctly classified single-label images of highest confidence, in order, by class."""
    index = index[index["image_id"].isin(scores["image_id"])]
    found = ordered(correct(index, scores).assign(tier="top5")).groupby("class_index").head(EASIEST)
    return {int(str(class_index)): list(ids) for class_index, ids in found.groupby("class_index")["image_id"]}
