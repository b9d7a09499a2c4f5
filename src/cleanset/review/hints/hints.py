"""From one image to the hints at it: every kind of `kinds` measured, and asked whether it is a sign of a flaw."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self, TypeVar

import numpy as np
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cleanset.classes import ClassTable
from cleanset.edition.versions import installed_version
from cleanset.images.fingerprints import Fingerprint, fingerprint
from cleanset.plumbing.cache import PACKAGE
from cleanset.plumbing.kept_files import KeptFiles, kept_files
from cleanset.plumbing.validation import AtLeastOne, Role
from cleanset.review.hints.kinds import MEASURED_HINTS, AddedText, HintKind, ImageHint, MeasuredHint, Sign, naming
from cleanset.review.hints.measures import PreparedImage, prepared
from cleanset.review.hints.text import TextLine
from cleanset.statistics.basics import Flags


@dataclass(frozen=True, slots=True)
class Hint:
    """A sign of a flaw, as a card shows it."""

    kind: HintKind
    text: str
    """The sign in words."""

    others: tuple[str, ...] = ()
    """The ids of the images that it compares with."""


Measured = TypeVar("Measured", bound=MeasuredHint)


@dataclass(frozen=True, slots=True)
class ImageMeasures:
    """The measures of one image, one for each of the hints that were asked for, in their order."""

    size: tuple[int, int]
    """Width and height in stored pixels."""

    hints: tuple[MeasuredHint, ...]

    def of(self, kind: type[Measured]) -> Measured:
        """The measure for one hint."""
        (found,) = (each for each in self.hints if isinstance(each, kind))
        return found


Measuring = Sequence[type[MeasuredHint]]
"""The hints that are asked for, each after those that hide it."""


def measure(image: Image.Image, hints: Measuring = MEASURED_HINTS) -> tuple[ImageMeasures, Fingerprint]:
    """Measure a decoded image of any mode and size."""
    ready = prepared(image)
    return measures_of(ready, hints), fingerprint(ready.small)


def measures_of(image: PreparedImage, hints: Measuring = MEASURED_HINTS) -> ImageMeasures:
    """The measures of a prepared image, which need no library of an extra."""
    found = []
    for hint in hints:
        with naming(hint):
            found.append(hint.measure(image))
    return ImageMeasures(image.size, tuple(found))


def hints_of_image(measures: ImageMeasures, classes: ClassTable, lines: Sequence[TextLine] = ()) -> list[Hint]:
    """The hints from one image alone, and from the lines of text that were read in it."""
    return [Hint(kind, sign.text) for kind, sign in signs_of_image(measures, classes, lines)]


def signs_of_image(
    measures: ImageMeasures, classes: ClassTable, lines: Sequence[TextLine] = ()
) -> list[tuple[HintKind, Sign]]:
    """Each sign at one image alone, with the kind of its hint, as `hints_of_image` gives them."""
    return list(_signs((*measures.hints, AddedText(tuple(lines), measures.size)), classes))


def _signs(measured: Iterable[ImageHint], classes: ClassTable) -> Iterator[tuple[HintKind, Sign]]:
    given: set[HintKind] = set()
    for each in measured:
        if given.isdisjoint(each.hidden_by):
            with naming(type(each)):
                signs = list(each.signs(classes))
            for sign in signs:
                given.add(each.kind)
                yield each.kind, sign


_Hashes = Annotated[str, Field(pattern="^([0-9a-f]{64})*$")]
"""Hashes of 256 bits in hexadecimal, one after another."""


class KeptMeasures(BaseModel):
    """What is kept of an image that was measured, so that a server that starts again knows its hints at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: frozenset[Role]
    """The kinds of its hints, of those that need neither text nor other images."""

    size: tuple[AtLeastOne, AtLeastOne]
    """Width and height in stored pixels."""

    hashes: _Hashes
    parts: _Hashes

    @classmethod
    def of(cls, kinds: Iterable[HintKind], size: tuple[int, int], found: Fingerprint) -> Self:
        """What is kept of an image with this fingerprint."""
        return cls(kinds=frozenset(kinds), size=size, hashes=_digits(found.hashes), parts=_digits(found.parts))

    @property
    def fingerprint(self) -> Fingerprint:
        """Its perceptual hashes."""
        return Fingerprint(hashes=_bits(self.hashes), parts=_bits(self.parts))


def _digits(bits: Flags) -> str:
    return np.packbits(bits, axis=1).tobytes().hex()


def _bits(digits: str) -> Flags:
    """Hashes of 256 bits, a row each."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, 32), axis=1).astype(bool)


KEPT_MEASURES = TypeAdapter(KeptMeasures)
"""What is kept of measured images, by the SHA-256 of their bytes."""

CODE = (
    "images/codec.py", "images/fingerprints.py", "review/hints/hints.py",
    "review/hints/kinds.py", "review/hints/measures.py",
)  # fmt: skip
"""The files of the package that decide on an image's hints, without text and without other images."""
_LIBRARIES = ("numpy", "pillow", "pdqhash")


def usual_measure_files(classes: ClassTable, package: Path = PACKAGE, own_code: str = "") -> KeptFiles:
    """The measures that all editions of ImageNet, or of other images, share on this machine.

    `own_code`: the digests of the hints of users.
    """
    libraries = [installed_version(name) for name in _LIBRARIES]
    return kept_files("hints", CODE, f"{libraries} {classes.is_imagenet}{own_code}", package)
