"""From one image to the hints at it: every kind of `kinds` measured, and asked whether it is a sign of a flaw."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from PIL import Image

from cleanset.classes import ClassTable
from cleanset.images.fingerprints import Fingerprint, fingerprint
from cleanset.review.hints.kinds import MEASURED_HINTS, AddedText, HintKind, ImageHint, MeasuredHint, Sign
from cleanset.review.hints.measures import PreparedImage, prepared
from cleanset.review.hints.text import TextLine


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
    """The measures of one image, one for each of MEASURED_HINTS, in their order."""

    size: tuple[int, int]
    """Width and height in stored pixels."""

    hints: tuple[MeasuredHint, ...]

    def of(self, kind: type[Measured]) -> Measured:
        """The measure for one hint."""
        (found,) = (each for each in self.hints if isinstance(each, kind))
        return found


def measure(image: Image.Image) -> tuple[ImageMeasures, Fingerprint]:
    """Measure a decoded image of any mode and size."""
    ready = prepared(image)
    return measures_of(ready), fingerprint(ready.small)


def measures_of(image: PreparedImage) -> ImageMeasures:
    """The measures of a prepared image, which need no library of an extra."""
    return ImageMeasures(image.size, tuple(kind.measure(image) for kind in MEASURED_HINTS))


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
            for sign in each.signs(classes):
                given.add(each.kind)
                yield each.kind, sign
