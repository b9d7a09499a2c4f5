"""The part of an edition that stays the same during a review: classes, candidates, images, preprocessings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cleanset.dataset.ilsvrc import ClassName, class_names
from cleanset.edition.models import unknown_confidences
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.files import is_there
from cleanset.images.preprocessing import Preprocessing
from cleanset.review.queue import ByRole, Candidate, candidates_by_class, order_in_class
from cleanset.scoring.record import ScoreRecord, read_record
from cleanset.tables import CANDIDATES, INDEX, read_table
from cleanset.web.images import Photos


@dataclass(frozen=True, slots=True)
class IndexedImage:
    """An image of the index."""

    image_id: str
    sha256: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Library:
    """An edition, read once by the page. `classes` by class index, in order; `seen_by`: preprocessings by role.

    `unknown_confidences`: by role, the images of a published list whose confidence only orders them.
    """

    params: Params
    index: pd.DataFrame
    names: Mapping[int, ClassName]
    classes: Mapping[int, ByRole]
    images: Mapping[str, IndexedImage]
    photos: Photos
    seen_by: Mapping[str, Preprocessing]
    unknown_confidences: Mapping[str, Collection[str]]

    def candidates(self, class_index: int) -> dict[str, dict[str, Candidate]]:
        """Every candidate of a class by image id, with the models that may use it, the most likely first."""
        models: dict[str, dict[str, Candidate]] = {}
        for role, candidates in self.classes[class_index].items():
            for candidate in candidates:
                models.setdefault(candidate.image_id, {})[role] = candidate
        return dict(sorted(models.items(), key=lambda item: (*order_in_class(item[1].values()), item[0])))

    def surest(self, class_index: int, among: Collection[str], count: int) -> list[IndexedImage]:
        """The `count` images of a class, `among` those given, with the highest mean confidence over the models."""
        confidence = {
            image_id: sum(candidate.confidence for candidate in models.values())
            for image_id, models in self.candidates(class_index).items()
            if image_id in among
        }
        surest = sorted(confidence, key=lambda image_id: (-confidence[image_id], image_id))
        return [self.images[image_id] for image_id in surest[:count]]


def open_library(edition: Edition) -> Library:
    """Read an edition. Raises CleansetError if a table is missing: then `dvc repro` or `dvc pull` is due."""
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX)
    tables = {role: read_table(edition.candidates(role), CANDIDATES) for role in params.models}
    classes = candidates_by_class(tables, params.dataset.class_list())
    images = _images(index, classes.values())
    names = {name.class_index: name for name in class_names() if name.class_index in classes}
    read = verified_images(edition, params.dataset.images, index).read
    return Library(
        params,
        index,
        names,
        classes,
        images,
        Photos(read),
        _seen_by(edition, list(params.models)),
        unknown_confidences(edition.folder, params),
    )


def _images(index: pd.DataFrame, classes: Collection[ByRole]) -> dict[str, IndexedImage]:
    wanted = {each.image_id for by_role in classes for candidates in by_role.values() for each in candidates}
    columns = (index[name].tolist() for name in ("image_id", "sha256", "width", "height"))
    found = {row[0]: IndexedImage(*row) for row in zip(*columns, strict=True) if row[0] in wanted}
    missing = sorted(wanted - set(found))
    if missing:
        raise CleansetError(f"data/candidates: {missing[0]} is not in data/index.parquet: run dvc repro")
    return found


def _seen_by(edition: Edition, roles: Sequence[str]) -> dict[str, Preprocessing]:
    """The preprocessing with which each model was scored, from the records: importing torch would take seconds."""
    paths = {role: edition.scored_with(role) for role in roles}
    # a model without a record yet, or without a network, has no view; the page works without it
    records = {role: read_record(path) for role, path in paths.items() if is_there(path)}
    return {role: record.preprocessing for role, record in records.items() if isinstance(record, ScoreRecord)}
