"""ImageNet-X's error ratios beside those of its program, of the four models whose predictions it brings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from authors.rows import Row, compared
from cleanset.measure.factors import FACTORS, factors_of, measure_factors, read_annotations

PROGRAM = "imagenetx"
PREDICTIONS = "model_predictions/base"
SELECTED = 3000
"""Images of the selection, as many as a finished set has."""


def rows(programs: Path, _photographs: list[Path]) -> Iterator[Row]:
    """A row for each file of annotations and selection: all images, and some that are drawn."""
    sys.path.insert(0, str(programs / PROGRAM))
    from imagenet_x import aggregate, utils  # type: ignore[import-not-found]

    folder = programs / PROGRAM / "imagenet_x" / "annotations"
    labels = pd.read_csv(folder / "filename_label.csv").set_index("file_name")["label"]
    drawn = labels.sample(SELECTED, random_state=71).index
    models, _ = utils.load_model_predictions(str(programs / PROGRAM / PREDICTIONS))
    for kind in ("top", "multi"):
        annotations = read_annotations(folder / f"imagenet_x_val_{kind}_factor.jsonl")
        for on, names in (("all 50,000 images", labels.index), (f"{SELECTED:,} drawn images", drawn)):
            selected = {name: each[each.index.isin(names)].reset_index() for name, each in models.items()}
            known = utils.augment_model_predictions(utils.load_annotations(kind), selected)
            theirs = aggregate.error_ratio(aggregate.compute_factor_accuracies(known, list(FACTORS)))
            images = factors_of(annotations, {name: int(labels[name]) for name in names})
            ours = []
            for name in theirs.index:
                predicted = models[name]["predicted_class"]
                correct = {file: bool(predicted[file] == labels[file]) for file in names}
                ours.append([each.ratio for each in measure_factors(correct, images, name).of_factors])
            found = np.array(ours, np.float64)
            # neither has a ratio of a factor that no image has
            both = theirs[list(FACTORS)].to_numpy(np.float64)
            same = np.isnan(found) == np.isnan(both)
            yield compared(
                f"error ratios, {kind} factors, of {len(theirs)} models",
                "imagenet_x",
                on,
                np.nan_to_num(np.where(same, found, np.inf)),
                np.nan_to_num(both),
            )
