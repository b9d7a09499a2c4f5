"""What two score tables or two exports disagree on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.manifest import Entry
from cleanset.selection import Filled

# Score tables


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
    classes_a, classes_b = _stacked(both["top5_class_a"], np.int16), _stacked(both["top5_class_b"], np.int16)
    said_a, said_b = _stacked(both["top5_probability_a"]), _stacked(both["top5_probability_b"])
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


def _stacked(lists: "pd.Series[Any]", dtype: type = np.float64) -> NDArray[Any]:
    return np.array(lists.tolist(), dtype=dtype).reshape(-1, 5)


def _differences(
    classes: NDArray[Any], said: NDArray[Any], other_classes: NDArray[Any], other_said: NDArray[Any]
) -> NDArray[Any]:
    """The largest difference of each row, over the classes of one side."""
    same_class = classes[:, :, None] == other_classes[:, None, :]
    there = (same_class * other_said[:, None, :]).sum(axis=2)
    beyond = (said - other_said.min(axis=1, keepdims=True, initial=1)).clip(min=0)
    found: NDArray[Any] = np.where(same_class.any(axis=2), np.abs(said - there), beyond).max(axis=1, initial=0)
    return found


@dataclass(frozen=True, slots=True)
class ClassChange:
    """What becomes of a class: the ids of its pictures in their order, by one table and by the other."""

    class_index: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def compare_sets(a: Filled, b: Filled) -> list[ClassChange]:
    """The classes whose pictures are other ones, or stand in another order."""
    of_a, of_b = _by_class(a.selection), _by_class(b.selection)
    return [
        ClassChange(index, of_a.get(index, ()), of_b.get(index, ()))
        for index in sorted(set(of_a) | set(of_b))
        if of_a.get(index) != of_b.get(index)
    ]


def _by_class(selection: pd.DataFrame) -> dict[int, tuple[str, ...]]:
    ordered = selection.sort_values(["class_index", "place"])
    return {int(str(index)): tuple(ids) for index, ids in ordered.groupby("class_index")["image_id"]}


# Exports


@dataclass(frozen=True, slots=True)
class Change:
    """One thing in which a picture of a class differs; `a` and `b` are what the two manifests say of it.

    `what` is added, dropped, crop, rank, tier, confidence, source (other bytes of the original), or file (other
    bytes of the exported file, though source and crop are the same).
    """

    wnid: str
    image_id: str
    what: str
    a: str
    b: str


CHANGES = ("added", "dropped", "crop", "rank", "tier", "confidence", "source", "file")


def compare_exports(a: Iterable[Entry], b: Iterable[Entry]) -> list[Change]:
    """Compare two manifests picture by picture; by class, then id. The name of the model does not count."""
    of_a = {(entry.wnid, entry.image_id): entry for entry in a}
    of_b = {(entry.wnid, entry.image_id): entry for entry in b}
    return [change for key in sorted(of_a.keys() | of_b.keys()) for change in _changes(of_a.get(key), of_b.get(key))]


def _changes(a: Entry | None, b: Entry | None) -> Iterator[Change]:
    if a is None or b is None:
        for entry, what in ((a, "dropped"), (b, "added")):
            if entry is not None:
                texts = ("", _place(entry)) if what == "added" else (_place(entry), "")
                yield Change(entry.wnid, entry.image_id, what, *texts)
        return
    for what, of_a, of_b in (
        ("crop", _crop(a), _crop(b)),
        ("rank", str(a.rank), str(b.rank)),
        ("tier", a.tier, b.tier),
        ("confidence", f"{a.confidence:.9g}", f"{b.confidence:.9g}"),
        ("source", a.source_sha256, b.source_sha256),
    ):
        if of_a != of_b:
            yield Change(a.wnid, a.image_id, what, of_a, of_b)
    explained = a.crop != b.crop or a.source_sha256 != b.source_sha256
    if not explained and (a.file, a.file_sha256, a.pixels_sha256) != (b.file, b.file_sha256, b.pixels_sha256):
        yield Change(a.wnid, a.image_id, "file", a.file_sha256, b.file_sha256)


def _place(entry: Entry) -> str:
    return f"rank {entry.rank}, {entry.tier}"


def _crop(entry: Entry) -> str:
    return "whole" if entry.crop is None else " ".join(map(str, entry.crop))


def by_class(changes: Sequence[Change]) -> Mapping[str, list[Change]]:
    """The changes of each class that has some."""
    grouped: dict[str, list[Change]] = {}
    for change in changes:
        grouped.setdefault(change.wnid, []).append(change)
    return grouped
