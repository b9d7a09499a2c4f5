"""The file that stands for an image in a finished set: the one place that makes it."""

from dataclasses import dataclass

from PIL.Image import Image

from cleanset.images.boxes import Box
from cleanset.images.codec import cropped, encoder, png


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The bytes of the file; of a cropped image, its pixels and what encoded them."""

    data: bytes
    part: Image | None
    encoder: str


def image_file(source: bytes, crop: Box | None) -> ImageFile:
    """A whole image byte for byte, a cropped one as PNG. Raises ValueError if it must be decoded and cannot."""
    if crop is None:
        return ImageFile(source, None, "")
    part = cropped(source, crop)
    return ImageFile(png(part), part, encoder())
