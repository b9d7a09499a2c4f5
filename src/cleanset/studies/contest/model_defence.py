"""A model of the edition as a defence: its answers, its confidences, and signs that it only looks strong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.files import sha256
from cleanset.images.codec import decode
from cleanset.scoring.logits import Groups, predicted_groups, stored_columns
from cleanset.statistics.coverage import confidences
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.folder_checks import FORMATS
from cleanset.studies.contest.rules import ABSTAIN

PROBED = 8
"""Number of images in which a model is searched for signs that it only looks strong."""


class ModelDefence:
    """A model of the edition that abstains below its threshold; the model is loaded on construction.

    `digest`: the SHA-256 of the model's entry in params.yaml, which names its weights by their own.
    """

    preparation_seconds = 0.0

    def __init__(self, edition: Edition, wanted: ModelOfEdition, groups: Groups) -> None:
        # torch is imported here, because a defence that is a command needs none
        from cleanset.scoring.differentiable import Uninteresting
        from cleanset.scoring.engine import settings_for
        from cleanset.scoring.models import load_model

        params = read_params(edition.folder)
        entry = params.network(wanted.role)
        self.digest = sha256(json.dumps(entry.model_dump(mode="json"), sort_keys=True).encode())
        model = load_model(entry, edition.folder)
        self._model = replace(model, network=Uninteresting(model.network)) if wanted.wrapper else model
        self._settings, self._groups = settings_for(params.score), groups
        self.wanted = wanted

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], Mapping[str, float]]:
        """By the name of each image, a group or `abstain`, and the confidence."""
        found = self.predictions(paths)
        names = [
            self._groups.names[group] if sure >= self.wanted.threshold else ABSTAIN
            for group, sure in zip(found["group"], found["confidence"], strict=True)
        ]
        answers = dict(zip(found["image_id"], names, strict=True))
        return answers, dict(zip(found["image_id"], found["confidence"], strict=True))

    def predictions(self, paths: Mapping[str, Path]) -> pd.DataFrame:
        """The columns `image_id`, `group` (0 or 1) and `confidence`, a row for each image, without abstaining."""
        from cleanset.scoring.engine import score_few

        found = score_few(
            self._model, ImageReader(paths), self._settings, list(paths), read_off=GroupReader(self._groups)
        )
        return found.assign(confidence=confidences(found, self.wanted.confidence))

    def signs(self, known: Mapping[str, str], paths: Mapping[str, Path]) -> list[dict[str, str]]:
        """The signs that the model only looks strong, in its answers to some images and in their gradients.

        `known`: the group of each image by its name. No attack is run; the study of attacks does that.
        """
        from cleanset.scoring.decoding import pixels_of
        from cleanset.scoring.differentiable import pixel_network, searching
        from cleanset.studies.attacks.base import Subject
        from cleanset.studies.attacks.warnings import of_answers

        # any class of the group will do for the gradient, since only its presence is checked
        preprocessing, first_class = self._model.preprocessing, self._groups.first_class
        subjects = [
            Subject(name, name, first_class(group), pixels_of(name, ImageReader(paths), preprocessing))
            for name, group in list(known.items())[:PROBED]
        ]
        network = pixel_network(self._model, self._settings.devices[0], "float64", PROBED)
        with searching("float64"):
            return [each._asdict() for each in of_answers(network, subjects, PROBED)]


@dataclass(frozen=True, slots=True)
class ImageReader:
    """Decode an image by its name."""

    paths: Mapping[str, Path]

    def __call__(self, name: str) -> Image.Image:
        """The image, in RGB. Raises ValueError if it cannot be read."""
        return decode(self.paths[name].read_bytes(), FORMATS).convert("RGB")


@dataclass(frozen=True, slots=True)
class GroupReader:
    """Reduce logits of shape (n, 1000) to the columns that confidences need, and the predicted group."""

    groups: Groups

    def __call__(self, logits: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> dict[str, "np.ndarray"]:
        """The columns. Raises ValueError if a logit is not finite."""
        found = self.groups.logits(logits)
        return {**stored_columns(found), "group": predicted_groups(found)}
