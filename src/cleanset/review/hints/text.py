"""Lines of text in an image, read by RapidOCR with the models inside its package."""

import importlib.util
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter

from cleanset.edition.versions import installed_version
from cleanset.errors import reason
from cleanset.images.boxes import Box
from cleanset.plumbing.kept_files import KeptFiles, kept_files
from cleanset.statistics.basics import Singles

VERSION = 2
"""Raise it when `lines_of_text` reads or returns something else: what is kept is then read again."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text as read.

    `score`: RapidOCR's confidence, 0 to 1; `box`: the upright rectangle around the line, in stored pixels;
    `slope`: rise over run of its upper edge, without the sign; run over rise of upright text.
    """

    text: str
    score: float
    box: Box
    slope: float


KEPT_LINES = TypeAdapter(tuple[TextLine, ...])
"""The cached lines of an image, by the SHA-256 of its bytes: reading takes long, and gives the same again."""


def usual_text_files() -> KeptFiles:
    """The lines that all editions on this machine share."""
    libraries = " ".join(f"{name} {installed_version(name)}" for name in ("rapidocr", "onnxruntime"))
    return kept_files("hints", (), f"text {VERSION} {libraries}")


def can_read_text() -> bool:
    """Whether the libraries of the extra `text` are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


# size at which an image is searched for lines, whatever its own: the time grows with it
SEARCHED_PIXELS = 500_000
# sum of the widths, at `LINE_HEIGHT`, of the lines that are read in an image: the time grows with it
READ_PIXELS = 2_000
LINE_HEIGHT = 48
# RapidOCR's confidence that a line is there. Its own limit is higher; in texture, nothing legible is read.
MIN_BOX_SCORE = 0.35
# length by height of a line and of upright text. Shorter ones have too few letters to be taken for text.
MIN_RATIO = 1.5


def lines_of_text(image: Image.Image) -> tuple[TextLine, ...]:
    """The lines of text in a decoded image of any mode and size, the nearest to an edge first, as far as time allows.

    Takes 0.15 s on an idle core, and up to 0.65 s on a slower or busy one. Needs the extra `text`. Raises ValueError
    for a shape that RapidOCR does not read, such as a strip of a few rows.
    """
    scale = (SEARCHED_PIXELS / (image.width * image.height)) ** 0.5
    size = (max(round(image.width * scale), 1), max(round(image.height * scale), 1))
    # OpenCV's order of colours, which the models were trained on
    pixels = np.ascontiguousarray(np.asarray(image.convert("RGB").resize(size, Image.Resampling.BICUBIC))[:, :, ::-1])
    try:
        found = _reader()(pixels, use_det=True, use_cls=False, use_rec=False).boxes
        boxes = sorted([] if found is None else found, key=lambda corners: edge_distance(_box(corners, size), size))
        lines = []
        left = float(READ_PIXELS)
        for corners, strip in zip(boxes, _reader().crop_text_regions(pixels, np.array(boxes)), strict=True):
            ratio = strip.shape[1] / strip.shape[0]
            is_upright = _is_upright(corners)
            # upright text comes turned to one side: it may be written upwards or downwards
            turns = (strip, np.ascontiguousarray(strip[::-1, ::-1])) if is_upright else (strip,)
            cost = len(turns) * ratio * LINE_HEIGHT
            if ratio >= MIN_RATIO and cost <= left:
                left -= cost
                text, score = max(map(_read, turns), key=lambda read: read[1])
                lines.append(
                    TextLine(text, score, _box(corners / scale, image.size), _slope(corners, is_upright=is_upright))
                )
    except Exception as error:  # RapidOCR's own classes have no common base
        raise ValueError(reason(error)) from None
    return tuple(lines)


def _read(strip: NDArray[np.uint8]) -> tuple[str, float]:
    """The text in a strip of an image, and the confidence in it."""
    found = _reader()(strip, use_det=False, use_cls=False, use_rec=True)
    return found.txts[0], float(found.scores[0])


def _box(corners: Singles, size: tuple[int, int]) -> Box:
    """The upright rectangle around corners: top left, top right, bottom right, bottom left."""
    low = np.clip(np.floor(corners.min(axis=0)), 0, size)
    high = np.clip(np.ceil(corners.max(axis=0)), 0, size)
    return int(low[0]), int(low[1]), int(high[0]), int(high[1])


def _is_upright(corners: Singles) -> bool:
    return bool(np.linalg.norm(corners[3] - corners[0]) >= MIN_RATIO * np.linalg.norm(corners[1] - corners[0]))


def _slope(corners: Singles, *, is_upright: bool) -> float:
    across, along = np.abs(corners[3] - corners[0] if is_upright else (corners[1] - corners[0])[::-1])
    return float(across / max(along, 1e-9))


def edge_distance(box: Box, size: tuple[int, int]) -> float:
    """The distance of a box from the nearest edge of an image, as a share of its width or height."""
    left, top, right, bottom = box
    width, height = size
    return min(left / width, top / height, 1 - right / width, 1 - bottom / height)


@cache
def _reader() -> Any:
    """RapidOCR, whose answers differ by what it was asked for."""
    from rapidocr import RapidOCR

    # one thread: the page and other people's work go first
    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    # no resizing and padding beyond ours
    sizes = {"Det.limit_side_len": 1, "Rec.rec_img_shape": [3, LINE_HEIGHT, LINE_HEIGHT]}
    limits = {"Det.box_thresh": MIN_BOX_SCORE, "Global.log_level": "critical"}
    return RapidOCR(params={**threads, **sizes, **limits})
