"""Checks of submitted images: refused if people would see something else than models, or if copied.

Bytes after the end of an image, and metadata that change a viewer's colors, show people something else. Copies
have the same pixels but for a few levels, or are JPEGs of the known image. A JPEG is found by making it: the known
image, encoded with each quality and sampling of libjpeg, and with the tables of the submitted file. Images that look
alike (PDQ) may still be new, so that they are reported to the board and not refused.
"""

import importlib.util
import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin

from cleanset.errors import CleansetError
from cleanset.files import read_bytes
from cleanset.images.codec import ORIENTATION, decode, decode_file, end_of_jpeg, opened
from cleanset.images.preprocessing import Pixels

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
MAX_JPEG_CHANGE = 0.5
"""The same between an image and a JPEG of the known one; encoders differ in rounding."""
MAX_DISTANCE = 31
"""PDQ's own limit for similar images: differing bits, of 256."""

MIN_HASH_QUALITY = 50
"""PDQ's own minimum quality of a useful hash, of 100."""

_SMALL = (32, 32)
"""Width and height of small copies, in pixels."""

_MAX_SMALL_CHANGE = 24.0
"""Mean absolute difference, of 255, up to which small copies may be of one image.

An image and its JPEG of quality 1 differ by 10 to 22, two photographs by 27 and more.
"""

_PART = 256
"""Side, in pixels, of the part that is compared with JPEGs of the known image."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownImage:
    """An image whose copies are refused."""

    name: str
    path: Path
    size: tuple[int, int]
    """Width and height, in pixels."""

    small: NDArray[np.int16]
    """A small copy, shape (32, 32, 3), 0 to 255."""

    hashes: NDArray[np.bool_]
    """Its PDQ hashes as it is, turned and mirrored, shape (8, 256); (0, 256) without detail or PDQ."""


def can_hash() -> bool:
    """Whether images that look alike can be found; PDQ is in the extra `review`."""
    return importlib.util.find_spec("pdqhash") is not None


def known_images(paths: Mapping[str, Path]) -> list[KnownImage]:
    """The images of the files that are there, by name. Raises CleansetError for one that cannot be read."""
    found = []
    for name, path in sorted(paths.items()):
        if path.is_file():
            status = path.stat()
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            found.append(_known_image(name, path, identity))
    return found


@lru_cache(100_000)
def _known_image(name: str, path: Path, _identity: tuple[int, ...]) -> KnownImage:
    # each is compared with every submitted image; a file that was changed is another one, so is one of its path
    image = _read(path)
    return KnownImage(name=name, path=path, size=image.size, small=_small(image), hashes=_hashes(image))


def copied(path: Path, known: Sequence[KnownImage]) -> str | None:
    """The known image that was copied into a file, by its name and with the evidence; None for a new image."""
    data = read_bytes(path)
    image = decode(data).convert("RGB")
    small = _small(image)
    for each in known:
        # the small copies differ less than the images, so that hardly any image has to be read in full
        if each.size == image.size and np.abs(each.small - small).mean() <= _MAX_SMALL_CHANGE:
            original = _read(each.path)
            change = _change(np.asarray(image), np.asarray(original))
            if change <= MAX_CHANGE:
                return f"{each.name}, which differs by {change:.2g} of 255 on average"
            if any(each_change <= MAX_JPEG_CHANGE for each_change in _jpeg_changes(data, image, original)):
                return f"{each.name}, encoded anew as JPEG"
    return None


def lookalikes(path: Path, known: Sequence[KnownImage]) -> list[tuple[int, str]]:
    """The distance, 0 to 31 bits, and the name of each known image that looks like a file; the nearest first."""
    own = _hashes(_read(path))
    if not len(own):
        return []
    found = [(int((each.hashes != own[0]).sum(1).min()), each.name) for each in known if len(each.hashes)]
    return sorted(each for each in found if each[0] <= MAX_DISTANCE)


def _read(path: Path) -> Image.Image:
    return decode_file(read_bytes(path), path, "a PNG or JPEG: dvc pull").convert("RGB")


def _small(image: Image.Image) -> NDArray[np.int16]:
    return np.asarray(image.resize(_SMALL, Image.Resampling.BOX), np.int16)


def _hashes(image: Image.Image) -> NDArray[np.bool_]:
    """Shape (8, 256): as it is, turned and mirrored; (0, 256) for an image without detail, and without PDQ."""
    if not can_hash():
        return np.empty((0, 256), np.bool_)
    import pdqhash

    hashes, quality = pdqhash.compute_dihedral(np.asarray(image))
    return np.array(hashes, np.bool_) if quality >= MIN_HASH_QUALITY else np.empty((0, 256), np.bool_)


def _change(one: Pixels, other: Pixels) -> float:
    return float(np.abs(one.astype(np.int16) - other).mean())


def _jpeg_changes(data: bytes, image: Image.Image, original: Image.Image) -> Iterator[float]:
    """The difference of an image from each JPEG of the original, in a part of both that begins at a whole block."""
    left, top = ((side - _PART) // 2 // 16 * 16 if side > _PART else 0 for side in image.size)
    box = (left, top, min(left + _PART, image.width), min(top + _PART, image.height))
    wanted = np.asarray(image.crop(box))
    part = original.crop(box)
    with opened(io.BytesIO(data), data) as file:
        if isinstance(file, JpegImagePlugin.JpegImageFile):
            sampling = JpegImagePlugin.get_sampling(file)
            yield _change(wanted, _jpeg(part, qtables=file.quantization, subsampling=max(sampling, 0)))
    for quality in range(1, 101):
        for sampling in (0, 1, 2):
            yield _change(wanted, _jpeg(part, quality=quality, subsampling=sampling))


def _jpeg(image: Image.Image, **options: object) -> Pixels:
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    with Image.open(out) as found:
        return np.asarray(found.convert("RGB"))


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
