"""One model's answers to one family of changed images. No measure is taken here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.files import sha256, write_text
from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.progress import print_notice, rate_bar
from cleanset.robustness.answers import NAMED_ANSWERS, PREDICTIONS, ReadAnswers, by_name
from cleanset.robustness.changed_images import Change, ChangedImages, ChangeName, SetImages, StudyFile, files_of
from cleanset.robustness.clean import check_clean
from cleanset.robustness.names import CLEAN, UNCHANGED
from cleanset.robustness.settings import StudyParams
from cleanset.robustness.study import Study
from cleanset.scoring.engine import score_few, score_shards, settings_for
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.scoring.provenance import below_float64, library_versions, scoring_code
from cleanset.scoring.shards import Shards, fingerprint
from cleanset.tables import CROP_SCORES, SCORES, read_table, write_table


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """What one of FAMILIES changes: rows of STUDY_IMAGES, the changes of each by name and step, and how.

    `settings`: what the changed pixels depend on beside image, name, step, seed and JPEG quality.
    """

    name: str
    images: pd.DataFrame
    changes: Sequence[tuple[str, int]]
    change: Change
    settings: Mapping[str, Any]


def predict(study: Study, role: str, wanted: StudyParams, family: Family) -> None:
    """Read the model's weights and the images, write the answers and what they were computed with.

    Finished shards are kept beside them until the end, so that an interrupted run is continued. Raises CleansetError,
    too, where a clean image does not get the stored scores, bit for bit.
    """
    params = read_params(study.edition.folder)
    model = load_model(params.model(role), study.edition.folder)
    settings = replace(settings_for(params.score), in_processes=True)
    files = files_of(study.edition, family.images)
    read_off = ReadAnswers(params.dataset.class_list())
    clean = score_few(model, SetImages(files), settings, list(files), read_off=read_off)
    if settings.precision == "float64":
        _check_clean(study.edition, role, family.images, clean)
    names = names_of(files, family)
    record = record_of(role, model, settings.precision, wanted, family)
    label = fingerprint(json.dumps(record), below_float64(settings))
    folder = study.partial_predictions(family.name, role)
    shards = Shards(folder, label, names, settings.batch_size, table=NAMED_ANSWERS)
    changed = ChangedImages(files, family.change, wanted.jpeg, wanted.seed)
    with rate_bar(len(names), f"{family.name} {role}") as done:
        done(shards.finished_images(), 0.0)
        score_shards(_of_squares(model), changed, settings, shards, done, print_notice, read_off)
    clean["image_id"] = [str(ChangeName(file, CLEAN, 0)) for file in clean["image_id"]]
    table = PREDICTIONS[family.name]
    write_table(study.predictions(family.name, role), by_name(pd.concat([clean, shards.table()]), table), table)
    write_text(study.predicted_with(family.name, role), json.dumps(record, indent=2) + "\n")
    shards.remove()


def _of_squares(model: LoadedModel) -> LoadedModel:
    """The model with a preprocessing that crops nothing of a square image, and leaves one of its size as it is."""
    size = model.preprocessing.size
    return replace(model, preprocessing=ResizeAndCrop(f"Res{size}", size, size, "bilinear"))


def _check_clean(edition: Edition, role: str, images: pd.DataFrame, clean: pd.DataFrame) -> None:
    stored = read_table(edition.scores(role), SCORES), read_table(edition.crop_scores(role), CROP_SCORES)
    check_clean(role, images, clean, *stored)


def names_of(files: Mapping[str, StudyFile], family: Family) -> list[str]:
    """The names of all changed images and of the unchanged ones, sorted."""
    return sorted(str(ChangeName(file, *change)) for file in files for change in [(UNCHANGED, 0), *family.changes])


def _steps(changes: Sequence[tuple[str, int]]) -> dict[str, str]:
    """The steps of each change, as text."""
    steps: dict[str, list[int]] = {}
    for name, step in changes:
        steps.setdefault(name, []).append(step)
    return {name: " ".join(map(str, found)) for name, found in steps.items()}


def record_of(role: str, model: LoadedModel, precision: str, wanted: StudyParams, family: Family) -> dict[str, Any]:
    """What the answers depend on; nothing in it depends on the machine."""
    images = family.images
    return {
        "role": role,
        "weights_sha256": model.weights_sha256,
        "parameters": sum(each.numel() for each in model.network.parameters()),
        "precision": precision,
        "images": len(images),
        "images_sha256": sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode()),
        "changes": _steps(family.changes),
        "settings": dict(family.settings),
        "jpeg": wanted.jpeg,
        "seed": wanted.seed,
        "versions": library_versions(),
        "code": scoring_code(),
    }
