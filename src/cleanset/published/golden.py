"""The published numbers of the set, and a comparison of a selection with them."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from cleanset.review.store import Votes

IMAGES = 2_966
CLASSES_WITH_IMAGES = 995
CLASSES_WITH_THREE = 982
CROPPED = 109
SHORT = {
    472: 2, 482: 2, 501: 2, 550: 2, 618: 2, 620: 1, 638: 1, 664: 1, 681: 0, 744: 2, 782: 2, 836: 0, 837: 0, 848: 0,
    876: 1, 885: 1, 899: 1,
}  # fmt: skip
"""The short classes and their images, but for class 916."""
EXCLUDED = 916
"""The class "web site", excluded as digital by nature."""
VERDICTS_SHA256 = "996253ee6ab898766862b109da4e86c8dc8b1a30f9068c2a7769a56f8a9ea25d"
"""Digest of the published verdicts, by `digest_of`: a changed verdict need not change any number."""


class PublishedNumber(NamedTuple):
    """A number as published and as found."""

    name: str
    published: int | str
    found: int | str


def numbers(selection: pd.DataFrame, votes: Votes) -> list[PublishedNumber]:
    """Each published number beside the one found in a selection that was made by these votes."""
    counts = selection["class_index"].value_counts()
    cropped = int(selection["box_unknown"].sum() + selection["crop"].notna().sum())
    lines = [
        PublishedNumber("images", IMAGES, len(selection)),
        PublishedNumber("classes with images", CLASSES_WITH_IMAGES, len(counts)),
        PublishedNumber("classes with three", CLASSES_WITH_THREE, int((counts == 3).sum())),
        PublishedNumber("cropped images", CROPPED, cropped),
    ]
    lines += [
        PublishedNumber(f"class {index}", count, int(counts.get(index, 0)))
        for index, count in (SHORT | {EXCLUDED: 0}).items()
    ]
    lines.append(PublishedNumber("verdicts, SHA-256", VERDICTS_SHA256[:12], digest_of(votes)[:12]))
    return lines


def differences(lines: Collection[PublishedNumber]) -> list[str]:
    """A sentence for each number that is not the published one."""
    return [f"{each.name}: {each.found}; published {each.published}" for each in lines if each.found != each.published]


def digest_of(votes: Votes) -> str:
    """SHA-256 of a line for each image, class index, image id, verdict and reason, in the order of class and id."""
    lines = [
        f"{class_index} {name} {vote.review.verdict} {vote.review.reason}\n"
        for (class_index, name), by_reviewer in sorted(votes.items())
        for vote in by_reviewer.values()
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def out_of_order(
    ranks: Mapping[int, list[str]], reviewed: Collection[tuple[int, str]]
) -> Iterator[tuple[int, str, str]]:
    """Class, a reviewed image, and an unreviewed one before it in the list of its class.

    `ranks`: by class, the image ids of its list. As published, images were looked at from rank 1 down.
    """
    for class_index, names in ranks.items():
        skipped = None
        for name in names:
            if (class_index, name) not in reviewed:
                skipped = skipped or name
            elif skipped:
                yield class_index, name, skipped
