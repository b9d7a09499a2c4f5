"""How far scores of a lower precision are from float64, measured on a sample of whole classes."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from cleanset.ranking import ordered, right
from cleanset.scoring.comparison import compare_scores

SAMPLE = 1000
"""Pictures, about: so many classes of the original labels that their pictures come to this."""
SEED = 0
EASIEST, KEPT = 5, 3


@dataclass(frozen=True, slots=True)
class Distance:
    """What differs between two score tables of the same pictures.

    `top1_agreement` is the share of pictures with the same highest class. `largest_difference` is in
    probability, of the same class. `classes` are those with a picture that either table gets right; of
    them, `classes_reordered` have another order of their five easiest pictures, `classes_changed` other
    three easiest.
    """

    pictures: int
    top1_agreement: float
    largest_difference: float
    classes: int
    classes_reordered: int
    classes_changed: int

    def as_json(self) -> dict[str, float | int]:
        """The numbers, rounded to what is meant."""
        return asdict(self) | {
            "top1_agreement": round(self.top1_agreement, 6),
            "largest_difference": float(f"{self.largest_difference:.3g}"),
        }

    def __str__(self) -> str:
        return (
            f"top-1 agreement {self.top1_agreement:.2%} of {self.pictures:,} pictures, largest difference in "
            f"probability {self.largest_difference:.2g}, of {self.classes} classes {self.classes_reordered} with "
            f"another order of the five easiest, {self.classes_changed} with other three"
        )


def sample(index: pd.DataFrame, size: int = SAMPLE) -> list[str]:
    """All pictures of classes drawn with a fixed seed, about `size` of them: image ids, sorted."""
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
    """How far `other` is from `exact`, both in the columns of table SCORES, on the pictures of `exact`."""
    other = other[other["image_id"].isin(exact["image_id"])]
    found = compare_scores(exact, other)
    ours, theirs = easiest(index, exact), easiest(index, other)
    every = sorted(set(ours) | set(theirs))
    pairs: list[tuple[Sequence[str], Sequence[str]]] = [(ours.get(c, ()), theirs.get(c, ())) for c in every]
    return Distance(
        len(exact),
        1 - found.top1_changed / found.pictures,
        found.largest_difference,
        len(every),
        sum(a != b for a, b in pairs),
        sum(set(a[:KEPT]) != set(b[:KEPT]) for a, b in pairs),
    )


def easiest(index: pd.DataFrame, scores: pd.DataFrame) -> dict[int, list[str]]:
    """By class, the five pictures with one label that the model is right on and surest of, surest first."""
    found = ordered(right(index, scores).assign(tier="top5")).groupby("class_index").head(EASIEST)
    return {int(str(class_index)): list(ids) for class_index, ids in found.groupby("class_index")["image_id"]}
