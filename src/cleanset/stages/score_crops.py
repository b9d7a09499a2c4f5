"""Stage score_crops: what one model says of its candidates once they are cropped. No decision is made here."""

import json
from collections.abc import Sequence
from functools import partial

import pandas as pd

from cleanset.boxes import Crop
from cleanset.crops import COLUMNS, read_crops
from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.images import part
from cleanset.params import Params, read_params
from cleanset.pictures import VerifiedPictures
from cleanset.progress import rate_bar
from cleanset.ranking import candidate_ids
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.tables import CROP_SCORES, INDEX, SCORES, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read the crops, and those pictures that are candidates of the model; write data/crop_scores/<role>.parquet.

    Where there is no such crop, no model is loaded and no weights are needed. A few crops run on one device of this
    machine, whatever score.engine says.
    """
    params = read_params(edition.folder)
    params.model(role)
    index = read_table(edition.index, INDEX)
    scores = read_table(edition.scores(role), SCORES)
    crops = read_crops(edition.crops)
    unknown = sorted({crop.image_id for crop in crops} - set(index["image_id"]))
    if unknown:
        raise CleansetError(f"{edition.crops}: {unknown[0]} is not in {edition.index}: run dvc repro")
    candidates = candidate_ids(index, scores, params.dataset.class_list())
    mine = [crop for crop in crops if crop.image_id in candidates]
    table = pd.DataFrame([(crop.image_id, *crop.box) for crop in mine], columns=list(COLUMNS))
    said = score_all(edition, params, role, index, mine) if mine else pd.DataFrame(columns=SCORES.names)
    write_table(edition.crop_scores(role), table.join(said.drop(columns="image_id")), CROP_SCORES)


def score_all(edition: Edition, params: Params, role: str, index: pd.DataFrame, crops: Sequence[Crop]) -> pd.DataFrame:
    """The scores of the crops, in their order."""
    settings = settings_for(params.score)
    model = load_model(params.model(role), edition.folder)
    check_weights(edition, role, model)
    by_name = {str(crop): crop for crop in crops}
    source = partial(part, VerifiedPictures(edition, params.dataset.images, index).read, by_name)
    with rate_bar(len(crops), f"score_crops {role}") as done:
        return score_few(model, source, settings, list(by_name), done)


def check_weights(edition: Edition, role: str, model: LoadedModel) -> None:
    """Raise CleansetError unless the whole pictures were scored with the same weights."""
    path = edition.scored_with(role)
    try:
        expected = json.loads(path.read_text(encoding="utf-8"))["weights_sha256"]
    except (FileNotFoundError, ValueError, KeyError):
        raise CleansetError(f"{path}: missing, or without weights_sha256; run dvc repro, or dvc pull") from None
    if model.weights_sha256 != expected:
        raise CleansetError(
            f"{role}: weights with SHA-256 {model.weights_sha256}, but {path} has {expected}; expected those that the "
            f"pictures were scored with: fetch them, or run dvc repro --force score@{role}"
        )
