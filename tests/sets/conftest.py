"""An export that the stages really made: six of the ten images, in three classes."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.plumbing.files import write_text
from cleanset.stages import export, preprocess
from cleanset.tables import CROP_SCORES, REJECTED, SELECTION, VOTES, write_table
from tests.ten_images import SCORED, Made, id_of

CLASSES = ["n01440764", "n02119789", "n02123045", "n02606052"]
"""Class indices 0, 278, 281, 391; the last one stays empty."""
REAL_LABELS = [[0], [0], [0], [278], [281], [281], [543], [0], [278, 281], [278, 999]]
"""Digests of the ten images."""
SELECTED: list[tuple[int, int, int, str, float, list[int] | None]] = [
    (1, 0, 1, "top5", 0.75, None),
    (8, 0, 2, "reserve", 0.5, [3, 4, 23, 40]),  # greyscale
    (4, 278, 1, "top5", 0.5, None),
    (9, 278, 2, "relaxed", 0.25, None),  # CMYK
    (10, 278, 3, "relaxed", 0.125, [0, 0, 20, 10]),  # with an EXIF orientation
    (6, 281, 1, "top5", 0.99999994, None),
]
"""Image, class index, place, tier, confidence of the whole image, crop box."""
CROP_SCORED = [
    (8, [3, 4, 23, 40], [0, 1, 2, 3, 4], [0.875, 0.0625, 0.03125, 0.0, 0.0], 2.0),
    (8, [0, 0, 9, 9], [0, 1, 2, 3, 4], [0.25, 0.25, 0.125, 0.125, 0.125], -1.0),  # drawn, but not decided on
    (10, [0, 0, 20, 10], [999, 278, 2, 3, 4], [0.5, 0.375, 0.0625, 0.0, 0.0], 0.0),  # misclassified, and accepted
]
"""Image, crop box, the five most probable classes, their probabilities, and the log-odds of the first."""
VOTED = [
    (1, "ann", "clean"), (8, "ann", "crop"), (8, "bob", "crop"), (8, "board", "crop"), (10, "board", "crop"),
    (2, "ann", "reject"),
]  # fmt: skip
"""Image, reviewer, verdict."""
NOT_SELECTED = [(2, 0, "blur"), (3, 0, "not_needed"), (5, 281, "unreviewed")]
FILES = [
    "n01440764/ILSVRC2012_val_00000001.JPEG",
    "n01440764/ILSVRC2012_val_00000008.png",
    "n02119789/ILSVRC2012_val_00000004.JPEG",
    "n02119789/ILSVRC2012_val_00000009.JPEG",
    "n02119789/ILSVRC2012_val_00000010.png",
    "n02123045/ILSVRC2012_val_00000006.JPEG",
]


def make_edition(folder: Path) -> Edition:
    """The edition of the ten images, with hand-written tables for the export to read, and the export."""
    made = Made(folder).archives(reassessed=json.dumps(REAL_LABELS))
    made.others["export"] = {"version": "1.2.3", "date": "2026-01-31"}
    made.params(classes=CLASSES)
    edition = Edition(folder)
    preprocess.run(edition)
    columns = ["image_id", "class_index", "place", "tier", "confidence", "crop"]
    selection = pd.DataFrame([(id_of(number), *rest) for number, *rest in SELECTED], columns=columns)
    write_table(
        edition.selection("standard"),
        selection.assign(rank=selection["place"], box_unknown=False),
        SELECTION,
        imagenet(),
    )
    rejected = pd.DataFrame(
        [(id_of(number), index, reason) for number, index, reason in NOT_SELECTED],
        columns=["image_id", "class_index", "reason"],
    ).assign(tier="reserve", rank=9, confidence=0.25, open=lambda frame: frame["reason"] == "unreviewed")
    write_table(edition.rejected("standard"), rejected, REJECTED, imagenet())
    crop_scores = pd.DataFrame([(id_of(number), *rest) for number, *rest in CROP_SCORED], columns=CROP_SCORES.names)
    write_table(edition.crop_scores("standard"), crop_scores, CROP_SCORES, imagenet())
    votes = pd.DataFrame([(id_of(number), *rest) for number, *rest in VOTED], columns=VOTES.names[:3])
    write_table(edition.votes("standard"), votes.assign(reason=None, crop=None), VOTES, imagenet())
    write_text(edition.audit("standard"), "null\n")
    edition.scored_with("standard").parent.mkdir()
    edition.scored_with("standard").write_text(json.dumps(SCORED))
    export.run(edition, "standard")
    return edition


@pytest.fixture(scope="session")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Not to be changed."""
    return make_edition(tmp_path_factory.mktemp("edition"))


@pytest.fixture(scope="session")
def export_folder(edition: Edition) -> Path:
    """Its export; not to be changed."""
    return edition.export("standard")


@pytest.fixture
def copy(export_folder: Path, tmp_path: Path) -> Path:
    """A copy of the export."""
    return Path(shutil.copytree(export_folder, tmp_path / "copy"))


def trial(folder: Path) -> str:
    """The line of a set that was not made from ImageNet's official archive."""
    found = re.search(r"urn:md5:(\w{32})", (folder / "croissant.json").read_text())
    assert found
    return (
        f"Made from an archive with the MD5 {found[1]}, which is not ImageNet's official one: a trial, not for a study."
    )


Edit = Callable[[Path, str, str], None]


def edit(path: Path, old: str, new: str) -> None:
    """Replace what occurs exactly once in a text file."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    path.write_text(text.replace(old, new))
