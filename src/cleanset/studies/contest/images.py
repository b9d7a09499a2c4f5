"""Checks of submitted images: refused if people would see something else than models, or if copied.

Bytes after the end of an image, and metadata that change a viewer's colors, show people something else. Copies
have the same pixels but for a level on average. Images that look alike (PDQ), such as a known one encoded anew with a
low quality, may still be new, so that they are reported to the board and not refused.
"""

import importlib.util
import io
import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import read_bytes
from cleanset.images.codec import ORIENTATION, decode_file, end_of_jpeg, opened

_PNG = b"\x89PNG\r\n\x1a\n"
# 1/2.2, and the primaries of sRGB, in hundred-thousandths: what viewers take anyway
_SRGB_GAMMA = struct.pack(">I", 45455)
_SRGB_PRIMARIES = struct.pack(">8I", *(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))


def problem_beside_pixels(data: bytes) -> str | None:
    """Why people may be shown something else than a model gets from a whole PNG or JPEG; None if they are not."""
    chunks: dict[bytes, bytes] = {}
    end = _end_of_png(data, chunks) if data.startswith(_PNG) else end_of_jpeg(data)
    if end < len(data):
        return f"{len(data) - end:,} bytes after the end of the image"
    with opened(io.BytesIO(data), data) as image:
        has_profile = "icc_profile" in image.info
    problems = {
        "an ICC profile, by which viewers change its colors": has_profile,
        "a gamma (gAMA), by which viewers change its brightness": chunks.get(b"gAMA", _SRGB_GAMMA) != _SRGB_GAMMA,
        "primaries (cHRM), by which viewers change its colors": chunks.get(b"cHRM", _SRGB_PRIMARIES) != _SRGB_PRIMARIES,
        "an animation (acTL), whose other frames may be shown": b"acTL" in chunks,
        "a color space (cICP), by which viewers change its colors": b"cICP" in chunks,
    }
    return next((problem for problem, is_there in problems.items() if is_there), None)


def _end_of_png(data: bytes, chunks: dict[bytes, bytes]) -> int:
    """The place after IEND, the whole length without it; `chunks`: is given the first chunk of each kind."""
    place = len(_PNG)
    while place + 8 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        kind = data[place + 4 : place + 8]
        chunks.setdefault(kind, data[place + 8 : place + 8 + length])
        place += length + 12
        if kind == b"IEND":
            return place
    return len(data)


MAX_CHANGE = 1.0
"""Mean absolute difference, of 255, up to which an image is the known one."""
MAX_DISTANCE = 31
"""PDQ's own limit for similar images: differing bits, of 256."""

MIN_HASH_QUALITY = 50
"""PDQ's own minimum quality of a useful hash, of 100."""

_SMALL = (8, 8)
"""Width and height of small copies, in pixels."""

_MAX_SMALL_CHANGE = 4.0
"""Mean absolute difference of small copies, of 255, beyond which no image is a copy.

An average of pixels changes by no more than they do on average: by MAX_CHANGE, and what rounding and sides below eight
pixels add.
"""


def can_hash() -> bool:
    """Whether images that look alike can be found; PDQ is in the extra `review`."""
    return importlib.util.find_spec("pdqhash") is not None


class _Seen(NamedTuple):
    """What an image is found by."""

    size: tuple[int, int]
    """Width and height, in pixels."""

    small: NDArray[np.float32]
    """A small copy, shape (192,), 0 to 255."""

    signs: NDArray[np.float32] | None
    """The bits of its PDQ hash as -1 and 1, shape (256,); None without detail, and without PDQ."""


class KnownImages:
    """Images whose copies are refused, and whose lookalikes are listed: an index that is asked about new images.

    `paths`: by name; a file that is not there is left out. Raises CleansetError for one that cannot be read.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._named = [(name, path) for name, path in sorted(paths.items()) if path.is_file()]
        seen = [_seen(path, _identity(path)) for _, path in self._named]
        self._sizes = np.array([each.size for each in seen], np.int64).reshape(-1, 2)
        self._small = np.array([each.small for each in seen], np.float32).reshape(-1, 3 * _SMALL[0] * _SMALL[1])
        self._hashed = [number for number, each in enumerate(seen) if each.signs is not None]
        self._signs = np.array([each.signs for each in seen if each.signs is not None], np.float32).reshape(-1, 256)

    def __len__(self) -> int:
        return len(self._named)

    def copied(self, path: Path) -> str | None:
        """The known image that was copied into a file, by its name and with the evidence; None for a new image."""
        image = _read(path)
        alike = (self._sizes == image.size).all(1)
        alike &= np.abs(self._small - _small(image)).mean(1, dtype=np.float64) <= _MAX_SMALL_CHANGE
        for number in np.flatnonzero(alike):
            name, known = self._named[number]
            change = float(np.abs(np.asarray(image, np.int16) - np.asarray(_read(known))).mean())
            if change <= MAX_CHANGE:
                return f"{name}, which differs by {change:.2g} of 255 on average"
        return None

    def lookalikes(self, path: Path) -> list[tuple[int, str]]:
        """The distance, 0 to 31 bits, and the name of each known image that looks like a file; the nearest first.

        Also of those that look like it turned or mirrored.
        """
        own = _hashes(_read(path))
        if not len(own) or not self._hashed:
            return []
        # equal signs less different ones, of 256, whichever way the file is turned
        distances = (256 - (self._signs @ own.T).max(1)) / 2
        near = [(int(bits), number) for bits, number in zip(distances, self._hashed, strict=True)]
        return sorted((bits, self._named[number][0]) for bits, number in near if bits <= MAX_DISTANCE)


def _identity(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(100_000)
def _seen(path: Path, _identity: tuple[int, ...]) -> _Seen:
    # a file is read once for all submissions that are entered together; one that was changed is another one
    image = _read(path)
    own = _hashes(image)
    return _Seen(image.size, _small(image), own[0] if len(own) else None)


def _read(path: Path) -> Image.Image:
    return decode_file(read_bytes(path), path, "a PNG or JPEG: dvc pull").convert("RGB")


def _small(image: Image.Image) -> NDArray[np.float32]:
    return np.asarray(image.resize(_SMALL, Image.Resampling.BOX), np.float32).reshape(-1)


def _hashes(image: Image.Image) -> NDArray[np.float32]:
    """Shape (8, 256), -1 and 1: as it is, turned and mirrored; (0, 256) without detail, and without PDQ."""
    if not can_hash():
        return np.empty((0, 256), np.float32)
    import pdqhash

    hashes, quality = pdqhash.compute_dihedral(np.asarray(image))
    return 2 * np.array(hashes, np.float32) - 1 if quality >= MIN_HASH_QUALITY else np.empty((0, 256), np.float32)


PIXEL_MODES = ("RGB", "L")


def decode_submitted(path: Path, data: bytes) -> Image.Image:
    """Decode an image that looks the same to people and models.

    Raises CleansetError for transparency, a second frame, an EXIF orientation, metadata on colors, and bytes after the
    image.
    """
    found = decode_file(data, path, "a PNG or JPEG that can be decoded")
    if found.mode not in PIXEL_MODES or "transparency" in found.info:
        raise CleansetError(f"{path}: mode {found.mode}; expected RGB or grayscale without transparency: convert it")
    if getattr(found, "n_frames", 1) != 1:
        raise CleansetError(f"{path}: an animation; expected one image")
    if found.getexif().get(ORIENTATION, 1) != 1:
        raise CleansetError(
            f"{path}: an EXIF orientation; expected an image without one, since viewers turn the image, models do not"
        )
    beside = problem_beside_pixels(data)
    if beside is not None:
        raise CleansetError(f"{path}: {beside}; expected nothing but its pixels: save them alone")
    return found
