"""The images that the page shows of an attack on a model: before, after, and the difference, as small copies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.classes import ClassTable
from cleanset.evaluation.sets import ImageFile, SetImages
from cleanset.images import codec
from cleanset.images.preprocessing import PixelPlanes, Preprocessing, enlarged_difference, jpeg
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.logits import Groups
from cleanset.statistics.basics import Singles
from cleanset.statistics.formats import decimal
from cleanset.studies.robustness.pages import spread_over_classes

SHEET_IMAGES = 3
"""Images of an attack on a model, each of another class."""

SHOWN_PIXELS = 112
"""Largest side of a shown copy."""

SHEET_QUALITY = 90
"""JPEG quality of a shown copy."""


def names_of(groups: Groups | None, classes: ClassTable) -> Sequence[str]:
    """The names of a model's classes or groups, in the order of its logits."""
    return [each.name for each in classes.names] if groups is None else groups.names


def some_results(results: pd.DataFrame) -> list[dict[str, Any]]:
    """Some rows of ATTACKED, each of another class, spread over all: successes, if any."""
    # an unsuccessful candidate shows little of an attack
    success = results[results["was_correct"] & results["is_error"]]
    rows = spread_over_classes(success if len(success) else results, SHEET_IMAGES).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SheetImages:
    """The images that the page shows of an attack on a model."""

    files: Mapping[str, ImageFile]
    """The images of the finished sets, by file."""

    attacked: Path
    """The folder with the results of the attack on the model."""

    preprocessing: Preprocessing
    """The model's preprocessing."""

    classes: ClassTable
    """The class table of the images."""

    groups: Groups | None
    """The groups that the model distinguishes; None if it has all classes."""

    report: Path
    """The folder that copies are written below."""

    prefix: str
    """The beginning of the names of the copies."""

    def row(self, row: dict[str, Any], place: int) -> dict[str, object]:
        """A row of ATTACKED as shown: its class, the predictions before and after, and three small copies.

        `factor`: the difference is multiplied by it and added to a medium gray.
        """
        before = pixels_of(row["file"], SetImages(self.files), self.preprocessing).transpose(1, 2, 0)
        after = np.asarray(codec.decode((self.attacked / row["png"]).read_bytes(), ("PNG",)).convert("RGB"))
        image, factor = enlarged_difference(before, after, (SHOWN_PIXELS, SHOWN_PIXELS))
        copies = {
            f"{self.prefix}_{place}_clean.jpg": small(before),
            f"{self.prefix}_{place}_attacked.jpg": small(after),
            f"{self.prefix}_{place}_difference.png": codec.png(image),
        }
        for name, content in copies.items():
            (self.report / name).write_bytes(content)
        names = names_of(self.groups, self.classes)
        return row | {
            "name": self.classes.names[row["class_index"]].name,
            "before": prediction_text(row["logits_before"], names),
            "after": prediction_text(row["logits_after"], names),
            "success": row["was_correct"] and row["is_error"],
            "files": list(copies),
            "factor": factor,
        }


def prediction_text(logits: Singles, names: Sequence[str]) -> str:
    """The top-1 class, or group, by name, with its probability."""
    # the largest is subtracted first, since exp overflows above 709
    exponentials = np.exp(logits.astype(np.float64) - logits.max())
    return f"{names[int(logits.argmax())]} {decimal(float(exponentials.max() / exponentials.sum()))}"


def small(pixels: PixelPlanes) -> bytes:
    """A copy of at most SHOWN_PIXELS a side, as a JPEG."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return jpeg(np.asarray(image.resize((SHOWN_PIXELS, SHOWN_PIXELS), Image.Resampling.BICUBIC)), SHEET_QUALITY)
