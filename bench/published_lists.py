"""A score table beside a published list of its model's most confident images: are they the same, and how surely?

python bench/published_lists.py SCORES LISTS [--edition FOLDER] [--model ROLE] [--most N] [--json]
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pandas as pd

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.selection.candidates import candidates, correct, top5_predictions
from cleanset.selection.rule import Order, Rule
from cleanset.sets.published.lists import MOST, read_top5
from cleanset.tables import INDEX, SCORES, read_table

ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, slots=True)
class ConfidenceComparison:
    """The confidences of the `listed` images, in the list and by the scores.

    `misclassified`: the image ids whose top-1 class is not the listed one. `differences`: a row for each other image,
    the largest absolute difference first, then by image id; columns image_id, class_index, rank, published, found,
    difference (all in probability). `largest` and `mean` difference: None where every image is misclassified.
    """

    listed: int
    misclassified: list[str]
    differences: pd.DataFrame

    @property
    def largest(self) -> float | None:
        """The largest absolute difference."""
        return float(self.differences["difference"].max()) if len(self.differences) else None

    @property
    def mean(self) -> float | None:
        """The mean absolute difference."""
        return float(self.differences["difference"].mean()) if len(self.differences) else None


class ListAgreement(NamedTuple):
    """The listed classes, by index, with the same images in the same order, in another order, or with other images."""

    same_order: list[int]
    other_order: list[int]
    other_images: list[int]


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
        complete = any(not found.other_order and not found.other_images for found in self.by_order.values())
        return complete and not self.not_listed


def list_of(path: Path, role: str, index: pd.DataFrame) -> pd.DataFrame:
    """The published list of one model, from a file of Top-5 lists of images of an index; columns as of `read_top5`.

    Raises CleansetError as `read_top5` does, and for a model without a list.
    """
    lists = read_top5(path, dict(zip(index["image_id"], index["real_classes"], strict=True)))
    if role not in set(lists["model"]):
        raise CleansetError(
            f"{path}: no list of model {shown(role)}; expected one of {', '.join(lists['model'].unique()) or 'none'}"
        )
    return lists[lists["model"] == role].reset_index(drop=True)


def compare_with_list(index: pd.DataFrame, scores: pd.DataFrame, listed: pd.DataFrame) -> ListComparison:
    """Compare the scores of one model with the published list of one.

    The model's images of a class are the first five that it classifies correctly and that have one label, as for
    `pool: model`. Raises CleansetError unless the scores are of exactly the images of the index.
    """
    published = _by_class(listed)
    is_correct = correct(index, scores)
    by_order: dict[Order, ListAgreement] = {}
    found: dict[int, list[str]] = {}
    for order in ORDERS:
        every = candidates(index, is_correct, scores, range(CLASSES), Rule(MOST, "model", order))
        found = _by_class(every[every["tier"] == "top5"])
        by_order[order] = ListAgreement([], [], [])
        for class_index, ids in published.items():
            of_model = found.get(class_index, [])
            kind = 0 if of_model == ids else 1 if set(of_model) == set(ids) else 2
            by_order[order][kind].append(class_index)
    # the orders differ in the images of a class, not in the classes
    return ListComparison(by_order, sorted(found.keys() - published.keys()), compare_confidences(scores, listed))


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


def _by_class(ranked: pd.DataFrame) -> dict[int, list[str]]:
    """The image ids of each class by rank."""
    in_order = ranked.sort_values(["class_index", "rank"])
    return {int(str(index)): ids.tolist() for index, ids in in_order.groupby("class_index")["image_id"]}


def as_lines(found: ListComparison, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines for people, at most 80 columns wide; `rows`: the most different images."""
    by_log_odds = found.by_order["log_odds"]
    by_float32 = found.by_order["float32"]
    yield f"classes listed        {sum(map(len, by_log_odds)):>8,}"
    for name, of_log_odds, of_float32 in (
        ("the same images", *(len(each.same_order) + len(each.other_order) for each in (by_log_odds, by_float32))),
        ("in the same order", len(by_log_odds.same_order), len(by_float32.same_order)),
    ):
        other = "" if of_log_odds == of_float32 else f" by log-odds, {of_float32:,} by confidence in float32"
        yield f"  {name:<20}{of_log_odds:>8,}{other}"
    if found.not_listed:
        yield f"classes not listed    {len(found.not_listed):>8,} of those with correct images"
    confidences = found.confidences
    yield f"images listed         {confidences.listed:>8,}"
    yield f"  misclassified       {len(confidences.misclassified):>8,}"
    if len(confidences.differences):
        yield f"  largest difference  {confidences.largest:>8.3g} in probability, of the others"
        yield f"  mean difference     {confidences.mean:>8.3g}"
    if rows:
        yield ""
        yield f"{'most different':<24}{'difference':>10}  {'class':<9}  rank  {'A':<8}  B"
    for row in rows:
        sides = f"{row['found']:.6f}  {row['published']:.6f}"
        yield f"{row['image_id']:<24}{row['difference']:>10.3g}  {row['wnid']:<9}  {row['rank']:>4}  {sides}"


def content(found: ListComparison, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The content of the JSON; `rows`: the most different images."""
    confidences = found.confidences
    return {
        "same": found.same,
        "classes": {
            order: {
                "listed": sum(map(len, agreement)),
                "same_images": len(agreement.same_order) + len(agreement.other_order),
                "same_order": len(agreement.same_order),
                "other_images": [imagenet().keys[each] for each in agreement.other_images],
            }
            for order, agreement in found.by_order.items()
        },
        "not_listed": [imagenet().keys[each] for each in found.not_listed],
        "images": confidences.listed,
        "classified": len(confidences.differences),
        "misclassified": len(confidences.misclassified),
        "largest_difference": confidences.largest,
        "mean_difference": confidences.mean,
        "misclassified_images": confidences.misclassified,
        "most_different": list(rows),
    }


def run(scores: Path, lists: Path, edition: Path | None, role: str, most: int, as_json: bool) -> bool:
    """Compare and print; whether both are the same. The index lies beside the folder of the scores, or in `edition`."""
    path = Edition(edition).index if edition else Path(os.path.normpath(scores.parent / ".." / "index.parquet"))
    if edition is None and not path.is_file():
        raise CleansetError(f"{path}: missing; expected the index beside the folder of {scores}: give --edition")
    index = read_table(path, INDEX, imagenet())
    try:
        listed = list_of(lists, role, index)
    except CleansetError as error:
        raise CleansetError(
            f"{error}; or, if these lists are of other images than the {len(index):,} of {path}, give their --edition"
        ) from None
    found = compare_with_list(index, read_table(scores, SCORES, imagenet()), listed)
    rows: list[dict[str, Any]] = [
        {"wnid": imagenet().keys[row.pop("class_index")], **{str(key): value for key, value in row.items()}}
        for row in found.confidences.differences.head(most).to_dict("records")
    ]
    if as_json:
        sides = {"kind": "published list", "a": str(scores), "b": str(lists), "model": role}
        print(json.dumps(sides | content(found, rows), indent=2))
    else:
        print(f"A  {scores}", f"B  {lists}, {role}", "", *as_lines(found, rows), sep="\n")
    return found.same


def main() -> None:
    """Compare a score table with a published list; exit code 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, help="a score table, such as data/scores/standard.parquet")
    parser.add_argument("lists", type=Path, help="published lists, such as imagenet/published/top5.csv")
    parser.add_argument("--edition", type=Path, help="whose index has the labels, if not the one beside the scores")
    parser.add_argument("--model", help="model of the list; default: the name of the score table")
    parser.add_argument("--most", type=int, default=10, help="number of the most different images to list")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    try:
        same = run(given.scores, given.lists, given.edition, given.model or given.scores.stem, given.most, given.json)
    except CleansetError as error:
        sys.exit(f"error: {error}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
