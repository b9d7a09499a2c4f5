"""The images that were there before a submission: its images may be none of them, and people see what models see.

A copy has the same pixels but for a level on average, and is refused. Images that look alike, such as a known one
scaled, turned or encoded anew with a low quality, may still be new, so that they are listed for the board.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cleanset.edition.versions import installed_version
from cleanset.images.codec import decode, decode_file, pixels_sha256
from cleanset.images.shown_otherwise import problem_for_viewers
from cleanset.plumbing.kept_files import kept_files
from cleanset.plumbing.validation import Sha256

MAX_CHANGE = 1.0
"""Mean absolute difference of pixels, of 255, up to which an image is the known one."""
MAX_SMALL_CHANGE = 4.0
"""Mean absolute difference of small copies, of 255, up to which images look alike.

An average of pixels changes by no more than they do on average: no copy is beyond it.
"""
_SMALL = (8, 8)
"""Width and height of small copies, in pixels."""
_CODE = ("images/codec.py", "images/shown_otherwise.py", "studies/contest/images.py")
"""The files of the package that decide on what is known of an image."""


class MeasuredImage(BaseModel):
    """What is known of an image by its bytes, and kept on this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int
    height: int
    pixels_sha256: Sha256
    problem: str | None
    """Why it cannot be submitted."""

    small: Annotated[str, Field(pattern=r"^[0-9a-f]{384}$")]
    """A small copy, 8 x 8 x 3 bytes, in hexadecimal."""

    def values(self) -> NDArray[np.float32]:
        """The small copy, shape (8, 8, 3)."""
        return np.frombuffer(bytes.fromhex(self.small), np.uint8).reshape(*_SMALL, 3).astype(np.float32)


class Measures:
    """Images by the SHA-256 of their bytes; each is decoded once on this machine, if its disk allows it."""

    def __init__(self) -> None:
        self._known: dict[str, MeasuredImage] = {}
        self._files = kept_files("contest", _CODE, str([installed_version(name) for name in ("numpy", "pillow")]))

    def of(self, path: Path, digest: str, read: Callable[[], bytes]) -> MeasuredImage:
        """What is known of the image with this SHA-256. Raises CleansetError if it cannot be decoded.

        `read`: its bytes, which are asked for only if nothing is known.
        """
        if digest not in self._known:
            found = self._files.read_value(digest, _KEPT)
            if found is None:
                found = _measured(path, read())
                self._files.keep_value(digest, _KEPT, found)
            self._known[digest] = found
        return self._known[digest]


_KEPT = TypeAdapter(MeasuredImage)


def _measured(path: Path, data: bytes) -> MeasuredImage:
    image = decode_file(data, path, "a PNG or JPEG that can be decoded")
    pixels = image.convert("RGB")
    return MeasuredImage(
        width=image.width,
        height=image.height,
        pixels_sha256=pixels_sha256(pixels),
        problem=problem_for_viewers(image, data),
        small=np.asarray(pixels.resize(_SMALL, Image.Resampling.BOX)).tobytes().hex(),
    )


class KnownImage(NamedTuple):
    """An image that was there before; `read`: its bytes, which are asked for only if it may have been copied."""

    name: str
    measured: MeasuredImage
    read: Callable[[], bytes]


class KnownImages:
    """Images whose copies are refused, and whose lookalikes are listed: an index that is asked about new images."""

    def __init__(self, images: Iterable[KnownImage]) -> None:
        self._images = sorted(images, key=lambda each: each.name)
        self._small = np.array([each.measured.values() for each in self._images], np.float32).reshape(-1, *_SMALL, 3)

    def like(self, measured: MeasuredImage) -> list[KnownImage]:
        """The known images that look like another, also turned or mirrored; the most similar first."""
        own = measured.values()
        ways = [np.rot90(each, times) for each in (own, own[:, ::-1]) for times in range(4)]
        change = np.min([np.abs(self._small - each).mean((1, 2, 3), dtype=np.float64) for each in ways], axis=0)
        order = np.argsort(change, kind="stable")
        return [self._images[place] for place in order if change[place] <= MAX_SMALL_CHANGE]


def copied(data: bytes, measured: MeasuredImage, known: Iterable[KnownImage]) -> str | None:
    """The known image that an image is a copy of, by its name and with the evidence; None for a new image."""
    for each in known:
        if (each.measured.width, each.measured.height) == (measured.width, measured.height):
            change = float(np.abs(_pixels(data) - _pixels(each.read())).mean())
            if change <= MAX_CHANGE:
                return f"{each.name}, which differs by {change:.2g} of 255 on average"
    return None


def _pixels(data: bytes) -> NDArray[np.int16]:
    return np.asarray(decode(data).convert("RGB"), np.int16)
