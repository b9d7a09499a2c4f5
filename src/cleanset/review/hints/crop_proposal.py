"""A proposal for a crop: the largest part of an image without its margins and the lines of text that were added.

Nothing here knows where the object is, or whether it stays fully visible in the proposal. People decide.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cleanset.images.boxes import Box, has_area
from cleanset.images.fingerprints import reduction
from cleanset.review.hints.added_text import WEB_OR_COPYRIGHT, is_added, is_legible
from cleanset.review.hints.hints import ImageMeasures
from cleanset.review.hints.kinds import Border
from cleanset.review.hints.measures import size_of_measured
from cleanset.review.hints.text import TextLine
from cleanset.vocabulary import Reason

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
    whole = 0, 0, width, height
    inside = _inside_margins(measures)
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
    return CropProposal(box, reason, _left_out_in_words(left_out, has_margins=inside != whole))


def _left_out_in_words(left_out: Sequence[TextLine], *, has_margins: bool) -> str:
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
        round(share * side) for share, side in zip(measures.of(Border).margins, (width, height) * 2, strict=True)
    )
    factor = reduction(measures.size)
    # the last pixel measured may be of fewer stored ones
    end = min((width - right) * factor, measures.size[0])
    lower_end = min((height - bottom) * factor, measures.size[1])
    return left * factor, top * factor, end, lower_end


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

    Among equally large ones, the leftmost, then the widest, then the uppermost.
    """
    left, top, right, bottom = inside
    if not has_area(inside):
        return None
    hit = sorted((each for each in obstacles if _overlap(each, inside)), key=lambda each: each[1])
    best = None
    largest = max(min_area, 1) - 1
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
                    best = start, free_from, end, upper
                    largest = area
                free_from = max(free_from, lower)
    return best
