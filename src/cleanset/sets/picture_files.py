"""The file that stands for a picture in a finished set: the one place that makes it."""

from dataclasses import dataclass

from PIL.Image import Image

from cleanset.boxes import Box
from cleanset.images import cropped, encoder, png


@dataclass(frozen=True, slots=True)
class PictureFile:
    """The bytes of the file; of a cropped picture, its pixels and what encoded them."""

    data: bytes
    part: Image | None
    encoder: str


def picture_file(source: bytes, crop: Box | None) -> PictureFile:
    """A whole picture byte for byte, a cropped one as PNG. Raises ValueError if it must be decoded and cannot."""
    if crop is None:
        return PictureFile(source, None, "")
    part = cropped(source, crop)
    return PictureFile(png(part), part, encoder())
