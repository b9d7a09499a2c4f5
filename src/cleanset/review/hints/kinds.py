"""The kinds of hints: one class for each, with its measured values, its words, its docs, and its limit.

That of text is in `added_text`.

A hint never counts as a verdict, and an image without one may be as flawed as any. No hint finds several objects, a
wrong class, a drawing, a small object in a large image, large words across the middle, text written at an angle, a
wordless watermark, most collages, or a filter that leaves many colours (docs/review_figures.md has more).

Limits are round numbers, chosen on half of the photographs of bench/RESULTS.md.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from inspect import isabstract
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, raised
from cleanset.plumbing.validation import ROLE_FORM, shown
from cleanset.review.hints import measures
from cleanset.review.hints.added_text import MIN_SCORE, added_line
from cleanset.review.hints.measures import PreparedImage
from cleanset.review.hints.text import TextLine
from cleanset.review.reasons import REASON_ENTRIES
from cleanset.scoring.own_code import imported_callable
from cleanset.statistics.formats import decimal

HintKind = str
"""A reason, or another word: an image of few pixels, a dark or a bright one need not have a flaw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A sign of a flaw: in words, and as a measure beyond its limit."""

    text: str
    """The sign in words, with what was measured where people read it."""

    measure: str
    """What was measured, in words, with its unit."""

    value: float
    limit: float
    """The value at which the measure becomes a sign."""

    strongest: float
    """The value of the strongest sign: above or below the limit."""

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.value, self.limit, self.strongest))) or self.limit == self.strongest:
            raise ValueError(f"{self}; expected finite numbers, and a limit other than the strongest value")

    @property
    def severity(self) -> float:
        """How far the value is from the limit towards the strongest sign, 0 to 1, to sort signs of all kinds by."""
        share = (self.value - self.limit) / (self.strongest - self.limit)
        return min(max(share, 0.0), 1.0)


class KnownHint:
    """What is known of a hint before any image is measured."""

    kind: ClassVar[HintKind]
    """The reason to reject the image that the sign speaks for, or another word with a `key`."""

    docs: ClassVar[str]
    """The sign in words, as the documentation lists it."""

    rules_of: ClassVar[date]
    """The day on which its rules changed last; rates of earlier rules are not its own."""

    key: ClassVar[str]
    """The key that filters by it on the review page, of one that speaks for no reason; else it is the reason's key."""


class ImageHint(KnownHint, ABC):
    """What was measured of an image for one hint, and whether it is a sign of a flaw."""

    hidden_by: ClassVar[frozenset[HintKind]] = frozenset()
    """The hints with which this one is not given."""

    @abstractmethod
    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """Each sign of the flaw; `classes`: those of the dataset."""


class MeasuredHint(ImageHint):
    """A hint from the pixels of an image."""

    @classmethod
    @abstractmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure an image."""


@dataclass(frozen=True, slots=True)
class Border(MeasuredHint):
    """Margins at two opposite sides, or at three or four."""

    kind = "border"
    docs = "plain margins that end in a straight edge, on two opposite sides; a line on all four"
    rules_of = date(2026, 12, 1)

    margins: tuple[float, float, float, float]
    """Left, top, right, bottom: share of the width or height that is plain and ends in a straight edge, with the rows
    that are soft there; all 0 without a border."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the margins."""
        left, top, right, bottom = image.margins
        width, height = image.small.size
        return cls((left / width, top / height, right / width, bottom / height))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The widths of the margins."""
        margins = zip(("left", "top", "right", "bottom"), self.margins, strict=True)
        widths = [f"{side} {max(round(100 * share), 1)} %" for side, share in margins if share]
        if widths:
            yield Sign(
                text=f"plain margins: {', '.join(widths)}",
                measure="widest margin, share of the side",
                value=max(self.margins),
                limit=0.0,
                strongest=measures.MAX_MARGIN_SHARE,
            )


@dataclass(frozen=True, slots=True)
class Collage(MeasuredHint):
    """A straight edge through the whole image, or two halves that mirror each other."""

    kind = "collage"
    docs = "a straight edge across the image, from side to side; halves that mirror each other"
    rules_of = date(2026, 12, 1)
    MIN_SEAM = 0.9
    # of 1,000 photographs none has less than 0.31; mirrored halves have 0.14 at most
    MAX_ASYMMETRY = 0.2

    seams: tuple[float, float]
    """The straightest edge from top to bottom and from left to right, inside plain margins and away from the outer
    tenths: the share of its length, 0 to 1, where colours step at once, and less on both sides."""

    asymmetry: float
    """How far the halves, left and right or top and bottom, are from mirroring each other: 0 if they do."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the straightest edges and the halves."""
        return cls(measures.seams(image.inside), measures.asymmetry(image.inside))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The direction of each straight edge; mirrored halves."""
        for seam, course in zip(self.seams, ("from top to bottom", "from left to right"), strict=True):
            if seam >= self.MIN_SEAM:
                yield Sign(
                    text=f"a straight edge {course}",
                    measure="stepping at once, share of the edge",
                    value=seam,
                    limit=self.MIN_SEAM,
                    strongest=1.0,
                )
        if self.asymmetry <= self.MAX_ASYMMETRY:
            yield Sign(
                text="halves that mirror each other",
                measure="difference of the halves, share of the contrast",
                value=self.asymmetry,
                limit=self.MAX_ASYMMETRY,
                strongest=0.0,
            )


@dataclass(frozen=True, slots=True)
class Dark(MeasuredHint):
    """An image without bright pixels."""

    kind = "dark"
    docs = "a dark image, whose background and colours cannot be judged"
    rules_of = date(2026, 11, 29)
    key = "u"
    # of the darkest of 250 photographs, 99 of 100 pixels are below 98
    MAX_LEVEL = 90.0

    brightest: float
    """The 99th of 100 pixels' brightness, 0 to 255."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the brightest pixels."""
        return cls(float(np.percentile(image.grey, 99)))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The level above which there is hardly a pixel."""
        if self.brightest <= self.MAX_LEVEL:
            yield Sign(
                text=f"hardly a pixel above level {decimal(self.brightest, 0)} of 255",
                measure="99th of 100 levels of brightness",
                value=self.brightest,
                limit=self.MAX_LEVEL,
                strongest=0.0,
            )


@dataclass(frozen=True, slots=True)
class Bright(MeasuredHint):
    """An image without dark pixels."""

    kind = "bright"
    docs = "a bright image, whose background and colours cannot be judged"
    rules_of = date(2026, 11, 29)
    key = "x"
    hidden_by = frozenset({"dark"})
    # of the brightest of 250 photographs, 99 of 100 pixels are above 102
    MIN_LEVEL = 150.0

    darkest: float
    """The 1st of 100 pixels' brightness, 0 to 255."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the darkest pixels."""
        return cls(float(np.percentile(image.grey, 1)))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The level below which there is hardly a pixel."""
        if self.darkest >= self.MIN_LEVEL:
            yield Sign(
                text=f"hardly a pixel below level {decimal(self.darkest, 0)} of 255",
                measure="1st of 100 levels of brightness",
                value=self.darkest,
                limit=self.MIN_LEVEL,
                strongest=255.0,
            )


@dataclass(frozen=True, slots=True)
class PlainBackground(MeasuredHint):
    """One plain colour around the image."""

    kind = "artificial_background"
    docs = "a plain background of one colour"
    rules_of = date(2026, 11, 29)
    # with few levels between them, all areas look plain
    hidden_by = frozenset({"dark", "bright"})
    MIN_SHARE = 0.7

    background: float
    """How far one plain colour reaches around the image, inside plain margins: the mean of its shares of the four
    sides, 0 to 1."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the background."""
        return cls(measures.background(image.inside))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The share of the sides."""
        if self.background >= self.MIN_SHARE:
            yield Sign(
                text="a plain background",
                measure="of one colour, share of the four sides",
                value=self.background,
                limit=self.MIN_SHARE,
                strongest=1.0,
            )


@dataclass(frozen=True, slots=True)
class Filter(MeasuredHint):
    """Colours that a filter has taken away or left."""

    kind = "filter"
    docs = "no colour, one colour, or grey with some colour"
    rules_of = date(2026, 11, 29)
    # what precedes a plain background is often grey or black by nature; with few levels all colours are faint
    hidden_by = frozenset({"dark", "bright", "artificial_background"})
    MAX_COLOURLESS = 8.0
    MAX_TINT = 3.0
    # a photograph without strong colours rarely has a tint of this median saturation
    MIN_TINTED = 10.0
    MIN_NEUTRAL = 0.5
    MIN_ONE_COLOUR = 60.0

    saturations: tuple[float, float, float]
    """The 50th, 95th and 99th of 100 pixels' difference between its strongest and weakest colour, in levels."""

    neutral: float
    """The share of pixels, of those neither dark nor bright, where that difference is at most 3 levels, 0 to 1."""

    tint: float
    """How far colours stray from the mean colour of their brightness, in levels (root mean square)."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the colours."""
        saturations, neutral, tint = measures.colours(image.small)
        return cls(saturations, neutral, tint)

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The colours that are left."""
        median, high, highest = self.saturations
        if high <= self.MAX_COLOURLESS:
            yield Sign(
                text="nearly without colour",
                measure="95th of 100 saturations, in levels",
                value=high,
                limit=self.MAX_COLOURLESS,
                strongest=0.0,
            )
        elif self.tint <= self.MAX_TINT and median >= self.MIN_TINTED:
            yield Sign(
                text="a single tint",
                measure="distance of colours from the tint, in levels",
                value=self.tint,
                limit=self.MAX_TINT,
                strongest=0.0,
            )
        elif self.neutral >= self.MIN_NEUTRAL and highest >= self.MIN_ONE_COLOUR:
            yield Sign(
                text="grey with some colour",
                measure="without colour, share of the pixels",
                value=self.neutral,
                limit=self.MIN_NEUTRAL,
                strongest=1.0,
            )


@dataclass(frozen=True, slots=True)
class Blur(MeasuredHint):
    """An image out of focus."""

    kind = "blur"
    docs = "softness: no sharp edge anywhere"
    rules_of = date(2026, 11, 29)
    MAX_SHARPNESS = 0.4

    sharpness: float
    """The steepest edges between neighbours by those over four pixels: 0.25 for ramps, 1 for steps."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the steepest edges."""
        return cls(measures.sharpness(image.grey))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The steepest edges."""
        if self.sharpness <= self.MAX_SHARPNESS:
            yield Sign(
                text="no sharp edge anywhere",
                measure="steps between neighbours, share of those over four pixels",
                value=self.sharpness,
                limit=self.MAX_SHARPNESS,
                strongest=measures.SHARPNESS_OF_RAMPS,
            )


@dataclass(frozen=True, slots=True)
class Noise(MeasuredHint):
    """Grain in the whole image."""

    kind = "noise"
    docs = "noise in the whole image"
    rules_of = date(2026, 11, 29)
    MIN_NOISE = 18.0
    # little is recognized beyond
    STRONGEST_NOISE = 72.0

    noise: float
    """Standard deviation of the noise, in grey levels (Immerkaer 1996, with the median)."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Measure the noise."""
        return cls(measures.noise(image.grey))

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The noise in grey levels."""
        if self.noise >= self.MIN_NOISE:
            yield Sign(
                text=f"noise of {decimal(self.noise, 0)} grey levels",
                measure="standard deviation of the noise, in grey levels",
                value=self.noise,
                limit=self.MIN_NOISE,
                strongest=self.STRONGEST_NOISE,
            )


@dataclass(frozen=True, slots=True)
class FewPixels(MeasuredHint):
    """A small image, which models enlarge."""

    kind = "few_pixels"
    docs = "few pixels (ImageNet's images alone): a side below 150"
    rules_of = date(2026, 11, 29)
    key = "p"
    # smaller images are enlarged by more than half for ImageNet's models
    MIN_SHORT_SIDE_PIXELS = 150

    size: tuple[int, int]
    """Width and height in stored pixels."""

    @classmethod
    def measure(cls, image: PreparedImage) -> Self:
        """Take the size."""
        return cls(image.size)

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """Width and height; what enlarges images of other datasets is not known."""
        if classes.is_imagenet and min(self.size) < self.MIN_SHORT_SIDE_PIXELS:
            yield Sign(
                text=f"{self.size[0]} × {self.size[1]} pixels",
                measure="shorter side, in pixels",
                value=min(self.size),
                limit=self.MIN_SHORT_SIDE_PIXELS,
                strongest=1,
            )


MAX_TEXT = 40
"""Characters of a line of text that a hint shows."""


@dataclass(frozen=True, slots=True)
class AddedText(ImageHint):
    """Text that was added to an image, read later than the pixels are measured (`hints.text`)."""

    kind = "text"
    docs = "a level line of text near an edge; anywhere a web address, a copyright, sample or preview"
    rules_of = date(2026, 11, 29)

    lines: tuple[TextLine, ...]
    size: tuple[int, int]
    """Width and height of the image in stored pixels."""

    def signs(self, classes: ClassTable) -> Iterator[Sign]:
        """The longest line that may have been added, and its place."""
        line = added_line(self.lines, self.size)
        if line is not None:
            text = line.text if len(line.text) <= MAX_TEXT else f"{line.text[: MAX_TEXT - 1]}…"
            yield Sign(
                text=f"“{text}”, {_position(line, self.size)}",
                measure="confidence that these are the letters",
                value=line.score,
                limit=MIN_SCORE,
                strongest=1.0,
            )


def _position(line: TextLine, size: tuple[int, int]) -> str:
    """The place of the middle of a line in an image of this size, in words."""
    left, top, right, bottom = line.box
    width, height = size
    row = ("top", "middle", "bottom")[min(3 * (top + bottom) // (2 * height), 2)]
    return f"{row} {('left', 'centre', 'right')[min(3 * (left + right) // (2 * width), 2)]}"


_KEY = re.compile("[a-z]")


class Duplicate(KnownHint):
    """A near-duplicate, found by comparing images (`duplicates`, `ranked`)."""

    kind = "duplicate"
    docs = "a near-duplicate among the candidates of a class: turned, mirrored, cropped by up to 8 % of each side"
    rules_of = date(2026, 12, 1)


MEASURED_HINTS: tuple[type[MeasuredHint], ...] = (
    Border, Collage, Dark, Bright, PlainBackground, Filter, Blur, Noise, FewPixels,
)  # fmt: skip
"""Each hint from pixels, after those that hide it."""


def registered(
    *hints: type[KnownHint], said: Iterable[str] = ("kind", "docs", "rules_of")
) -> Mapping[str, type[KnownHint]]:
    """Hints by the key that filters by them, the first of each kind.

    Raises TypeError for one that leaves out what a hint has to say, for two kinds of one key, and for one that comes
    before a hint that hides it.
    """
    keys: dict[str, str] = {name: entry.key for name, entry in REASON_ENTRIES.items()}
    found = dict[str, type[KnownHint]]()
    for hint in hints:
        missing = [name for name in said if not hasattr(hint, name)]
        key = "" if missing else keys.get(hint.kind) or str(getattr(hint, "key", ""))
        if missing or not _KEY.fullmatch(key):
            raise TypeError(f"{hint.__name__}: without {', '.join(missing or ['key'])}; expected of every hint")
        if (other := found.get(key)) is hint or (other and other.kind != hint.kind):
            raise TypeError(f"{hint.__name__}: with the key {key}, as {other.__name__}; expected another")
        before = {each.kind for each in found.values()}
        if issubclass(hint, ImageHint) and not hint.hidden_by <= before:
            raise TypeError(f"{hint.__name__}: before {', '.join(sorted(hint.hidden_by - before))}; expected it after")
        found.setdefault(key, hint)
    return found


HINTS = registered(*MEASURED_HINTS, AddedText, Duplicate)
"""All hints by the key that filters by them, in the order of the docs."""


def measured_hints(names: Sequence[str], where: str, folder: Path | None = None) -> tuple[type[MeasuredHint], ...]:
    """MEASURED_HINTS, then those of users by MODULE:NAME, of modules in `folder` or the current one.

    Raises CleansetError, naming `where`, for a name of something else, and for a hint that `registered` refuses.
    """
    found = list(MEASURED_HINTS)
    for name in names:
        hint = imported_callable(name, f"{where} {name}", folder)
        if not (isinstance(hint, type) and issubclass(hint, MeasuredHint)) or isabstract(hint):
            raise CleansetError(
                f"{where} {name}: {shown(hint)}; expected a subclass of {MeasuredHint.__module__}.MeasuredHint with "
                "kind, measure and signs"
            )
        found.append(hint)
        if not ROLE_FORM.fullmatch(kind := getattr(hint, "kind", "")):
            raise CleansetError(f"{where} {name}: kind {shown(kind)}; expected small letters, digits and _")
        try:
            registered(*found, AddedText, Duplicate, said=("kind",))
        except TypeError as error:
            raise CleansetError(f"{where} {name}: {error}") from None
    return tuple(found)


def hint_keys(measured: Iterable[type[MeasuredHint]] = MEASURED_HINTS) -> Mapping[str, HintKind]:
    """The kinds of hints by the key that filters by them."""
    every = registered(*measured, AddedText, Duplicate, said=("kind",))
    return {key: hint.kind for key, hint in every.items()}


@contextmanager
def naming(hint: type[KnownHint]) -> Iterator[None]:
    """Raise CleansetError, which names the hint, for whatever the code of a user raises in the block."""
    try:
        yield
    except Exception as error:
        if hint.__module__.startswith("cleanset."):
            raise
        raise CleansetError(f"{hint.__module__}:{hint.__name__}: raises {raised(error)} for an image") from None
