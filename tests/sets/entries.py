"""Valid entries of a manifest, to build others from."""

from typing import Any

from cleanset.classes import imagenet
from cleanset.sets.manifest import Entry

ENCODER = "Pillow 13.0.0 with zlib-ng 2.3.3"

WHOLE = Entry.checked(
    {
        "model": "standard",
        "wnid": "n01440764",
        "class_index": 0,
        "class_name": "tench",
        "rank": 1,
        "image_id": "ILSVRC2012_val_00000293",
        "tier": "top5",
        "confidence": 0.5,
        "source_confidence": 0.5,
        "ilsvrc_class": 0,
        "real_classes": (0,),
        "reviewers": 1,
        "crop": None,
        "file": "n01440764/ILSVRC2012_val_00000293.JPEG",
        "source_sha256": "a" * 64,
        "source_check": "archive_md5",
        "file_sha256": "a" * 64,
        "pixels_sha256": "b" * 64,
    },
    imagenet(),
)
CROPPED = Entry.checked(
    {
        "model": "standard",
        "wnid": "n01440764",
        "class_index": 0,
        "class_name": "tench",
        "rank": 2,
        "image_id": "ILSVRC2012_val_00002138",
        "tier": "relaxed",
        "confidence": 0.75,
        "source_confidence": 0.25,
        "ilsvrc_class": 391,
        "real_classes": (0, 391),
        "reviewers": 2,
        "crop": (0, 1, 480, 330),
        "file": "n01440764/ILSVRC2012_val_00002138.png",
        "source_sha256": "c" * 64,
        "source_check": "archive_md5",
        "file_sha256": "d" * 64,
        "pixels_sha256": "e" * 64,
        "encoder": ENCODER,
    },
    imagenet(),
)


def changed(entry: Entry, **values: Any) -> Entry:
    """A copy with other values, valid or not."""
    return entry.model_copy(update=values)


def checked(entry: Entry, **values: Any) -> Entry:
    """A copy with other values, checked."""
    return Entry.checked(entry.model_dump() | values, imagenet())
