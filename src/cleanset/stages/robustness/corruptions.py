"""Stage corruptions: one model's answers to the corrupted images. No measure is taken here."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from cleanset.edition.params import read_params
from cleanset.files import sha256, write_text
from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.progress import print_notice, rate_bar
from cleanset.robustness.answers import NAMED_ANSWERS, PREDICTIONS, ReadAnswers, by_name
from cleanset.robustness.changed_images import ChangedImages, ChangeName, SetImages, StudyFile, files_of
from cleanset.robustness.clean import check_clean
from cleanset.robustness.images import STUDY_IMAGES, images_for
from cleanset.robustness.names import CLEAN, UNCHANGED
from cleanset.robustness.study import Study, StudyParams, read_study_params
from cleanset.scoring.engine import score_few, score_shards, settings_for
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.scoring.provenance import below_float64, library_versions, scoring_code
from cleanset.scoring.shards import Shards, fingerprint
from cleanset.tables import CROP_SCORES, SCORES, read_table, write_table


def run(study: Study, role: str) -> None:
    """Read the images and the model's weights, write data/corruptions/<role>.parquet and .json.

    Finished shards are kept beside them until the end, so that an interrupted run is continued. Raises CleansetError,
    too, where a clean image does not get the stored scores, bit for bit.
    """
    edition = study.edition
    params = read_params(edition.folder)
    wanted = read_study_params(study, list(params.models))
    model = load_model(params.model(role), edition.folder)
    settings = replace(settings_for(params.score), in_processes=True)
    images = images_for(read_table(study.images, STUDY_IMAGES), wanted.images, role)
    files = files_of(edition, images)
    read_off = ReadAnswers(params.dataset.class_list())
    clean = score_few(model, SetImages(files), settings, list(files), read_off=read_off)
    if settings.precision == "float64":
        stored = read_table(edition.scores(role), SCORES), read_table(edition.crop_scores(role), CROP_SCORES)
        check_clean(role, images, clean, *stored)
    names = changes_of(files, wanted)
    record = record_of(role, model, settings.precision, wanted, images)
    name = fingerprint(json.dumps(record), below_float64(settings))
    shards = Shards(study.partial_predictions(role), name, names, settings.batch_size, table=NAMED_ANSWERS)
    changed = ChangedImages(files, wanted.jpeg, wanted.seed)
    size = model.preprocessing.size
    whole = replace(model, preprocessing=ResizeAndCrop(f"Res{size}", size, size, "bilinear"))  # of a square: no crop
    with rate_bar(len(names), f"corruptions {role}") as done:
        done(shards.finished_images(), 0.0)
        score_shards(whole, changed, settings, shards, done, print_notice, read_off)
    clean["image_id"] = [str(ChangeName(file, CLEAN, 0)) for file in clean["image_id"]]
    write_table(study.predictions(role), by_name(pd.concat([clean, shards.table()])), PREDICTIONS)
    write_text(study.predicted_with(role), json.dumps(record, indent=2) + "\n")
    shards.remove()


def changes_of(files: Mapping[str, StudyFile], wanted: StudyParams) -> list[str]:
    """The names of all changed images and of the unchanged ones, sorted."""
    changes = [(UNCHANGED, 0), *wanted.corruptions.changes()]
    return sorted(str(ChangeName(file, *change)) for file in files for change in changes)


def record_of(
    role: str, model: LoadedModel, precision: str, wanted: StudyParams, images: pd.DataFrame
) -> dict[str, Any]:
    """What the answers depend on; nothing in it depends on the machine."""
    return {
        "role": role,
        "weights_sha256": model.weights_sha256,
        "precision": precision,
        "images": len(images),
        "images_sha256": sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode()),
        "changes": wanted.corruptions.changes(),
        "jpeg": wanted.jpeg,
        "seed": wanted.seed,
        "versions": library_versions(),
        "code": scoring_code(),
    }
