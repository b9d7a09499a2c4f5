"""The index of an edition with what dataset.label needs next to it: the classes that a study names."""

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.label_sources import PLACE, read_sources
from cleanset.edition.params import Dataset
from cleanset.edition.paths import Edition
from cleanset.image_ids import check_matched
from cleanset.selection.candidates import NAMED_CLASSES
from cleanset.tables import INDEX, read_table


def read_labelled_index(edition: Edition, dataset: Dataset, classes: ClassTable) -> pd.DataFrame:
    """The index; with the column NAMED_CLASSES where dataset.label is a study, which is read from its file.

    An image that the study does not have has no classes there. Raises CleansetError as `read_sources` does.
    """
    index = read_table(edition.index, INDEX, classes)
    if not dataset.label_is_study:
        return index
    (study,) = read_sources(edition.folder / PLACE, [dataset.label])
    named = [study.labels[image_id].classes if image_id in study.labels else () for image_id in index["image_id"]]
    matched = sum(image_id in study.labels for image_id in index["image_id"])
    check_matched(
        matched, len(index), f"images are in {study.source.name}", "images that the study of dataset.label has"
    )
    return index.assign(**{NAMED_CLASSES: pd.Series(named, index=index.index, dtype=object)})
