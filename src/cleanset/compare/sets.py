"""What two sets disagree on: fillings of the classes, or the manifests of two exports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cleanset.exports.manifest import Entry
from cleanset.selection.fill import Filled


@dataclass(frozen=True, slots=True)
class ClassChange:
    """The images of a class by one table and by the other: their ids in their order."""

    class_index: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def compare_sets(a: Filled, b: Filled) -> list[ClassChange]:
    """The classes whose images differ, or their order."""
    of_a, of_b = _by_class(a.selection), _by_class(b.selection)
    return [
        ClassChange(index, of_a.get(index, ()), of_b.get(index, ()))
        for index in sorted(set(of_a) | set(of_b))
        if of_a.get(index) != of_b.get(index)
    ]


def _by_class(selection: pd.DataFrame) -> dict[int, tuple[str, ...]]:
    ordered = selection.sort_values(["class_index", "place"])
    return {int(str(index)): tuple(ids) for index, ids in ordered.groupby("class_index")["image_id"]}


def size_of(entries: Sequence[Entry]) -> str:
    """The numbers of images and classes of a set, in words."""
    images, classes = len(entries), len({entry.wnid for entry in entries})
    return f"{images:,} {'image' if images == 1 else 'images'} of {classes:,} {'class' if classes == 1 else 'classes'}"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference in an image of a class, with its values in the two manifests.

    `what` is one of CHANGES: source means other bytes of the original; file means other bytes of the exported file,
    though source and crop are the same.
    """

    wnid: str
    image_id: str
    what: str
    a: str
    b: str


CHANGES = (
    "added", "dropped", "crop", "rank", "tier", "confidence", "source_confidence", "labels", "reviewers", "source",
    "file",
)  # fmt: skip


def compare_exports(a: Iterable[Entry], b: Iterable[Entry]) -> list[Change]:
    """Compare two manifests image by image; by class, then id. The name of the model does not count."""
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
        ("confidence", _probability(a.confidence), _probability(b.confidence)),
        ("source_confidence", _probability(a.source_confidence), _probability(b.source_confidence)),
        ("labels", _labels(a), _labels(b)),
        ("reviewers", str(a.reviewers), str(b.reviewers)),
        ("source", a.source_sha256, b.source_sha256),
    ):
        if of_a != of_b:
            yield Change(a.wnid, a.image_id, what, of_a, of_b)
    explained = a.crop != b.crop or a.source_sha256 != b.source_sha256
    if not explained and (a.file, a.file_sha256, a.pixels_sha256) != (b.file, b.file_sha256, b.pixels_sha256):
        yield Change(a.wnid, a.image_id, "file", a.file_sha256, b.file_sha256)


def _place(entry: Entry) -> str:
    return f"rank {entry.rank}, {entry.tier}"


def _probability(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _labels(entry: Entry) -> str:
    """The original label and the reassessed ones."""
    return f"{entry.ilsvrc_class}; {' '.join(map(str, entry.real_classes))}"


def _crop(entry: Entry) -> str:
    return "whole" if entry.crop is None else " ".join(map(str, entry.crop))


def by_class(changes: Sequence[Change]) -> Mapping[str, list[Change]]:
    """The changes of each class that has some."""
    grouped: dict[str, list[Change]] = {}
    for change in changes:
        grouped.setdefault(change.wnid, []).append(change)
    return grouped
