"""Lines of text in an image, read by RapidOCR with the models inside its package, and the sign of an added one."""

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import reason
from cleanset.images.boxes import Box
from cleanset.images.codec import decode

if TYPE_CHECKING:
    from rapidocr import RapidOCR


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text as it was read.

    `score`: RapidOCR's confidence, 0 to 1; `box`: the upright rectangle around the line, in stored pixels;
    `slope`: rise over run of its upper edge, without the sign.
    """

    text: str
    score: float
    box: Box
    slope: float


def can_read_text() -> bool:
    """Whether the libraries of the extra `text` are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


def lines_of_text(image: Image.Image) -> tuple[TextLine, ...]:
    """The lines of text in a decoded image of any mode and size, as RapidOCR orders them.

    Takes about half a second on one core. Needs the extra `text`. Raises ValueError for a shape that RapidOCR
    does not read, such as a strip of a few rows.
    """
    rgb = np.asarray(image.convert("RGB"))
    try:
        # OpenCV's order of colours, which the models were trained on
        found = _reader()(np.ascontiguousarray(rgb[:, :, ::-1]), use_cls=False)
    except Exception as error:  # RapidOCR's own classes have no common base
        raise ValueError(reason(error)) from None
    boxes, texts, scores = (getattr(found, name, None) for name in ("boxes", "txts", "scores"))
    if boxes is None or texts is None or scores is None:
        return ()
    return tuple(
        _line(np.asarray(corners, np.float64), text, float(score), image.size)
        for corners, text, score in zip(boxes, texts, scores, strict=True)
    )


def lines_of_jpeg(data: bytes) -> tuple[TextLine, ...]:
    """The lines of text in the bytes of a JPEG. Raises ValueError for anything else."""
    return lines_of_text(decode(data))


def _line(corners: NDArray[np.float64], text: str, score: float, size: tuple[int, int]) -> TextLine:
    """A line from its corners: top left, top right, bottom right, bottom left."""
    run, rise = np.abs(corners[1] - corners[0])
    low = np.clip(np.floor(corners.min(axis=0)), 0, size)
    high = np.clip(np.ceil(corners.max(axis=0)), 0, size)
    box = (int(low[0]), int(low[1]), int(high[0]), int(high[1]))
    return TextLine(text, score, box, float(rise / max(run, 1e-9)))


@cache
def _reader() -> "RapidOCR":
    from rapidocr import RapidOCR

    # one thread: the page and other people's work go first
    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    return RapidOCR(params={"Global.log_level": "critical", **threads})


# What was added to an image, and what was photographed

MIN_SCORE = 0.6
MIN_CHARACTERS = 5
"""Letters or digits of a line; shorter ones are often found in textures."""
MAX_SLOPE = 0.08
MAX_EDGE_DISTANCE = 0.08
"""Share of the width or height between a line and the nearest edge of the image."""


WEB_OR_COPYRIGHT = re.compile(
    r"©|\(c\)|copyright|www|https?:|@\w|\w\.(com|net|org|info|co|eu|de|fr|it|nl|ru|jp|cn|uk)\b", re.IGNORECASE
)
_CREDIT_OR_DATE = re.compile(
    r"photo|courtesy|\b(19|20)\d\d[-/. ]\d\d?[-/. ]\d\d?\b|\b\d\d?([-/.])\d\d?\2(19|20)?\d\d\b|\b\d\d:\d\d\b",
    re.IGNORECASE,
)
MIN_NAME_LETTERS = 8
MIN_NAME_SCORE = 0.95
MAX_NAME_SLOPE = 0.02


def added_line(lines: Sequence[TextLine], size: tuple[int, int]) -> TextLine | None:
    """The longest line that may have been added to an image of this size.

    Signs and packages are photographed at any angle and place; captions are written level along an edge. Anywhere else,
    a web address, a copyright, a photographer's credit or a date is a sign by its words, and a name by its being
    perfectly level and clear. The constants are round numbers, set on 175 photographs (bench/RESULTS.md).
    """
    added = [line for line in lines if is_added(line, size)]
    return max(added, key=lambda line: len(line.text), default=None)


def is_added(line: TextLine, size: tuple[int, int]) -> bool:
    """Whether a line may have been added to an image of this size."""
    if not is_legible(line):
        return False
    if WEB_OR_COPYRIGHT.search(line.text) or _CREDIT_OR_DATE.search(line.text) or _is_name(line):
        return True
    left, top, right, bottom = line.box
    width, height = size
    distance = min(left / width, top / height, 1 - right / width, 1 - bottom / height)
    return line.slope <= MAX_SLOPE and distance <= MAX_EDGE_DISTANCE


def _is_name(line: TextLine) -> bool:
    """Whether a line may be a signature in a plain font, in small letters: signs have capitals or numbers mostly."""
    letters = [letter for letter in line.text if letter.isalpha()]
    return (
        len(letters) >= MIN_NAME_LETTERS
        and 2 * sum(letter.islower() for letter in letters) > len(letters)
        and not any(letter.isdigit() for letter in line.text)
        and line.score >= MIN_NAME_SCORE
        and line.slope <= MAX_NAME_SLOPE
    )


def is_legible(line: TextLine) -> bool:
    """Whether a line is most likely text, not texture."""
    return line.score >= MIN_SCORE and sum(letter.isalnum() for letter in line.text) >= MIN_CHARACTERS
