"""The images as the page shows them: the stored pixels that the models see, turned by no viewer.

A browser turns an image with an EXIF orientation, applies its colour profile, and shows CMYK in its
own way. So what is shown is encoded anew from the decoded RGB pixels, without metadata. The bytes
that are read are always those with the index's SHA-256.
"""

import io
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.images.codec import Read, decode
from cleanset.images.preprocessing import Preprocessing

CARD_PIXELS = 1200
"""Longest side of an image on the page; the full one is for looking closely and for crops."""

MAX_PNG_PIXELS = 1_500_000

_CACHE_BYTES = 48 * 2**20


class Photos:
    """Encoded images by image id, the last ones kept in memory. Safe in threads.

    `faults`: by image id, why an image could not be shown when it was last asked for. `formats`: what may be read.
    """

    def __init__(self, read: Read, formats: tuple[str, ...] = ("JPEG",)) -> None:
        self.read, self._formats = read, formats
        self.faults: dict[str, str] = {}
        self._kept: OrderedDict[tuple[str, int | None], bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def encoded(self, image_id: str, longest: int | None = None) -> bytes:
        """The image as `shown` makes it.

        Raises CleansetError, and keeps it in `faults`, if it is missing, not the indexed one, or no JPEG.
        """
        key = (image_id, longest)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            data = shown(self.read(image_id), longest, self._formats)
        except (CleansetError, OSError, ValueError) as error:
            self.faults[image_id] = fault = reason(error)
            raise CleansetError(fault) from None
        self.faults.pop(image_id, None)
        self._keep(key, data)
        return data

    def cropped(self, image_id: str, box: Box | None, see: Callable[[Image.Image], Image.Image]) -> bytes:
        """PNG of what `see` makes of the part inside `box`, or of the whole image."""
        image = decode(self.read(image_id)).convert("RGB")
        out = io.BytesIO()
        see(image.crop(box) if box else image).save(out, format="PNG", compress_level=1)
        return out.getvalue()

    def _keep(self, key: tuple[str, int | None], data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._kept.pop(key, b""))
            self._kept[key] = data
            while self._size > _CACHE_BYTES and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1])


def reason(error: Exception) -> str:
    """Why an image could not be read, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'reading the image'}: {error.strerror}"
    return " ".join(str(error).split())


def shown(data: bytes, longest: int | None, formats: tuple[str, ...] = ("JPEG",)) -> bytes:
    """The stored pixels without metadata, made smaller if a side is longer than `longest`.

    PNG, which keeps every value; JPEG where that would be slow, for images of more than a megapixel.
    """
    image = decode(data, formats).convert("RGB")
    if longest is not None:
        image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    image.info = {}
    out = io.BytesIO()
    if image.width * image.height <= MAX_PNG_PIXELS:
        image.save(out, format="PNG", compress_level=1)
    else:
        image.save(out, format="JPEG", quality=95, subsampling=0)
    return out.getvalue()


def preprocessed(preprocessing: Preprocessing) -> Callable[[Image.Image], Image.Image]:
    """What turns an image into the pixels that a model gets, as an image again."""
    return lambda image: Image.fromarray(preprocessing(image).transpose(1, 2, 0))
