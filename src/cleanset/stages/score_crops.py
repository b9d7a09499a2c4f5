"""Stage score_crops: scores of one model on every cropped image. No decision is made here."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.edition.pipeline import check_params_named
from cleanset.errors import CleansetError
from cleanset.images.boxes import Crop
from cleanset.images.codec import part
from cleanset.plumbing.progress import rate_bar
from cleanset.scoring.record import ListRecord, read_record
from cleanset.selection.crop_check import crops_of
from cleanset.tables import CROP_SCORES, CROPS, INDEX, SCORES, read_table, write_table

if TYPE_CHECKING:
    from cleanset.scoring.models import LoadedModel


def run(edition: Edition, role: str) -> None:
    """Read the crops and their images; write data/crop_scores/<role>.parquet.

    Without crops, no model is loaded and no weights are needed. A few crops run on one device of this
    machine, whatever engine says. A model that is a published list has no prediction of any crop: its table is
    empty.
    """
    params = read_params(edition.folder)
    model = params.model(role)
    check_params_named(edition)
    classes = edition.read_classes()
    if model.is_list:
        write_table(edition.crop_scores(role), pd.DataFrame(columns=CROP_SCORES.names), CROP_SCORES, classes)
        return
    index = read_table(edition.index, INDEX, classes)
    table = read_table(edition.crops, CROPS, classes)
    crops = crops_of(table)
    unknown = sorted({crop.image_id for crop in crops} - set(index["image_id"]))
    if unknown:
        raise CleansetError(f"{edition.crops}: {unknown[0]} is not in {edition.index}: run dvc repro")
    scores = score_all(edition, params, role, index, crops, classes) if crops else pd.DataFrame(columns=SCORES.names)
    write_table(edition.crop_scores(role), table.join(scores.drop(columns="image_id")), CROP_SCORES, classes)


def score_all(
    edition: Edition, params: Params, role: str, index: pd.DataFrame, crops: Sequence[Crop], classes: ClassTable
) -> pd.DataFrame:
    """The scores of the crops, in their order."""
    # torch is imported here, because an edition without crops, or of lists alone, needs none
    from cleanset.evaluation.user_model import load_member
    from cleanset.scoring.engine import score_few, settings_for

    settings = settings_for(params.score)
    model = load_member(params.network(role), edition.folder, classes)
    check_weights(edition, role, model)
    by_name = {str(crop): crop for crop in crops}
    source = partial(part, verified_images(edition, params.dataset.images, index, classes).read, by_name)
    with rate_bar(len(crops), f"score_crops {role}") as done:
        return score_few(model, source, settings, list(by_name), on_progress=done)


def check_weights(edition: Edition, role: str, model: "LoadedModel") -> None:
    """Raise CleansetError unless the uncropped images were scored with the same weights."""
    path = edition.scored_with(role)
    record = read_record(path)
    expected = "those of a published list" if isinstance(record, ListRecord) else record.weights_sha256
    if model.weights_sha256 != expected:
        raise CleansetError(
            f"{role}: weights with SHA-256 {model.weights_sha256}, but {path} has {expected}; expected those that the "
            f"images were scored with: fetch them, or run dvc repro --single-item --force score@{role}"
        )
