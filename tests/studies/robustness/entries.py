"""Entries of a manifest, for tests of what reads them."""

from cleanset.classes import imagenet
from cleanset.images.boxes import Box
from cleanset.sets.manifest import Entry, file_name
from tests.sets.entries import CROPPED, WHOLE


def entry(number: int, crop: Box | None = None, digest: str = "a" * 64) -> Entry:
    """The image of that number, whole or cropped, with that SHA-256."""
    template = WHOLE if crop is None else CROPPED
    image_id = f"ILSVRC2012_val_{number:08}"
    values = template.model_dump() | {
        "image_id": image_id,
        "crop": crop,
        "file": file_name(template.wnid, image_id, crop, imagenet()),
        "file_sha256": digest,
    }
    if crop is None:
        values["source_sha256"] = digest
    return Entry.checked(values, imagenet())
