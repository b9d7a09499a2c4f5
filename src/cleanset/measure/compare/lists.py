"""Agreement of a model's scores with a published list of its most confident images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.errors import CleansetError
from cleanset.selection.candidates import Order, Rule, candidates, correct, top5_predictions
from cleanset.sets.published.lists import MOST, read_top5
from cleanset.validation import shown

ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, slots=True)
class ConfidenceComparison:
    """The confidences of the `listed` images, in the list and by the scores.

    `misclassified`: the image ids whose top-1 class is not the listed one. `differences`: a row for each other image,
    the largest absolute difference first, then by image id; columns image_id, class_index, rank, published, found,
    difference (all in probability).
    """

    listed: int
    misclassified: list[str]
    differences: pd.DataFrame

    @property
    def classified(self) -> int:
        """Number of images whose top-1 class is the listed one."""
        return len(self.differences)

    @property
    def largest(self) -> float | None:
        """The largest absolute difference; None where every image is misclassified."""
        return float(self.differences["difference"].max()) if self.classified else None

    @property
    def mean(self) -> float | None:
        """The mean absolute difference; None where every image is misclassified."""
        return float(self.differences["difference"].mean()) if self.classified else None


@dataclass(frozen=True, slots=True)
class ListAgreement:
    """The listed classes, by index, with the same images in the same order, in another order, or with other images."""

    same_order: list[int]
    other_order: list[int]
    other_images: list[int]

    @property
    def classes(self) -> int:
        """Number of listed classes."""
        return len(self.same_order) + len(self.other_order) + len(self.other_images)

    @property
    def same_images(self) -> int:
        """Number of classes with the same images, in any order."""
        return len(self.same_order) + len(self.other_order)


@dataclass(frozen=True, slots=True)
class ListComparison:
    """`by_order`: the agreement where the model's images are taken by log-odds, and by confidence in float32.

    `not_listed`: the classes that have no list, although the model classifies an image of them correctly.
    """

    by_order: Mapping[Order, ListAgreement]
    not_listed: list[int]
    confidences: ConfidenceComparison

    @property
    def same(self) -> bool:
        """Whether in one of the orders all classes have the same images in the same order."""
        complete = any(len(found.same_order) == found.classes for found in self.by_order.values())
        return complete and not self.not_listed


def list_of(path: Path, role: str, labels: dict[str, Sequence[int]]) -> pd.DataFrame:
    """The published list of one model, from a file of Top-5 lists; columns and `labels` as `read_top5` has them.

    Raises CleansetError as `read_top5` does, and for a model without a list.
    """
    lists = read_top5(path, labels)
    if role not in set(lists["model"]):
        raise CleansetError(
            f"{path}: no list of model {shown(role)}; expected one of {', '.join(lists['model'].unique()) or 'none'}"
        )
    return lists[lists["model"] == role].reset_index(drop=True)


def labels_of(index: pd.DataFrame) -> dict[str, Sequence[int]]:
    """The reassessed labels of every image of an index, by image id."""
    return dict(zip(index["image_id"], index["real_classes"], strict=True))


def compare_with_list(index: pd.DataFrame, scores: pd.DataFrame, listed: pd.DataFrame) -> ListComparison:
    """Compare the scores of one model with the published list of one.

    The model's images of a class are the first five that it classifies correctly and that have one label, as for
    `pool: model`. Raises CleansetError unless the scores are of exactly the images of the index.
    """
    published = _by_class(listed)
    is_correct = correct(index, scores)
    found = {order: _surest(index, is_correct, scores, order) for order in ORDERS}
    return ListComparison(
        {order: _agreement(published, of_model) for order, of_model in found.items()},
        sorted(found["float32"].keys() - published.keys()),
        compare_confidences(scores, listed),
    )


def compare_confidences(scores: pd.DataFrame, listed: pd.DataFrame) -> ConfidenceComparison:
    """Compare the confidences of a published list with those of scores that have a row for each of its images."""
    classes, probabilities = top5_predictions(scores)
    first = pd.DataFrame({"image_id": scores["image_id"], "top1": classes[:, 0], "found": probabilities[:, 0]})
    joined = listed.rename(columns={"confidence": "published"}).merge(first, on="image_id", validate="one_to_one")
    # otherwise the differences would be rounded to float32
    joined = joined.astype({"published": "float64"})
    joined = joined.assign(difference=(joined["published"] - joined["found"]).abs())
    is_correct = joined["top1"] == joined["class_index"]
    both = joined[is_correct].sort_values(["difference", "image_id"], ascending=[False, True], ignore_index=True)
    columns = ["image_id", "class_index", "rank", "published", "found", "difference"]
    return ConfidenceComparison(len(listed), joined.loc[~is_correct, "image_id"].tolist(), both[columns])


def _surest(index: pd.DataFrame, is_correct: pd.DataFrame, scores: pd.DataFrame, order: Order) -> dict[int, list[str]]:
    every = candidates(index, is_correct, scores, range(CLASSES), Rule(MOST, "model", order))
    return _by_class(every[every["tier"] == "top5"])


def _by_class(ranked: pd.DataFrame) -> dict[int, list[str]]:
    """The image ids of each class by rank."""
    in_order = ranked.sort_values(["class_index", "rank"])
    return {int(str(index)): ids.tolist() for index, ids in in_order.groupby("class_index")["image_id"]}


def _agreement(published: Mapping[int, list[str]], found: Mapping[int, list[str]]) -> ListAgreement:
    same_order, other_order, other_images = [], [], []
    for class_index, ids in published.items():
        of_model = found.get(class_index, [])
        if of_model == ids:
            same_order.append(class_index)
        elif set(of_model) == set(ids):
            other_order.append(class_index)
        else:
            other_images.append(class_index)
    return ListAgreement(same_order, other_order, other_images)
