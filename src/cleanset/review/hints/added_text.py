"""The sign of text added to an image, as against photographed text: limits of score, length, slope and place."""

import re
from collections.abc import Sequence

from cleanset.review.hints.text import TextLine, edge_distance

MIN_SCORE = 0.6
# letters or digits of a line; shorter ones are often found in textures
MIN_CHARACTERS = 5
MAX_SLOPE = 0.08
MAX_EDGE_DISTANCE = 0.08
"""Share of the width or height between a line and the nearest edge of the image."""

# an address, a copyright, or the words that agencies write across what is not paid for
WEB_OR_COPYRIGHT = re.compile(
    r"©|\(c\)|copyright|www|https?:|@\w|\w\.(com|net|org|info|co|eu|de|fr|it|nl|ru|jp|cn|uk)\b|\b(sample|preview)\b",
    re.IGNORECASE,
)


def added_line(lines: Sequence[TextLine], size: tuple[int, int]) -> TextLine | None:
    """The longest line that may have been added to an image of this size.

    Signs and packages are photographed at any angle and place; captions are written level along an edge. Anywhere else,
    only a web address or a copyright is a sign, by its words. The constants are round numbers, set on 175 photographs
    (bench/RESULTS.md). A single word in capitals with nothing added next to it is more often lettering on a thing (6 of
    8 in 500 photographs).
    """
    added = [line for line in lines if is_added(line, size)]
    added = [
        line
        for line in added
        if WEB_OR_COPYRIGHT.search(line.text) or not (line.text.isalpha() and line.text.isupper())
    ]
    return max(added, key=lambda line: len(line.text), default=None)


def is_added(line: TextLine, size: tuple[int, int]) -> bool:
    """Whether a line may have been added to an image of this size."""
    is_at_edge = line.slope <= MAX_SLOPE and edge_distance(line.box, size) <= MAX_EDGE_DISTANCE
    return is_legible(line) and (is_at_edge or WEB_OR_COPYRIGHT.search(line.text) is not None)


def is_legible(line: TextLine) -> bool:
    """Whether a line is most likely text, not texture."""
    return line.score >= MIN_SCORE and sum(letter.isalnum() for letter in line.text) >= MIN_CHARACTERS
