"""What two score tables disagree on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.ranking import top5


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """`different`: a row for each picture of both tables of which they do not say the very same.

    Its columns are image_id, difference, top1_a, confidence_a, top1_b, confidence_b; the largest difference
    first, then by id. The difference is the largest one between two probabilities of the same class.
    """

    pictures: int
    only_a: list[str]
    only_b: list[str]
    different: pd.DataFrame

    @property
    def top1_changed(self) -> int:
        """On how many pictures the highest class is another one."""
        return int((self.different["top1_a"] != self.different["top1_b"]).sum())

    @property
    def largest_difference(self) -> float:
        """Between two probabilities of the same class and picture."""
        return float(self.different["difference"].max()) if len(self.different) else 0.0

    @property
    def same(self) -> bool:
        """Whether there is nothing at all to report."""
        return not (self.only_a or self.only_b or len(self.different))


def compare_scores(a: pd.DataFrame, b: pd.DataFrame) -> ScoreComparison:
    """Compare two score tables picture by picture.

    A class that only one of them has among its five counts with what it has more than the other's fifth: the
    other's probability is at most that, so the true difference may be larger, but not smaller.
    """
    both = a.merge(b, on="image_id", suffixes=("_a", "_b"), validate="one_to_one").sort_values("image_id")
    (classes_a, said_a), (classes_b, said_b) = (top5(_of(both, side)) for side in ("_a", "_b"))
    difference = np.maximum(
        _differences(classes_a, said_a, classes_b, said_b), _differences(classes_b, said_b, classes_a, said_a)
    )
    table = pd.DataFrame(
        {
            "image_id": both["image_id"].to_numpy(),
            "difference": difference,
            "top1_a": classes_a[:, 0],
            "confidence_a": said_a[:, 0],
            "top1_b": classes_b[:, 0],
            "confidence_b": said_b[:, 0],
        }
    )
    other = (classes_a != classes_b).any(axis=1) | (said_a != said_b).any(axis=1)
    different = table[other].sort_values(["difference", "image_id"], ascending=[False, True], ignore_index=True)
    ids_a, ids_b = set(a["image_id"]), set(b["image_id"])
    return ScoreComparison(len(both), sorted(ids_a - ids_b), sorted(ids_b - ids_a), different)


def _of(both: pd.DataFrame, side: str) -> pd.DataFrame:
    return both.rename(columns={f"top5_{what}{side}": f"top5_{what}" for what in ("class", "probability")})


def _differences(
    classes: NDArray[Any], said: NDArray[Any], other_classes: NDArray[Any], other_said: NDArray[Any]
) -> NDArray[Any]:
    """The largest difference of each row, over the classes of one side."""
    same_class = classes[:, :, None] == other_classes[:, None, :]
    there = (same_class * other_said[:, None, :]).sum(axis=2)
    beyond = (said - other_said.min(axis=1, keepdims=True, initial=1)).clip(min=0)
    found: NDArray[Any] = np.where(same_class.any(axis=2), np.abs(said - there), beyond).max(axis=1, initial=0)
    return found
