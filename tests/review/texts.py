"""Texts of review files with one image, and saving one verdict."""

from pathlib import Path
from types import EllipsisType

from cleanset.review.save import VerdictChange, save_all
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
) -> None:
    save_all(reviews, reviewer, wnid, {image_id: VerdictChange(review, expected)})
