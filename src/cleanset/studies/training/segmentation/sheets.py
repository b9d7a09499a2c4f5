"""Sheets of predicted masks: tiles of the images of a scenario with the largest and the smallest IoU.

In a tile, pixels that are predicted as the image's class are blue, as another class orange; the object's outline, as
its mask has it, is white. So blue within the outline is correct, and everything else is not.
"""

from typing import Final

import cv2
import numpy as np
import pandas as pd
from PIL import Image

from cleanset.images.preprocessing import Pixels
from cleanset.studies.training.segmentation.examples import BACKGROUND, IGNORED_LABEL, Example, Labels

SHEET_COLUMNS: Final = ("scenario", "place", "number", "file", "class_index", "iou", "tile")
"""The columns of sheets.csv: `place` is best or worst, `number` counts from 1, `tile` is a file next to it."""

IMAGE_COLUMNS: Final = ("scenario", "file", "class_index", "iou")
"""The columns of the table of images; `iou` covers the image's own class, NaN if it is nowhere."""

BEST = "best"
WORST = "worst"
"""The two sides of a scenario's sheet, values of the column `place`."""
SHOWN_IMAGES: Final = 3
"""Number of images on each side of a scenario's sheet."""
TILE_SIDE: Final = 256
"""Longer side of a tile in pixels."""
JPEG_QUALITY: Final = 88

# two of the colours by Okabe and Ito, which people with any colour vision distinguish
OWN_CLASS: Final = (0, 114, 178)
"""RGB of pixels that are predicted as the image's class: blue."""
OTHER_CLASS: Final = (230, 120, 0)
"""RGB of pixels that are predicted as another class: orange."""
OUTLINE: Final = (255, 255, 255)
"""RGB of the object's outline: white."""
TINT: Final = 0.55
"""Weight of a tile's colours: the image must still show through."""


def shown_images(images: pd.DataFrame, number: int = SHOWN_IMAGES) -> pd.DataFrame:
    """Rows of SHEET_COLUMNS: for each scenario, the best and worst rows of IMAGE_COLUMNS by IoU, equal ones by file.

    If there are few images, none is on both sides: the better half is among the best.
    """
    measured = images.dropna(subset="iou")
    ordered = measured.sort_values(["iou", "file"], ascending=[False, True])
    groups = ordered.groupby("scenario")["iou"]
    count = groups.transform("size")
    first = groups.cumcount() + 1
    last = groups.cumcount(ascending=False) + 1
    best = np.minimum(number, (count + 1) // 2)
    is_worst = last <= np.minimum(number, count - best)
    sides = [(BEST, first, first <= best), (WORST, last, is_worst)]
    found = pd.concat([ordered[rows].assign(place=place, number=numbers[rows]) for place, numbers, rows in sides])
    found["tile"] = found["scenario"] + "_" + found["place"] + "_" + found["number"].astype(str) + ".jpg"
    order = {scenario: position for position, scenario in enumerate(measured["scenario"].unique())}
    found = found.sort_values(["place", "number"]).sort_values(
        "scenario", key=lambda each: each.map(order), kind="stable"
    )
    return found[list(SHEET_COLUMNS)]


def draw_tile(example: Example, predicted: Labels, label: int) -> Image.Image:
    """The image with the prediction over it and the object's outline; `label` is the class's."""
    longer = max(example.image.shape[:2])
    factor = min(1.0, TILE_SIDE / longer)
    # labels are scaled without mixing them; the outline is drawn after that, so that its width is always the same
    size = (max(1, round(example.image.shape[1] * factor)), max(1, round(example.image.shape[0] * factor)))
    image = np.asarray(Image.fromarray(example.image).resize(size, Image.Resampling.BILINEAR), np.float64)
    shown, truth = (_scaled(each, size) for each in (predicted, example.labels))
    for color, where in ((OWN_CLASS, shown == label), (OTHER_CLASS, (shown != label) & (shown != BACKGROUND))):
        image = np.where(where[..., np.newaxis], TINT * np.array(color) + (1 - TINT) * image, image)
    pixels: Pixels = np.rint(image).astype(np.uint8)
    inside = ((truth != BACKGROUND) & (truth != IGNORED_LABEL)).astype(np.uint8)
    contours, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    # black below white, so that the line shows on any background
    drawn = cv2.drawContours(np.ascontiguousarray(pixels), contours, -1, color=(0, 0, 0), thickness=3)
    return Image.fromarray(np.asarray(cv2.drawContours(drawn, contours, -1, color=OUTLINE, thickness=1), np.uint8))


def _scaled(labels: Labels, size: tuple[int, int]) -> Labels:
    return np.asarray(Image.fromarray(labels).resize(size, Image.Resampling.NEAREST))
