"""Differences between two score tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.selection.candidates import top5_predictions


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
        """The number of images with another top-1 class."""
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
    ids_a, ids_b = set(a["image_id"]), set(b["image_id"])
    return ScoreComparison(len(both), sorted(ids_a - ids_b), sorted(ids_b - ids_a), different)


def _side(both: pd.DataFrame, side: str) -> pd.DataFrame:
    return both.rename(columns={f"top5_{what}{side}": f"top5_{what}" for what in ("class", "probability")})


def _differences(
    classes: NDArray[Any], scores: NDArray[Any], other_classes: NDArray[Any], other_scores: NDArray[Any]
) -> NDArray[Any]:
    """The largest difference in each row, over the classes of one table."""
    same_class = classes[:, :, None] == other_classes[:, None, :]
    of_same_class = (same_class * other_scores[:, None, :]).sum(axis=2)
    above_fifth = (scores - other_scores.min(axis=1, keepdims=True, initial=1)).clip(min=0)
    differences = np.where(same_class.any(axis=2), np.abs(scores - of_same_class), above_fifth)
    largest: NDArray[Any] = differences.max(axis=1, initial=0)
    return largest
