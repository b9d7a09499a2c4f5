"""A drawn archive with the names of the official one: small JPEGs, each with other pixels than all others."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from PIL import Image

from cleanset.image_ids import image_number

LEVELS = 37
"""Color levels by channel: 37 cubed is more than 50,000, so that each image has pixels of its own."""


def drawn_jpeg(number: int) -> bytes:
    """The JPEG of an image's number."""
    levels = (number % LEVELS, number // LEVELS % LEVELS, number // LEVELS**2)
    out = io.BytesIO()
    image = Image.new("RGB", (40 + number % 11, 40 + number % 13), tuple(6 * level for level in levels))
    image.save(out, "JPEG", quality=95, subsampling=0)
    return out.getvalue()


def draw_archive(path: Path, image_ids: Iterable[str], same_as: Mapping[str, str] | None = None) -> Path:
    """Write a tar of these images; by id, `same_as` gives one with the bytes of another."""
    with tarfile.open(path, "w") as tar:
        for image_id in sorted(image_ids):
            data = drawn_jpeg(image_number((same_as or {}).get(image_id, image_id)))
            member = tarfile.TarInfo(f"{image_id}.JPEG")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path
