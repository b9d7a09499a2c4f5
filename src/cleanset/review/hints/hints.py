"""Hints that an image may have been modified, shown beside it, and a proposal for a crop. People decide.

A hint never counts as a verdict, and an image without one may be as flawed as any. No hint finds several objects, a
wrong class, a drawing, a small object in a large image, large words across the middle, text written at an angle, a
wordless watermark, most collages, or a filter that leaves many colours.

A proposal is the largest part of an image without its margins and the lines of text that were added. Nothing here knows
where the object is, or whether it stays fully visible in the proposal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.images.boxes import Box, has_area
from cleanset.review.hints.measures import Fingerprint, ImageMeasures, Packed, reduction, size_of_measured
from cleanset.review.hints.text import WEB_OR_COPYRIGHT, TextLine, added_line, is_added, is_legible
from cleanset.validation import first_names
from cleanset.vocabulary import Reason

# an image of few pixels need not have a flaw: its object may fill it; nor a dark or a bright one
HintKind = Reason | Literal["few_pixels", "dark", "bright"]


@dataclass(frozen=True, slots=True)
class Hint:
    """A sign of a flaw, and the sign in words. `others`: the images that it compares with.

    `kind`: the reason to reject the image that the sign speaks for, or few_pixels, dark, bright.
    """

    kind: HintKind
    text: str
    others: tuple[str, ...] = ()


# Values from which a measure counts as a sign: round numbers, chosen on half of the photographs.
MIN_SEAM = 0.9
# of the darkest and the brightest of 250 photographs, 99 of 100 pixels are below 98, and above 102
MAX_DARK_LEVEL = 90.0
MIN_BRIGHT_LEVEL = 150.0
MAX_COLOURLESS = 8.0
MAX_TINT = 3.0
# a photograph without strong colours rarely has a tint of this median saturation
MIN_TINTED = 10.0
MIN_NEUTRAL = 0.5
MIN_ONE_COLOUR = 60.0
MIN_BACKGROUND = 0.7
MAX_SHARPNESS = 0.4
MIN_NOISE = 18.0
# smaller images are enlarged by more than half for the models
MIN_SHORT_SIDE_PIXELS = 150
MAX_HASH_DISTANCE = 60
"""Number of differing bits, of 256, in the most similar orientation."""


def hints_of_image(measures: ImageMeasures, classes: ClassTable, lines: Sequence[TextLine] = ()) -> list[Hint]:
    """The hints from one image alone, and from the lines of text that were read in it."""
    found = list(_hints(measures))
    line = added_line(lines, measures.size)
    if line is not None:
        found.append(Hint("text", f"“{_shortened(line.text)}”, {_position(line, measures.size)}"))
    # the limit is of ImageNet's models; what enlarges images of other sizes is not known
    if classes.is_imagenet and min(measures.size) < MIN_SHORT_SIDE_PIXELS:
        found.append(Hint("few_pixels", f"{measures.size[0]} × {measures.size[1]} pixels"))
    return found


def _hints(measures: ImageMeasures) -> Iterator[Hint]:
    margins = dict(zip(("left", "top", "right", "bottom"), measures.margins, strict=True))
    if any(measures.margins):
        widths = ", ".join(f"{side} {max(round(100 * share), 1)} %" for side, share in margins.items() if share)
        yield Hint("border", f"plain margins: {widths}")
    for seam, course in zip(measures.seams, ("from top to bottom", "from left to right"), strict=True):
        if seam >= MIN_SEAM:
            yield Hint("collage", f"a straight edge {course}")
    low, high = measures.levels
    # first: with few levels between them, all areas look plain, and all colours faint
    if high <= MAX_DARK_LEVEL:
        yield Hint("dark", f"hardly a pixel above level {high:.0f} of 255")
    elif low >= MIN_BRIGHT_LEVEL:
        yield Hint("bright", f"hardly a pixel below level {low:.0f} of 255")
    elif measures.background >= MIN_BACKGROUND:
        # what stands before a plain background is often grey or black by nature, and the background has few levels
        yield Hint("artificial_background", "a plain background")
    else:
        yield from _filters(measures)
    if measures.sharpness <= MAX_SHARPNESS:
        yield Hint("blur", "no sharp edge anywhere")
    if measures.noise >= MIN_NOISE:
        yield Hint("noise", f"noise of {measures.noise:.0f} grey levels")


def _filters(measures: ImageMeasures) -> Iterator[Hint]:
    median, high, highest = measures.saturations
    if high <= MAX_COLOURLESS:
        yield Hint("filter", "nearly without colour")
    elif measures.tint <= MAX_TINT and median >= MIN_TINTED:
        yield Hint("filter", "a single tint")
    elif measures.neutral >= MIN_NEUTRAL and highest >= MIN_ONE_COLOUR:
        yield Hint("filter", "grey with some colour")


MAX_TEXT = 40
"""Characters of a line of text that a hint shows."""


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _position(line: TextLine, size: tuple[int, int]) -> str:
    """The place of the middle of a line in an image of this size, in words."""
    (left, top, right, bottom), (width, height) = line.box, size
    row = ("top", "middle", "bottom")[min(3 * (top + bottom) // (2 * height), 2)]
    return f"{row} {('left', 'centre', 'right')[min(3 * (left + right) // (2 * width), 2)]}"


# Between images


def hints_between_images(fingerprints: Mapping[str, Fingerprint]) -> dict[str, list[Hint]]:
    """The hints from comparing images, by image id: near-duplicates."""
    names = np.array(list(fingerprints))
    found: dict[str, list[Hint]] = {name: [] for name in fingerprints}
    if not found:
        return found
    of_parts = part_distances(
        [each.parts for each in fingerprints.values()], np.stack([each.hashes for each in fingerprints.values()])
    )
    # either of two may be a part of the other
    is_same = np.minimum(of_parts, of_parts.T) <= MAX_HASH_DISTANCE
    for name, row in zip(fingerprints, is_same, strict=True):
        others = tuple(sorted(other for other in names[row].tolist() if other != name))
        if others:
            found[name].append(Hint("duplicate", f"nearly the same as {first_names(others, 1)}", others))
    return found


Name = TypeVar("Name")


class NearDuplicates(Generic[Name]):
    """Images, `count` at most, each compared with those before it: 20,000 in the time of 800 fingerprints."""

    def __init__(self, count: int) -> None:
        self._names: list[Name] = []
        # of each the orientation as stored; number by number, as they are compared
        self._stored = np.zeros((4, count), np.uint64)

    def add(self, name: Name, hashes: Packed) -> list[Name]:
        """Add an image, and return the names of its near-duplicates among those before."""
        before = self._stored[:, : len(self._names)]
        differing = np.zeros((len(hashes), len(self._names)), np.uint8)
        for number in range(3):  # three of four pass over most images, and their 192 bits are counted in a byte
            differing += np.bitwise_count(hashes[:, number, None] ^ before[number])
        near = np.flatnonzero(differing.min(axis=0) <= MAX_HASH_DISTANCE)
        bits = np.bitwise_count(hashes[:, :, None] ^ before[:, near]).sum(axis=1).min(axis=0)
        self._stored[:, len(self._names)] = hashes[0]
        self._names.append(name)
        return [self._names[place] for place in near[bits <= MAX_HASH_DISTANCE]]


def part_distances(parts: Sequence[NDArray[np.bool_]], hashes: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Number of differing bits between each image (row) and each other one (column), as similar as possible.

    `parts`: of each image, its whole and its parts as stored; `hashes`: images x orientations x 256. So the image of a
    column may be a turned, mirrored or cropped copy of the row's image.
    """
    count, orientations, bits = hashes.shape
    signs = 2 * hashes.reshape(-1, bits).T.astype(np.float32) - 1
    # the product of signs is the number of equal bits less that of different ones; row by row, for the memory
    equal = [((2 * each.astype(np.float32) - 1) @ signs).max(axis=0) for each in parts]
    return np.asarray((bits - np.stack(equal).reshape(-1, count, orientations).max(axis=2)) / 2, np.float32)


# share of the image that a proposal keeps at least; with less, the object is rarely whole
MIN_KEPT_PERCENT = 60


@dataclass(frozen=True, slots=True)
class CropProposal:
    """A crop box for people to take or to change.

    `reason`: the likeliest reason of such a crop; `without`: the parts that the box leaves out, in words.
    """

    box: Box
    reason: Reason
    without: str


def crop_proposal(measures: ImageMeasures, lines: Sequence[TextLine], min_side: int = 1) -> CropProposal | None:
    """The proposal for an image with these measures and lines of text, with no side below `min_side` pixels.

    Leaves out plain margins, and the lines that may have been added; without either, all legible lines. None if nothing
    is left out, or too little would be kept.
    """
    width, height = measures.size
    whole, inside = (0, 0, width, height), _inside_margins(measures)
    added = [line for line in lines if is_added(line, measures.size)]
    if not added and inside == whole:
        # only lettering elsewhere can explain why somebody wants to crop
        added = [line for line in lines if is_legible(line)]
    obstacles = [_around(line) for line in added]
    box = largest_box_without(obstacles, inside, -(-MIN_KEPT_PERCENT * width * height // 100))
    if box is None or box == whole or min(box[2] - box[0], box[3] - box[1]) < min_side:
        return None
    left_out = [line for line, obstacle in zip(added, obstacles, strict=True) if _overlap(obstacle, inside)]
    reason: Reason = "border"
    if left_out:
        reason = "watermark" if any(WEB_OR_COPYRIGHT.search(line.text) for line in left_out) else "text"
    return CropProposal(box, reason, _left_out_in_words(left_out, inside != whole))


def _left_out_in_words(left_out: Sequence[TextLine], has_margins: bool) -> str:
    parts = ["the plain margins"] if has_margins else []
    if left_out:
        longest = max(left_out, key=lambda line: len(line.text))
        more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        parts.append(f"“{longest.text}”{more}")
    return ", ".join(parts)


def _inside_margins(measures: ImageMeasures) -> Box:
    """The part of the image inside its plain margins, in stored pixels."""
    width, height = size_of_measured(measures.size)
    left, top, right, bottom = (
        round(share * side) for share, side in zip(measures.margins, (width, height) * 2, strict=True)
    )
    factor = reduction(measures.size)
    # the last pixel measured may be of fewer stored ones
    end, lower_end = ((width - right) * factor, (height - bottom) * factor)
    return left * factor, top * factor, min(end, measures.size[0]), min(lower_end, measures.size[1])


# room around a line of text at least: JPEG softens edges
_MIN_ROOM_PIXELS = 2


def _around(line: TextLine) -> Box:
    """The box of a line with room for shadows and for strokes that its own box cuts."""
    left, top, right, bottom = line.box
    room = max(_MIN_ROOM_PIXELS, (bottom - top) // 4)
    return left - room, top - room, right + room, bottom + room


def _overlap(one: Box, other: Box) -> bool:
    return has_area((max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])))


def largest_box_without(obstacles: Iterable[Box], inside: Box, min_area: int = 1) -> Box | None:
    """The largest box `inside` another that overlaps no obstacle; None if it has fewer than `min_area` pixels.

    Of several that are equally large, the leftmost, then the widest, then the uppermost.
    """
    left, top, right, bottom = inside
    if not has_area(inside):
        return None
    hit = sorted((each for each in obstacles if _overlap(each, inside)), key=lambda each: each[1])
    best, largest = None, max(min_area, 1) - 1
    # each edge of the largest box touches an obstacle or the outside, or it could be moved outwards
    starts = sorted({left, *(each[2] for each in hit if each[2] < right)})
    ends = sorted({right, *(each[0] for each in hit if each[0] > left)}, reverse=True)
    for start in starts:
        for end in ends:
            if (end - start) * (bottom - top) <= largest:
                # the ends that follow are nearer still
                break
            free_from = top
            for _, upper, _, lower in [*(each for each in hit if each[0] < end and each[2] > start), (0, bottom, 0, 0)]:
                area = (end - start) * (upper - free_from)
                if area > largest:
                    best, largest = (start, free_from, end, upper), area
                free_from = max(free_from, lower)
    return best
