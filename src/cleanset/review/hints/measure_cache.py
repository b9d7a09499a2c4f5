"""A cache on disk of what is kept of measured images, so that a server that starts again knows their hints at once."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cleanset.cache import PACKAGE, cache_folder, code_digest
from cleanset.classes import ClassTable
from cleanset.edition.versions import installed_version
from cleanset.errors import CleansetError
from cleanset.images.fingerprints import Fingerprint
from cleanset.review.hints.kept_files import KeptFiles
from cleanset.review.hints.kinds import HintKind

CODE = (
    "images/codec.py", "images/fingerprints.py", "images/reduction.py", "review/hints/hints.py",
    "review/hints/kinds.py", "review/hints/measures.py",
)  # fmt: skip
"""The files of the package that decide on an image's hints, without text and without other images."""
LIBRARIES = ("numpy", "pillow", "pdqhash")
HASH_BITS = 256


@dataclass(frozen=True, slots=True)
class KeptMeasures:
    """What is kept of an image that was measured."""

    kinds: frozenset[HintKind]
    """The kinds of its hints, of those that need neither text nor other images."""

    size: tuple[int, int]
    """Width and height in stored pixels."""

    fingerprint: Fingerprint


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: list[HintKind]
    size: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]
    hashes: str
    parts: str


class MeasureCache:
    """What is kept of images, by the SHA-256 of their bytes, a JSON file each.

    Several processes may use one folder at a time. A file that is damaged or cannot be read counts as missing, and one
    that cannot be written is left out: then the image is measured again.
    """

    def __init__(self, folder: Path) -> None:
        self._files = KeptFiles(folder)

    def kept(self, digest: str) -> KeptMeasures | None:
        """What is kept of the image with this SHA-256; None for nothing."""
        with suppress(OSError, CleansetError, ValidationError, ValueError):
            found = _File.model_validate_json(self._files.read(digest), strict=False)
            return KeptMeasures(
                kinds=frozenset(found.kinds),
                size=found.size,
                fingerprint=Fingerprint(hashes=_bits(found.hashes), parts=_bits(found.parts)),
            )
        return None

    def keep(self, digest: str, measures: KeptMeasures) -> None:
        """Keep this of the image with this SHA-256, if the disk allows it."""
        content = _File(
            kinds=sorted(measures.kinds),
            size=measures.size,
            hashes=np.packbits(measures.fingerprint.hashes, axis=1).tobytes().hex(),
            parts=np.packbits(measures.fingerprint.parts, axis=1).tobytes().hex(),
        )
        self._files.keep(digest, f"{content.model_dump_json()}\n".encode())


def _bits(digits: str) -> NDArray[np.bool_]:
    """Hashes of 256 bits, a row each. Raises ValueError for another length."""
    packed = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, HASH_BITS // 8)
    return np.unpackbits(packed, axis=1).astype(bool)


def usual_measure_cache(classes: ClassTable) -> MeasureCache | None:
    """The cache that all editions of ImageNet, or of other images, share on this machine; None without a home.

    Its folder is named after the code and the libraries that measure.
    """
    libraries = [installed_version(name) for name in LIBRARIES]
    made_by = code_digest(CODE, f"{libraries} {classes.is_imagenet}", PACKAGE)
    try:
        return MeasureCache(cache_folder() / "hints" / f"measures-{made_by[:16]}")
    except CleansetError:
        return None
