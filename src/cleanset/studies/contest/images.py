"""Checks of submitted images: refused if people would see something else than models, or if copied.

Bytes after the end of an image, and metadata that change a viewer's colors, show people something else. Copies
have the same pixels but for a level on average. Images that look alike (PDQ), such as a known one encoded anew with a
low quality, may still be new, so that they are reported to the board and not refused.
"""

import io
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cleanset.edition.versions import installed_version
from cleanset.images.codec import ORIENTATION, decode, decode_file, end_of_jpeg, opened, pixels_sha256
from cleanset.images.fingerprints import can_fingerprint
from cleanset.plumbing.kept_files import KeptFiles, kept_files
from cleanset.plumbing.validation import Sha256

_CODE = ("images/codec.py", "studies/contest/images.py")
"""The files of the package that decide on what is known of an image."""
_LIBRARIES = ("numpy", "pillow", "pdqhash")

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
_VALUES = 3 * _SMALL[0] * _SMALL[1]

_MAX_SMALL_CHANGE = 4.0
"""Mean absolute difference of small copies, of 255, beyond which no image is a copy.

An average of pixels changes by no more than they do on average: by MAX_CHANGE, and what rounding and sides below eight
pixels add.
"""


class MeasuredImage(BaseModel):
    """What is known of an image by its bytes, and kept on this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int
    height: int
    pixels_sha256: Sha256
    problem: str | None
    """Why it cannot be submitted."""

    small: Annotated[str, Field(pattern=f"^[0-9a-f]{{{2 * _VALUES}}}$")]
    """A small copy: 192 values of a byte, in hexadecimal."""

    hashes: Annotated[str, Field(pattern="^([0-9a-f]{512})?$")]
    """Its PDQ hash, as it is, turned and mirrored: 8 x 256 bits, in hexadecimal; empty without detail or PDQ."""

    def signs(self) -> NDArray[np.float32]:
        """The bits of its hashes as -1 and 1, shape (8, 256) or (0, 256)."""
        packed = np.frombuffer(bytes.fromhex(self.hashes), np.uint8)
        return 2 * np.unpackbits(packed).reshape(-1, 256).astype(np.float32) - 1


class Measures:
    """Images by the SHA-256 of their bytes; each is decoded once on this machine, if its disk allows it.

    The folder of what is kept is named after the code and the libraries that measure.
    """

    def __init__(self) -> None:
        self._known: dict[str, MeasuredImage] = {}
        self._files = _usual_files()

    def kept(self, digest: str) -> MeasuredImage | None:
        """What is known of the image with this SHA-256; None for one that was not measured here."""
        if digest not in self._known:
            found = self._files.read_value(digest, _KEPT)
            if found is not None:
                self._known[digest] = found
        return self._known.get(digest)

    def of(self, path: Path, digest: str, data: bytes) -> MeasuredImage:
        """What is known of an image of some bytes. Raises CleansetError if they cannot be decoded."""
        found = self.kept(digest)
        if found is None:
            found = self._known[digest] = _measured(path, data)
            self._files.keep_value(digest, _KEPT, found)
        return found


_KEPT = TypeAdapter(MeasuredImage)


def _usual_files() -> KeptFiles:
    return kept_files("contest", _CODE, str([installed_version(name) for name in _LIBRARIES]))


def _measured(path: Path, data: bytes) -> MeasuredImage:
    image = decode_file(data, path, "a PNG or JPEG that can be decoded")
    pixels = image.convert("RGB")
    return MeasuredImage(
        width=image.width,
        height=image.height,
        pixels_sha256=pixels_sha256(pixels),
        problem=_problem(image, data),
        small=np.asarray(pixels.resize(_SMALL, Image.Resampling.BOX)).tobytes().hex(),
        hashes=_hashes(pixels).tobytes().hex(),
    )


def _hashes(image: Image.Image) -> NDArray[np.uint8]:
    """Eight hashes, packed, shape (8, 32); (0, 32) without detail, and without PDQ."""
    if can_fingerprint():
        import pdqhash

        hashes, quality = pdqhash.compute_dihedral(np.asarray(image))
        if quality >= MIN_HASH_QUALITY:
            return np.packbits(np.array(hashes, np.uint8), axis=1)
    return np.empty((0, 32), np.uint8)


class KnownImage(NamedTuple):
    """An image that was there before."""

    name: str
    measured: MeasuredImage
    read: Callable[[], bytes]
    """Its bytes, which are asked for only if it may have been copied."""


class KnownImages:
    """Images whose copies are refused, and whose lookalikes are listed: an index that is asked about new images."""

    def __init__(self, images: Iterable[KnownImage]) -> None:
        self._images = sorted(images, key=lambda each: each.name)
        measured = [each.measured for each in self._images]
        self._sizes = np.array([(each.width, each.height) for each in measured], np.int64).reshape(-1, 2)
        self._small = np.array([_small(each) for each in measured], np.float32).reshape(-1, _VALUES)
        self._means = self._small.mean(1)
        self._hashed = [number for number, each in enumerate(measured) if each.hashes]
        self._signs = np.array([each.signs()[0] for each in measured if each.hashes], np.float32).reshape(-1, 256)

    def __len__(self) -> int:
        return len(self._images)

    def copied(self, data: bytes, measured: MeasuredImage) -> str | None:
        """The known image that an image is a copy of, by its name and with the evidence; None for a new image."""
        small = _small(measured)
        # no mean of all values differs by more than they do on average
        near = np.flatnonzero(np.abs(self._means - small.mean()) <= _MAX_SMALL_CHANGE + 0.01)
        near = near[(self._sizes[near] == (measured.width, measured.height)).all(1)]
        alike = np.abs(self._small[near] - small).mean(1, dtype=np.float64) <= _MAX_SMALL_CHANGE
        for known in (self._images[number] for number in near[alike]):
            change = float(np.abs(_pixels(data) - _pixels(known.read())).mean())
            if change <= MAX_CHANGE:
                return f"{known.name}, which differs by {change:.2g} of 255 on average"
        return None

    def lookalikes(self, measured: MeasuredImage) -> list[tuple[int, str]]:
        """The distance, 0 to 31 bits, and the name of each known image that looks like another; the nearest first.

        Also of those that look like it turned or mirrored.
        """
        own = measured.signs()
        if not len(own) or not self._hashed:
            return []
        # equal signs less different ones, of 256, whichever way the file is turned
        distances = (256 - (self._signs @ own.T).max(1)) / 2
        near = np.flatnonzero(distances <= MAX_DISTANCE)
        return sorted((int(distances[each]), self._images[self._hashed[each]].name) for each in near)


def _small(measured: MeasuredImage) -> NDArray[np.float32]:
    return np.frombuffer(bytes.fromhex(measured.small), np.uint8).astype(np.float32)


def _pixels(data: bytes) -> NDArray[np.int16]:
    return np.asarray(decode(data).convert("RGB"), np.int16)


PIXEL_MODES = ("RGB", "L")


def _problem(image: Image.Image, data: bytes) -> str | None:
    """Why an image looks otherwise to people than to models; None if it does not.

    Transparency, a second frame, an EXIF orientation, metadata on colors, and bytes after the image.
    """
    if image.mode not in PIXEL_MODES or "transparency" in image.info:
        return f"mode {image.mode}; expected RGB or grayscale without transparency: convert it"
    if getattr(image, "n_frames", 1) != 1:
        return "an animation; expected one image"
    if image.getexif().get(ORIENTATION, 1) != 1:
        return "an EXIF orientation; expected an image without one, since viewers turn the image, models do not"
    beside = problem_beside_pixels(data)
    return None if beside is None else f"{beside}; expected nothing but its pixels: save them alone"
