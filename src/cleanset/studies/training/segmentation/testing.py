"""The test of a segmentation network: counts of pixels by scenario and class, the IoU of every image, and sheets.

A sheet has the images of a scenario with the largest and the smallest IoU. In a tile, pixels that are predicted as the
image's class are blue, as another class orange; the object's outline, as its mask has it, is white. So blue within the
outline is correct, and everything else is not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import cv2
import numpy as np
import pandas as pd
from PIL import Image

from cleanset.studies.training.segmentation.examples import ExampleReader, SegmentedFile
from cleanset.studies.training.segmentation.label_maps import BACKGROUND, IGNORED, Example, Labels, Pixels, label_of
from cleanset.studies.training.segmentation.measures import (
    BACKGROUND_CLASS,
    COUNTS,
    Counts,
    intersection_over_unions,
    label_counts,
)

TEST_COLUMNS: Final = ("scenario", "class_index", "images", *COUNTS)
"""The columns of test.csv. `images`: those of the class; all of them for the background."""

IMAGE_COLUMNS: Final = ("scenario", "file", "class_index", "iou")
"""The columns of the table of images; `iou` is that of the image's own class, NaN where it is nowhere."""

Predict = Callable[[Pixels], Labels]
Changed = Callable[[Example, str, str], Example]
"""The example, its file and the name of a scenario to the example in it: `Scenes`."""


class Tested(NamedTuple):
    """The rows of test.csv, sorted by scenario as tested and class index, and those of the images."""

    counts: pd.DataFrame
    images: pd.DataFrame


def run_test(
    predict: Predict,
    files: Sequence[SegmentedFile],
    read: ExampleReader,
    scenarios: Sequence[str],
    changed: Changed,
    report: Callable[[int], None] = lambda _: None,
) -> Tested:
    """Predict every image at its own size in every scenario; `report` is called with 1 after each image.

    Raises CleansetError for an image or mask that has changed, and as `changed` does.
    """
    totals = {name: np.zeros((read.labels, len(COUNTS)), np.int64) for name in scenarios}
    rows = list[tuple[str, str, int, float]]()
    for file in files:
        original = read(file)
        for scenario in scenarios:
            example = changed(original, file.file, scenario)
            counts = label_counts(example.labels, predict(example.image), read.labels)
            totals[scenario] += counts
            own = intersection_over_unions(counts)[label_of(file.class_index, read.classes)]
            rows.append((scenario, file.file, file.class_index, float(own)))
        report(1)
    return Tested(counts_table(totals, files, read.classes), pd.DataFrame(rows, columns=list(IMAGE_COLUMNS)))


def counts_table(totals: dict[str, Counts], files: Sequence[SegmentedFile], classes: Sequence[int]) -> pd.DataFrame:
    """The rows of test.csv from counts by scenario and label."""
    own = [file.class_index for file in files]
    indices = [BACKGROUND_CLASS, *sorted(classes)]
    images = [len(own), *(own.count(each) for each in indices[1:])]
    parts = [pd.DataFrame(columns=list(TEST_COLUMNS))]
    for scenario, counts in totals.items():
        table = pd.DataFrame(counts, columns=list(COUNTS))
        table.insert(0, "images", images)
        table.insert(0, "class_index", indices)
        table.insert(0, "scenario", scenario)
        parts.append(table)
    return pd.concat(parts[1:] or parts, ignore_index=True)


SHEET_COLUMNS: Final = ("scenario", "place", "number", "file", "class_index", "iou", "tile")
"""The columns of sheets.csv: `place` is best or worst, `number` counts from 1, `tile` is a file beside it."""

BEST, WORST = "best", "worst"
SHOWN_IMAGES: Final = 3
"""Number of images on each side of a scenario's sheet."""
TILE_SIDE: Final = 256
"""Longer side of a tile in pixels."""
JPEG_QUALITY: Final = 88

# two of the colours by Okabe and Ito, which people with any colour vision tell apart
OWN_CLASS: Final = (0, 114, 178)
OTHER_CLASS: Final = (230, 120, 0)
OUTLINE: Final = (255, 255, 255)
TINT: Final = 0.55
"""Weight of a tile's colours against the image."""


class Shown(NamedTuple):
    """An image on a sheet; `number` counts from 1."""

    scenario: str
    place: str
    number: int
    file: str
    class_index: int
    iou: float

    @property
    def tile(self) -> str:
        """The name of its file."""
        return f"{self.scenario}_{self.place}_{self.number}.jpg"


def shown_images(images: pd.DataFrame, number: int = SHOWN_IMAGES) -> list[Shown]:
    """The best and worst images of each scenario, from rows of IMAGE_COLUMNS: by IoU, equal ones by file.

    Of few images none is on both sides: the better half is among the best.
    """
    found = []
    for scenario, rows in images.dropna(subset="iou").groupby("scenario", sort=False):
        ordered = rows.sort_values(["iou", "file"], ascending=[False, True])
        best = min(number, (len(ordered) + 1) // 2)
        worst = min(number, len(ordered) - best)
        for place, part in ((BEST, ordered.iloc[:best]), (WORST, ordered.iloc[::-1].iloc[:worst])):
            for position, row in enumerate(part.itertuples(), 1):
                found.append(
                    Shown(str(scenario), place, position, str(row.file), int(str(row.class_index)), float(str(row.iou)))
                )
    return found


def draw_tile(example: Example, predicted: Labels, label: int) -> Image.Image:
    """The image with the prediction over it and the object's outline; `label` is that of its class."""
    longer = max(example.image.shape[:2])
    factor = min(1.0, TILE_SIDE / longer)
    # labels are scaled without mixing them; the outline is drawn after that, so that its width is always the same
    size = (max(1, round(example.image.shape[1] * factor)), max(1, round(example.image.shape[0] * factor)))
    image = np.asarray(Image.fromarray(example.image).resize(size, Image.Resampling.BILINEAR), np.float64)
    shown, truth = (_scaled(each, size) for each in (predicted, example.labels))
    for color, where in ((OWN_CLASS, shown == label), (OTHER_CLASS, (shown != label) & (shown != BACKGROUND))):
        image = np.where(where[..., np.newaxis], TINT * np.array(color) + (1 - TINT) * image, image)
    pixels: Pixels = np.rint(image).astype(np.uint8)
    inside = ((truth != BACKGROUND) & (truth != IGNORED)).astype(np.uint8)
    contours, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    # black below white, so that the line shows on any background
    drawn = cv2.drawContours(np.ascontiguousarray(pixels), contours, -1, (0, 0, 0), 3)
    return Image.fromarray(np.asarray(cv2.drawContours(drawn, contours, -1, OUTLINE, 1), np.uint8))


def _scaled(labels: Labels, size: tuple[int, int]) -> Labels:
    return np.asarray(Image.fromarray(labels).resize(size, Image.Resampling.NEAREST))


def write_sheets(
    folder: Path,
    images: pd.DataFrame,
    predict: Predict,
    files: Sequence[SegmentedFile],
    read: ExampleReader,
    changed: Changed,
) -> None:
    """Write tiles as JPEG and sheets.csv for rows of IMAGE_COLUMNS; the images are predicted again."""
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {each.file: each for each in files}
    chosen = shown_images(images)
    for each, tile in _tiles(chosen, by_name, predict, read, changed):
        tile.save(folder / each.tile, "JPEG", quality=JPEG_QUALITY)
    table = pd.DataFrame([(*each, each.tile) for each in chosen], columns=list(SHEET_COLUMNS))
    table.to_csv(folder / "sheets.csv", index=False, lineterminator="\n")


def _tiles(
    chosen: Sequence[Shown],
    files: Mapping[str, SegmentedFile],
    predict: Predict,
    read: ExampleReader,
    changed: Changed,
) -> Iterator[tuple[Shown, Image.Image]]:
    for each in chosen:
        example = changed(read(files[each.file]), each.file, each.scenario)
        yield each, draw_tile(example, predict(example.image), label_of(each.class_index, read.classes))
