"""What does not change while people review: the classes, their candidates and pictures, the models' views."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cleanset.class_names import ClassName, class_names
from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.images import Preprocessing
from cleanset.params import Params, read_params
from cleanset.pictures import VerifiedPictures
from cleanset.review.queue import ByRole, Candidate, by_class, place_in_class
from cleanset.reviewer.photos import Photos
from cleanset.tables import CANDIDATES, INDEX, read_table


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the index. `single`: it has one reassessed label."""

    image_id: str
    sha256: str
    width: int
    height: int
    single: bool


@dataclass(frozen=True, slots=True)
class Library:
    """An edition as the page reads it once: `classes` by class index, in that order; `seen_by` the models' views."""

    params: Params
    index: pd.DataFrame
    names: Mapping[int, ClassName]
    classes: Mapping[int, ByRole]
    pictures: Mapping[str, Picture]
    photos: Photos
    seen_by: Mapping[str, Preprocessing]

    def candidates(self, class_index: int) -> dict[str, dict[str, Candidate]]:
        """Every picture that may stand in a class with the models it may serve, the likeliest first."""
        models: dict[str, dict[str, Candidate]] = {}
        for role, candidates in self.classes[class_index].items():
            for candidate in candidates:
                models.setdefault(candidate.image_id, {})[role] = candidate
        return dict(sorted(models.items(), key=lambda item: (*place_in_class(item[1].values()), item[0])))

    def examples(self, class_index: int, without: Collection[str], count: int) -> list[Picture]:
        """Pictures with one label that the models are surest of, on average over all models."""
        confidence = {
            image_id: sum(candidate.confidence for candidate in models.values())
            for image_id, models in self.candidates(class_index).items()
            if image_id not in without and self.pictures[image_id].single
        }
        surest = sorted(confidence, key=lambda image_id: (-confidence[image_id], image_id))
        return [self.pictures[image_id] for image_id in surest[:count]]


def open_library(edition: Edition) -> Library:
    """Read an edition. Raises CleansetError if a table is missing: then `dvc repro` or `dvc pull` is due."""
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX)
    tables = {role: read_table(edition.candidates(role), CANDIDATES) for role in params.models}
    classes = by_class(tables, params.dataset.class_list())
    pictures = _pictures(index, classes.values())
    names = {name.class_index: name for name in class_names() if name.class_index in classes}
    read = VerifiedPictures(edition, params.dataset.images, index).read
    return Library(params, index, names, classes, pictures, Photos(read), _seen_by(edition, list(params.models)))


def _pictures(index: pd.DataFrame, classes: Collection[ByRole]) -> dict[str, Picture]:
    wanted = {each.image_id for by_role in classes for candidates in by_role.values() for each in candidates}
    columns = (index[name].tolist() for name in ("image_id", "sha256", "width", "height", "single"))
    found = {row[0]: Picture(*row) for row in zip(*columns, strict=True) if row[0] in wanted}
    lost = sorted(wanted - set(found))
    if lost:
        raise CleansetError(f"data/candidates: {lost[0]} is not in data/index.parquet: run dvc repro")
    return found


def _seen_by(edition: Edition, roles: Sequence[str]) -> dict[str, Preprocessing]:
    """Each model's preprocessing as the scores were computed with it; without torch, which takes seconds."""
    views = {}
    for role in roles:
        path = edition.scored_with(role)
        if path.is_file():
            try:
                views[role] = Preprocessing(**json.loads(path.read_text(encoding="utf-8"))["preprocessing"])
            except (ValueError, LookupError, TypeError):
                raise CleansetError(f"{path}: does not say the model's preprocessing; run dvc repro") from None
    return views
