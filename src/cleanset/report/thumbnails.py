"""Thumbnails of images for the pages, large enough for a watermark to be legible.

JPEG, because libjpeg-turbo computes in whole numbers: the same bytes on any processor. They are turned
by the image's EXIF orientation, as viewers turn them.
"""

import tempfile
from dataclasses import dataclass
from urllib.parse import quote

from PIL import Image, ImageDraw, ImageOps

from cleanset.images.boxes import Box
from cleanset.images.codec import ORIENTATION, cropped, decode, set_orientation

THUMBNAIL_PIXELS = 400
"""Longer side of a thumbnail."""

_QUALITY = 75
_OUTLINE = "#ffb300"
_EDGE = "#000000"


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image beside the pages: its address from the folder of the pages, and its size in pixels."""

    file: str
    width: int
    height: int


def page_image(name: str, width: int, height: int) -> PageImage:
    """The image of this size whose file has this path below the folder of the pages."""
    return PageImage(quote(name), width, height)


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small image: a JPEG, and its size in pixels."""

    jpeg: bytes
    width: int
    height: int


def file_names(image_id: str, crop: Box | None) -> tuple[str, ...]:
    """The name of each thumbnail of an image: of a whole one, or of a cropped one before and after the crop."""
    if crop is None:
        return (f"{image_id}.jpg",)
    box = "-".join(map(str, crop))
    return f"{image_id}_{box}_before.jpg", f"{image_id}_{box}.jpg"


def thumbnail(data: bytes, *, enlarged: bool = False) -> Thumbnail:
    """The whole image, from the bytes of a JPEG; `enlarged`: a smaller one by a whole factor, without blur."""
    image = decode(data)
    return _finished(_small(image.convert("RGB"), enlarged=enlarged), image)


def before_and_after(data: bytes, crop: Box, *, enlarged: bool = False) -> tuple[Thumbnail, Thumbnail]:
    """The whole image with the box drawn in, and the part inside it; `enlarged` as for `thumbnail`."""
    image = decode(data)
    small = _small(image.convert("RGB"), enlarged=enlarged)
    _draw_box(small, crop, small.width / image.width, small.height / image.height)
    part = cropped(data, crop)
    return _finished(small, image), _finished(_small(part, enlarged=enlarged), part)


def _small(image: Image.Image, *, enlarged: bool) -> Image.Image:
    scale = min(1.0, THUMBNAIL_PIXELS / max(image.size))
    if scale == 1 and enlarged:
        # by a whole factor and without blur, so that pixels stay squares
        factor = max(1, THUMBNAIL_PIXELS // max(image.size))
        return image.resize((factor * image.width, factor * image.height), Image.Resampling.NEAREST)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    # with a gap, Pillow first reduces by a whole number, which is faster; 2.0 is what its own thumbnail() takes
    return image.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)


def _draw_box(small: Image.Image, box: Box, across: float, down: float) -> None:
    left, top, right, bottom = box
    x = round(left * across)
    y = round(top * down)
    edges = (x, y, max(x, round(right * across) - 1), max(y, round(bottom * down) - 1))
    draw = ImageDraw.Draw(small)
    # dark beneath bright, so that the box shows on any background
    draw.rectangle(edges, outline=_EDGE, width=5)
    draw.rectangle(edges, outline=_OUTLINE, width=3)


def _finished(small: Image.Image, original: Image.Image) -> Thumbnail:
    """The small image turned by the EXIF orientation of `original`, and encoded."""
    # Pillow would write the metadata of the original into the copy; the orientation alone is needed
    small.info = {}
    set_orientation(small, original.getexif().get(ORIENTATION, 1))
    turned = ImageOps.exif_transpose(small)
    # Pillow gives other threads the interpreter while it writes to a file of the system, not to a BytesIO
    with tempfile.TemporaryFile() as out:
        turned.save(out, "JPEG", quality=_QUALITY, optimize=True)
        out.seek(0)
        return Thumbnail(jpeg=out.read(), width=turned.width, height=turned.height)
