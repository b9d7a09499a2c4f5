"""The images that were there before a submission: its images may be none of them, and people see what models see.

A copy has the same pixels but for a level on average, and is refused. Images that look alike, such as a known one
scaled, turned or encoded anew with a low quality, may still be new, so that they are listed for the board.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images.codec import decode_file, pixels_sha256
from cleanset.images.shown_otherwise import problem_for_viewers
from cleanset.plumbing.files import sha256

MAX_CHANGE = 1.0
"""Mean absolute difference of pixels, of 255, up to which an image is the known one."""
MAX_SMALL_CHANGE = 4.0
"""Mean absolute difference of small copies, of 255, up to which images look alike.

An average of pixels changes by no more than they do on average: no copy is beyond it.
"""
_SMALL = (8, 8)
"""Width and height of small copies, in pixels."""


def rgb(data: bytes, where: object) -> Image.Image:
    """The image in the bytes of a file, in RGB. Raises CleansetError if it cannot be decoded."""
    return decode_file(data, where, "a PNG or JPEG that can be decoded").convert("RGB")


def image_entry(name: str, data: bytes, where: object) -> dict[str, str | int]:
    """An image of a submission, as the log has it. Raises CleansetError for an image that cannot be submitted."""
    image = decode_file(data, where, "a PNG or JPEG that can be decoded")
    problem = problem_for_viewers(image, data)
    if problem is not None:
        raise CleansetError(f"{where}: {problem}")
    size = {"width": image.width, "height": image.height}
    return {"file": name, "sha256": sha256(data), "pixels_sha256": pixels_sha256(image), **size}


def _small(image: Image.Image) -> NDArray[np.float32]:
    return np.asarray(image.resize(_SMALL, Image.Resampling.BOX), np.float32)


class KnownImage(NamedTuple):
    """An image that was there before; `read`: its bytes, which are asked for only if it may have been copied."""

    name: str
    size: tuple[int, int]
    read: Callable[[], bytes]


class KnownImages:
    """Images whose copies are refused, and whose lookalikes are listed."""

    def __init__(self) -> None:
        self._images: list[KnownImage] = []
        self._small: list[NDArray[np.float32]] = []

    def add(self, name: str, read: Callable[[], bytes]) -> None:
        """Add an image. Raises CleansetError, with its name, if it cannot be decoded."""
        image = rgb(read(), name)
        self._images.append(KnownImage(name, image.size, read))
        self._small.append(_small(image))

    def like(self, image: Image.Image) -> list[KnownImage]:
        """The known images that look like another, also turned or mirrored; the most similar first."""
        own = _small(image)
        ways = [np.rot90(each, times) for each in (own, own[:, ::-1]) for times in range(4)]
        known = np.array(self._small).reshape(-1, *own.shape)
        change = np.min([np.abs(known - each).mean((1, 2, 3), dtype=np.float64) for each in ways], axis=0)
        order = np.argsort(change, kind="stable")
        return [self._images[place] for place in order if change[place] <= MAX_SMALL_CHANGE]


def copied(image: Image.Image, known: Iterable[KnownImage]) -> str | None:
    """The known image that an image is a copy of, by its name and with the evidence; None for a new image."""
    pixels = np.asarray(image, np.int16)
    for each in known:
        if each.size == image.size:
            change = float(np.abs(pixels - np.asarray(rgb(each.read(), each.name))).mean())
            if change <= MAX_CHANGE:
                return f"{each.name}, which differs by {change:.2g} of 255 on average"
    return None
