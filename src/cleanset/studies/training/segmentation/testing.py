"""The test of a segmentation network: counts of pixels by scenario and class, and the IoU of every image."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from cleanset.studies.training.segmentation.examples import ExampleReader, SegmentedFile
from cleanset.studies.training.segmentation.label_maps import Example, Labels, Pixels, label_of
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
