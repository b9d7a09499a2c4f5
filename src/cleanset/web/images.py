"""Images as the pages show them: the stored pixels that the models see, without metadata.

A browser rotates an image with an EXIF orientation, applies its colour profile, and shows CMYK in its own way. So the
decoded RGB pixels are encoded again, without metadata; or a JPEG is handed on without it, where that is the same. The
bytes read always have the SHA-256 of the index.
"""

import io
from collections import OrderedDict
from collections.abc import Callable
from threading import BoundedSemaphore, Lock

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.images.codec import Read, as_browsers_show, decode
from cleanset.images.preprocessing import Preprocessing

CARD_PIXELS = 1200
"""Longest side of an image on the page; the full one is for looking closely and for crops."""

SMALL_CARD_PIXELS = 720
"""The same where many are side by side: a card of eight is some 360 pixels wide, on a screen of 200 % twice that."""

MAX_CARD_PNG_PIXELS = 270_000
"""Area of a card that is not made smaller, up to which it keeps every value: as PNG, photographs are five times larger.
"""

_CARD_QUALITY = 90

MAX_PNG_PIXELS = 1_500_000

_CACHE_BYTES = 48 * 2**20

MAX_DECODED = 3
"""Images decoded at a time: a browser asks for dozens at once, and each takes up to 100 MB of memory."""


class Photos:
    """Encoded images by image id; the latest are kept in memory. Thread-safe.

    `faults`: errors by image id, from the last attempt to show it. `as_stored`: JPEGs are sent as stored,
    if nobody may distinguish images by their coding.
    """

    def __init__(self, read: Read, as_stored: bool = False) -> None:
        self.read = read
        self._as_stored = as_stored
        self.faults: dict[str, str] = {}
        self._kept: OrderedDict[tuple[str, int | None], bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()
        self._decoding = BoundedSemaphore(MAX_DECODED)

    def encoded(self, image_id: str, longest: int | None = None) -> bytes:
        """The image as `encode_for_page` makes it.

        Raises CleansetError, kept in `faults`, for an image that is missing, not the indexed one, or not a JPEG or PNG.
        """
        key = (image_id, longest)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            # outside of the lock, so that several images are encoded at a time
            with self._decoding:
                data = encode_for_page(self.read(image_id), longest, self._as_stored)
        except (CleansetError, OSError, ValueError) as error:
            self.faults[image_id] = fault = fault_text(error)
            raise CleansetError(fault) from None
        self.faults.pop(image_id, None)
        self._keep(key, data)
        return data

    def cropped(self, image_id: str, box: Box | None, see: Callable[[Image.Image], Image.Image]) -> bytes:
        """PNG of the part inside `box`, or of the whole image, after `see`."""
        with self._decoding:
            image = decode(self.read(image_id)).convert("RGB")
            out = io.BytesIO()
            # level 1 is the fastest: the image is made while somebody waits for it
            see(image.crop(box) if box else image).save(out, format="PNG", compress_level=1)
        return out.getvalue()

    def _keep(self, key: tuple[str, int | None], data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._kept.pop(key, b""))
            self._kept[key] = data
            # the latest stays, even if it alone is larger than the cache
            while self._size > _CACHE_BYTES and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1])


def fault_text(error: Exception) -> str:
    """The error at reading an image, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'reading the image'}: {error.strerror}"
    return " ".join(str(error).split())


def encode_for_page(data: bytes, longest: int | None, as_stored: bool = False) -> bytes:
    """The stored pixels without metadata, made smaller if a side is longer than `longest`; a JPEG perhaps `as_stored`.

    PNG, which keeps every value; JPEG where that would be slow, for images of more than a megapixel, and with `longest`
    where it is made smaller or has more than MAX_CARD_PNG_PIXELS. A JPEG that would grow is handed on as stored, too.
    """
    image = decode(data)
    can_be_stored = as_stored and (image.format, image.mode) in (("JPEG", "RGB"), ("JPEG", "L"))
    stored = as_browsers_show(data) if can_be_stored else None
    if stored is not None and max(image.size) <= (longest or max(image.size)):
        return stored
    image = image.convert("RGB")
    max_png = MAX_PNG_PIXELS
    if longest is not None:
        max_png = MAX_CARD_PNG_PIXELS if max(image.size) <= longest else 0
        image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    image.info = {}
    out = io.BytesIO()
    if image.width * image.height <= max_png:
        image.save(out, format="PNG", compress_level=1)
    else:
        # without chroma subsampling, which would change colours that a reviewer looks at
        image.save(out, format="JPEG", quality=95 if longest is None else _CARD_QUALITY, subsampling=0)
    encoded = out.getvalue()
    # a photograph that was stored in few bytes is handed on whole
    return encoded if stored is None or len(encoded) < len(stored) else stored


def as_the_model_sees(preprocessing: Preprocessing) -> Callable[[Image.Image], Image.Image]:
    """A function from an image to the image that a model gets, after its preprocessing."""
    return lambda image: Image.fromarray(preprocessing(image).transpose(1, 2, 0))
