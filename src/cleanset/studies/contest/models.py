"""Defences that are models of the edition: a model that abstains below a threshold of its confidence.

torch is imported when a model is loaded.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.images.preprocessing import Preprocessing
from cleanset.plumbing.files import sha256
from cleanset.scoring.logits import Groups, ScoreColumns, predicted_groups, stored_columns
from cleanset.statistics.basics import Floats
from cleanset.statistics.coverage import confidences
from cleanset.statistics.formats import decimal
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.rules import ABSTAIN, ContestLimits


class ModelDefence:
    """A model of the edition that abstains below its threshold; the model is loaded on construction."""

    def __init__(self, edition: Edition, wanted: ModelOfEdition, groups: Groups) -> None:
        from cleanset.evaluation.user_model import load_member
        from cleanset.scoring.engine import settings_for

        params = read_params(edition.folder)
        entry = params.network(wanted.role)
        # without what it has not, so that a key that is added later leaves the digests of others unchanged
        self.digest = sha256(json.dumps(entry.model_dump(mode="json", exclude_none=True), sort_keys=True).encode())
        """The SHA-256 of the model's entry in params.yaml, which names its weights by their own."""
        self._model = load_member(entry, edition.folder, edition.read_classes())
        self._settings = settings_for(params.score)
        self._groups = groups
        self._wanted = wanted

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], float]:
        """By the name of each image, a group or `abstain`; and the seconds that it took."""
        from cleanset.scoring.engine import score_few

        begun = perf_counter()
        read_off = partial(group_columns, self._groups)
        found = score_few(self._model, partial(read_image, paths), self._settings, list(paths), read_off=read_off)
        sure = confidences(found, self._wanted.confidence) >= self._wanted.threshold
        groups = np.where(sure, np.array(self._groups.names)[found["group"]], ABSTAIN)
        return dict(zip(found["image_id"], groups.tolist(), strict=True)), perf_counter() - begun


def read_image(paths: Mapping[str, Path], name: str) -> Image.Image:
    """An image by its name, in RGB. Raises ValueError if it cannot be read."""
    return decode(paths[name].read_bytes()).convert("RGB")


def group_columns(groups: Groups, logits: Floats, _ids: Sequence[str] = ()) -> ScoreColumns:
    """The columns that confidences need, and the predicted group, from logits of shape (n, 1000).

    Raises ValueError if a logit is not finite.
    """
    found = groups.logits(logits)
    return {**stored_columns(found), "group": predicted_groups(found)}


def check_sees(edition: Edition, role: str, limits: ContestLimits) -> None:
    """Raise CleansetError for a model of the edition that sees fewer pixels of a submission than people do."""
    # timm is imported here, because most entries need none
    from cleanset.evaluation.models import preprocessing_of_spec
    from cleanset.evaluation.specs import ZooModel
    from cleanset.scoring.engine import settings_for

    params = read_params(edition.folder)
    model = ZooModel(role, params.network(role), edition.folder, is_of_params=True)
    pixels, share = pixels_seen(preprocessing_of_spec(model, settings_for(params.score), edition.read_classes()))
    if pixels < limits.max_side or share < limits.seen_share:
        raise CleansetError(
            f"model {role}: scales a square image to {pixels} pixels a side, and looks at {decimal(share, 3)} of them; "
            f"expected limits.max_side, {limits.max_side}, and limits.seen_share, {limits.seen_share:g}: take another"
        )


def pixels_seen(preprocessing: Preprocessing) -> tuple[int, float]:
    """The side in pixels to which a square image is scaled, and the share of it that is looked at, in the middle."""
    resize = getattr(preprocessing, "resize", None) or preprocessing.size
    pixels = min(resize) if isinstance(resize, tuple) else resize
    return pixels, min(preprocessing.size, pixels) / pixels
