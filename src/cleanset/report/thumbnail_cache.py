"""A cache on disk of thumbnails, which the report of every edition and `look` share: each is made once.

A report shows tens of thousands of images, of which a reviewer's day changes few.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import PIL
from PIL import features

from cleanset.cache import PACKAGE, cache_folder, code_digest
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256
from cleanset.images.boxes import Box
from cleanset.report.thumbnails import Thumbnail, before_and_after, thumbnail

CODE = ("report/thumbnails.py", "report/thumbnail_cache.py", "images/codec.py", "images/boxes.py")
"""The files of the package that decide on the bytes of a thumbnail, and on how it is kept."""
_DIGITS = 64
"""Of a SHA-256."""

_MAX_SIZE_BYTES = 32
"""Of the line with the size."""


@dataclass(frozen=True, slots=True)
class KnownThumbnail:
    """A thumbnail by its digest and size, without its bytes."""

    sha256: str
    """Of the line with the size, and the JPEG."""

    width: int
    height: int

    def is_of(self, jpeg: bytes) -> bool:
        """Whether these are its bytes."""
        return sha256(_content(self.width, self.height, jpeg)) == self.sha256


@dataclass(frozen=True, slots=True)
class ThumbnailCache:
    """Thumbnails by the SHA-256 of an image's bytes, a file each.

    The file has the SHA-256 of the rest in hexadecimal, a line of width and height in pixels, and the JPEG.

    Several processes may use one folder at a time. A file that is damaged or cannot be read counts as missing, and one
    that cannot be written is left out: then the thumbnail is made again.
    """

    folder: Path | None
    """None: nothing is kept."""

    def thumbnails(
        self, digest: str, read: Callable[[], bytes], crop: Box | None, *, enlarged: bool
    ) -> tuple[Thumbnail, ...]:
        """As `thumbnail` makes one of a whole image, or `before_and_after` two of a cropped one.

        The image is known by the SHA-256 of its bytes, which `read` gives if they are needed.
        """
        names = _names(digest, crop, enlarged=enlarged)
        kept = [each for each in map(self._kept, names) if each is not None]
        if len(kept) == len(names):
            return tuple(kept)
        data = read()
        made = (
            (thumbnail(data, enlarged=enlarged),) if crop is None else before_and_after(data, crop, enlarged=enlarged)
        )
        for name, each in zip(names, made, strict=True):
            self._keep(name, each)
        return made

    def known(self, digest: str, crop: Box | None, *, enlarged: bool) -> tuple[KnownThumbnail, ...] | None:
        """The digests and sizes of what `thumbnails` returns; None if one is missing."""
        known = [each for each in map(self._known, _names(digest, crop, enlarged=enlarged)) if each is not None]
        return tuple(known) if len(known) == (1 if crop is None else 2) else None

    def _known(self, name: str) -> KnownThumbnail | None:
        if self.folder is None:
            return None
        with suppress(OSError, ValueError):
            with (self.folder / name).open("rb", buffering=0) as file:
                start = file.read(_DIGITS + _MAX_SIZE_BYTES)
            size, _, _ = start[_DIGITS:].partition(b"\n")
            width, height = map(int, size.split())
            return KnownThumbnail(sha256=start[:_DIGITS].decode(), width=width, height=height)
        return None

    def _kept(self, name: str) -> Thumbnail | None:
        if self.folder is None:
            return None
        with suppress(OSError):
            data = read_bytes(self.folder / name)
            content = data[_DIGITS:]
            if data[:_DIGITS] == sha256(content).encode():
                size, _, jpeg = content.partition(b"\n")
                width, height = map(int, size.split())
                return Thumbnail(jpeg=jpeg, width=width, height=height)
        return None

    def _keep(self, name: str, made: Thumbnail) -> None:
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            content = _content(made.width, made.height, made.jpeg)
            # a file that a kill cuts off is seen by its digest
            (self.folder / name).write_bytes(sha256(content).encode() + content)


def _names(digest: str, crop: Box | None, *, enlarged: bool) -> list[str]:
    words = [digest, *([] if crop is None else map(str, crop)), *(["enlarged"] if enlarged else [])]
    return [f"{'-'.join(words)}-{place}" for place in range(1 if crop is None else 2)]


def _content(width: int, height: int, jpeg: bytes) -> bytes:
    return f"{width} {height}\n".encode() + jpeg


def usual_thumbnail_cache(package: Path = PACKAGE) -> ThumbnailCache:
    """The cache that all editions on this machine share; without a home or CLEANSET_CACHE, none.

    Its folder is named after the code of the package that makes thumbnails and the libraries that it calls.
    """
    libraries = f"{PIL.__version__} {features.version('libjpeg_turbo')} {features.version('jpg')}"
    made_by = code_digest(CODE, libraries, package)
    try:
        return ThumbnailCache(cache_folder() / "thumbnails" / made_by[:16])
    except CleansetError:  # no home
        return ThumbnailCache(None)
