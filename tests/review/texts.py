"""Texts of review files with one image, saving one verdict, and a key of the page."""

from pathlib import Path
from types import EllipsisType
from typing import Any

from cleanset.classes import ClassTable, imagenet
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.review.page.keys import ReviewKey
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.store import read_file
from cleanset.review.verdicts import Review

SHA = "3f6c0a" + "0" * 58
OTHER_SHA = "b" * 64
TENCH, GOLDFISH = "n01440764", "n01443537"  # class indices 0 and 1
IMAGE = "ILSVRC2012_val_00002138"


def entry(**fields: str) -> str:
    """The text of a file with one image; a field is written as given."""
    lines = "".join(f"    {key}: {value}\n" for key, value in fields.items())
    return f"{TENCH}:\n  {IMAGE}:\n{lines}"


def clean(**fields: str) -> str:
    return entry(verdict="clean", sha256=SHA, **fields)


def crop(**fields: str) -> str:
    usual = {"verdict": "crop", "reason": "text", "crop": "[0, 0, 480, 330]", "object_fully_visible": "true"}
    return entry(**(usual | {"sha256": SHA} | fields))


def save(
    reviews: Path,
    reviewer: str,
    wnid: str,
    image_id: str,
    review: Review | None,
    expected: Review | EllipsisType | None = ...,
    *,
    classes: ClassTable | None = None,
) -> None:
    """Save a verdict, on ImageNet's images and over whatever the file has."""
    classes = classes or imagenet()
    if isinstance(expected, EllipsisType):
        expected = on_disk(reviews / reviewer / f"{wnid}.yaml", classes).get(image_id)
    save_all(reviews, reviewer, wnid, {image_id: VerdictChange(review, expected)}, classes=classes)


def on_disk(path: Path, classes: ClassTable | None = None) -> dict[str, Review]:
    """The verdicts in a file by image id; none without a valid file."""
    try:
        return {vote.image_id: vote.review for vote in read_file(path, classes or imagenet())}
    except (CleansetError, OSError):
        return {}


def sent(
    key: str, seen: list[str], box: Box | None = None, card: str | None = None, seconds_seen: float = 9.0, **screen: Any
) -> ReviewKey:
    """A key with images that had been on the screen for some seconds."""
    return ReviewKey(key=key, number=0, seen=dict.fromkeys(seen, seconds_seen), box=box, card=card, **screen)
