"""Thumbnails of images for the pages, large enough for a watermark to be legible.

JPEG, because libjpeg-turbo computes in whole numbers: the same bytes on any processor. They are turned
by the image's EXIF orientation, as viewers turn them.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import PIL
from PIL import Image, ImageDraw, ImageOps, features

from cleanset.images.boxes import Box
from cleanset.images.codec import ORIENTATION, cropped, decode, set_orientation
from cleanset.plumbing.cache import PACKAGE
from cleanset.plumbing.kept_files import KeptFiles, kept_files

CODE = ("report/thumbnails.py", "images/codec.py", "images/boxes.py")
"""The files of the package that decide on the bytes of a thumbnail, and on how it is kept."""

THUMBNAIL_PIXELS = 400
"""Longer side of a thumbnail."""

_QUALITY = 75
_OUTLINE = "#ffb300"
_EDGE = "#000000"


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image next to the pages: its address from the folder of the pages, and its size in pixels."""

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
    """The name of each thumbnail of an image: one of a whole image, or two of a cropped one, before and after the
    crop."""
    if crop is None:
        return (f"{image_id}.jpg",)
    box = "-".join(map(str, crop))
    return f"{image_id}_{box}_before.jpg", f"{image_id}_{box}.jpg"


def usual_thumbnail_files(package: Path = PACKAGE) -> KeptFiles:
    """The thumbnails that the reports of all editions on this machine share, and `look`."""
    libraries = f"{PIL.__version__} {features.version('libjpeg_turbo')} {features.version('jpg')}"
    return kept_files("thumbnails", CODE, libraries, package)


def thumbnail_source(digest: str, crop: Box | None, *, enlarged: bool) -> str:
    """What the thumbnails of an image are made from, next to code."""
    return "-".join([digest, *([] if crop is None else map(str, crop)), *(["enlarged"] if enlarged else [])])


def kept_thumbnails(
    kept: KeptFiles, digest: str, read: Callable[[], bytes], crop: Box | None, *, enlarged: bool
) -> tuple[Thumbnail, ...]:
    """As `thumbnail` makes one of a whole image, or `before_and_after` two of a cropped one; each is made once.

    The image is known by the SHA-256 of its bytes, which `read` gives if they are needed. A report shows tens of
    thousands of images, and a reviewer's day changes few.
    """
    source = thumbnail_source(digest, crop, enlarged=enlarged)
    names = [f"{source}-{place}" for place in range(1 if crop is None else 2)]
    found = [kept.read(name) for name in names]
    known = tuple(_parsed(content) for content in found if content is not None)
    if len(known) == len(names):
        return known
    data = read()
    made = (thumbnail(data, enlarged=enlarged),) if crop is None else before_and_after(data, crop, enlarged=enlarged)
    for name, each in zip(names, made, strict=True):
        kept.keep(name, f"{each.width} {each.height}\n".encode() + each.jpeg)
    return made


def _parsed(content: bytes) -> Thumbnail:
    """A cached thumbnail: a line of width and height in pixels, and the JPEG."""
    size, _, jpeg = content.partition(b"\n")
    width, height = map(int, size.split())
    return Thumbnail(jpeg=jpeg, width=width, height=height)


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
