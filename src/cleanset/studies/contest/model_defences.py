"""Defences that are models of the edition: a model that abstains below a threshold of its confidence.

torch is imported when a model is loaded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.images.codec import decode
from cleanset.plumbing.files import sha256
from cleanset.scoring.logits import Groups, ScoreColumns, predicted_groups, stored_columns
from cleanset.statistics.coverage import confidences
from cleanset.studies.contest.eligibility_lists import EligibilityImage
from cleanset.studies.contest.entries import DEFENCE_SIDE, ModelOfEdition, WarningSign
from cleanset.studies.contest.rules import ABSTAIN

PROBED = 8
"""Number of images on which a model is probed for signs of gradient masking."""


class ModelDefence:
    """A model of the edition that abstains below its threshold; the model is loaded on construction."""

    preparation_seconds = 0.0
    is_confined = None

    def __init__(self, edition: Edition, wanted: ModelOfEdition, groups: Groups) -> None:
        from cleanset.evaluation.user_model import load_member
        from cleanset.scoring.differentiable import Uninteresting
        from cleanset.scoring.engine import settings_for

        params = read_params(edition.folder)
        entry = params.network(wanted.role)
        # left out where there is no module, so that runs of other models are of the same model as before
        unused = set() if entry.module_sha256 else {"module_sha256"}
        self.digest = sha256(json.dumps(entry.model_dump(mode="json", exclude=unused), sort_keys=True).encode())
        """The SHA-256 of the model's entry in params.yaml, which names its weights by their own."""
        model = load_member(entry, edition.folder, edition.read_classes())
        self._model = replace(model, network=Uninteresting(model.network)) if wanted.wrapper else model
        self._settings = settings_for(params.score)
        self._groups = groups
        self.wanted = wanted
        self.seen = pixels_seen(model.preprocessing)

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], Mapping[str, float]]:
        """By the name of each image, a group or `abstain`, and the confidence."""
        found = self.predictions(paths)
        sure = dict(zip(found["image_id"], found["confidence"], strict=True))
        groups = zip(found["image_id"], found["group"], strict=True)
        least = self.wanted.threshold
        return {name: self._groups.names[group] if sure[name] >= least else ABSTAIN for name, group in groups}, sure

    def predictions(self, paths: Mapping[str, Path]) -> pd.DataFrame:
        """The columns `image_id`, `group` (0 or 1) and `confidence`, a row for each image, without abstaining."""
        from cleanset.scoring.engine import score_few

        read = partial(read_image, paths)
        read_off = partial(group_columns, self._groups)
        found = score_few(self._model, read, self._settings, list(paths), read_off=read_off)
        return found.assign(confidence=confidences(found, self.wanted.confidence))

    def signs(self, known: Mapping[str, EligibilityImage], paths: Mapping[str, Path]) -> list[WarningSign]:
        """The signs of gradient masking in the model's answers to some images and in their gradients.

        `known`: images by name. No attack is run; the study of attacks does that.
        """
        from cleanset.scoring.decoding import pixels_of
        from cleanset.scoring.differentiable import PixelNetwork, searching
        from cleanset.studies.attacks.base import Subject
        from cleanset.studies.attacks.probing import of_answers

        # any class of the group will do for the gradient, since only its presence is checked
        read = partial(read_image, paths)
        subjects = [
            Subject(name, name, self._groups.first_class(each.group), pixels_of(name, read, self._model.preprocessing))
            for name, each in list(known.items())[:PROBED]
        ]
        network = PixelNetwork(self._model.network, self._settings.devices[0].torch, "float64", PROBED)
        with searching("float64"):
            return [WarningSign(sign=each.sign, text=each.text) for each in of_answers(network, [subjects])]


def seen_by_model(edition: Edition, role: str) -> dict[str, int]:
    """How many pixels a model of the edition sees of a square image: `pixels` and `crop` of its defence's entry."""
    # timm is imported here, because most entries need none
    from cleanset.evaluation.user_model import load_member
    from cleanset.scoring.models import preprocessing_of

    model = read_params(edition.folder).network(role)
    if model.source == "module":
        return pixels_seen(load_member(model, edition.folder, edition.read_classes()).preprocessing)
    return pixels_seen(preprocessing_of(model))


def pixels_seen(preprocessing: object) -> dict[str, int]:
    """See `seen_by_model`; of a callable nothing is known but the pixels that it returns, as of a crop alone."""
    size = getattr(preprocessing, "size", DEFENCE_SIDE)
    resize = getattr(preprocessing, "resize", None)
    scaled = min(resize) if isinstance(resize, tuple) else resize
    return {"pixels": scaled if isinstance(scaled, int) else size, "crop": min(size, scaled or size)}


def read_image(paths: Mapping[str, Path], name: str) -> Image.Image:
    """An image by its name, in RGB. Raises ValueError if it cannot be read."""
    return decode(paths[name].read_bytes()).convert("RGB")


def group_columns(groups: Groups, logits: NDArray[np.float64], _ids: Sequence[str] = ()) -> ScoreColumns:
    """The columns that confidences need, and the predicted group, from logits of shape (n, 1000).

    Raises ValueError if a logit is not finite.
    """
    found = groups.logits(logits)
    return {**stored_columns(found), "group": predicted_groups(found)}
