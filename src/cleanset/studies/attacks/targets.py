"""The models that are attacked, and the other models that images are made on.

Attacked are those of the edition, further ones, and those that params.yaml wraps.

Straight through: steps of a network that gradients pass as if they were the identity, for networks that hide theirs
behind such steps. Backward pass differentiable approximation: A. Athalye, N. Carlini, D. Wagner, "Obfuscated Gradients
Give a False Sense of Security" (ICML 2018).
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from cleanset.edition.params import Params, read_params
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Resized
from cleanset.measure.user_model import CheckedNetwork, load_member
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.differentiable import PixelNetwork, wrap_network
from cleanset.scoring.engine import Settings
from cleanset.scoring.logits import Groups
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Precision
from cleanset.studies.attacks.base import Other, Pixels, Subject, seed_of
from cleanset.studies.attacks.changes import GUESSED, most_confident_mistakes
from cleanset.studies.attacks.judged import Judge, Logits, Lpips
from cleanset.studies.attacks.study import AttackParams, AttackStudy, WrappedModel, images_of, label, read_attack_params
from cleanset.studies.robustness.answers import PREDICTIONS, ReadAnswers, check_clean
from cleanset.studies.robustness.families import StudyParams, change_plan, family_named, read_study_params
from cleanset.studies.robustness.images import (
    STUDY_IMAGES,
    ChangedImages,
    ChangeName,
    SetImages,
    Sources,
    Study,
    StudyFile,
    files_of,
    images_for,
)
from cleanset.studies.robustness.results import CLEAN
from cleanset.studies.robustness.results import UNCHANGED as UNCHANGED_IMAGE
from cleanset.studies.robustness.trained_models import load_further
from cleanset.tables import CROP_SCORES, SCORES, read_table
from cleanset.validation import check_known, shown


class ResizedPixels(nn.Module):
    """Pixels of any side as square ones of another; those of that side stay as they are."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels of shape (n, 3, size, size), through which gradients flow."""
        if pixels.shape[-1] == self.size:
            return pixels
        # as Pillow and torchvision resize: without antialiasing a smaller image would be of other pixels
        size = (self.size, self.size)
        found: Tensor = nn.functional.interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
        return found


@dataclass(frozen=True, slots=True)
class Searching:
    """The device, the precision and the number of images at a time of a search."""

    device: torch.device
    precision: Precision
    batch_size: int


def source_networks(
    models: Mapping[str, LoadedModel], groups: Sequence[Sequence[int]] | None, how: Searching
) -> dict[str, PixelNetwork]:
    """The models, by name, on pixels of any side; with `groups` of class indices, one logit for each of them."""
    return {
        name: PixelNetwork(
            nn.Sequential(ResizedPixels(model.preprocessing.size), wrap_network(model.network, groups, False)),
            how.device,
            how.precision,
            how.batch_size,
        )
        for name, model in models.items()
    }


MAX_NAMED = 12
"""Steps that an error names at most."""


class StraightThrough(nn.Module):
    """A step of a network, computed as it is, with the derivative of the identity."""

    def __init__(self, name: str, step: nn.Module) -> None:
        super().__init__()
        self.name, self.step = name, step

    def forward(self, pixels: Tensor) -> Tensor:
        """The result of the step. Raises CleansetError if its shape is not that of what it is given."""
        with torch.no_grad():
            found: Tensor = self.step(pixels.detach())
        if found.shape != pixels.shape:
            raise CleansetError(
                f"straight through {self.name}: it makes {tuple(found.shape)} of {tuple(pixels.shape)}; expected a "
                "step that keeps the shape"
            )
        return pixels + (found - pixels.detach())


def with_straight_through(network: nn.Module, names: Sequence[str]) -> nn.Module:
    """A copy of a network whose named submodules gradients pass straight through; itself without names.

    A name is that of `named_modules()`, such as `quantize` or `steps.0`. Raises CleansetError for another.
    """
    if not names:
        return network
    found = copy.deepcopy(network)
    # a network of a module is in a wrapper, of which its author knows nothing
    inner = found.network if isinstance(found, CheckedNetwork) else found
    known = [name for name, _ in inner.named_modules() if name]
    for name in names:
        if name not in known:
            some = ", ".join(known[:MAX_NAMED]) + (", …" if len(known) > MAX_NAMED else "")
            raise CleansetError(f"straight through {shown(name)}: no such step of the network; expected some of {some}")
        parent, _, last = name.rpartition(".")
        setattr(inner.get_submodule(parent), last, StraightThrough(name, inner.get_submodule(name)))
    return found


@dataclass(frozen=True, slots=True)
class AllParams:
    """The params that attacks depend on: the edition's, those of its study of robustness, and their own."""

    edition: Params
    robustness: StudyParams
    attacks: AttackParams

    @classmethod
    def read(cls, study: AttackStudy, attacks: AttackParams | None = None) -> "AllParams":
        """Read and check the three files, or two of them if `attacks` is given. Raises CleansetError naming the key."""
        edition = read_params(study.edition.folder)
        roles = list(edition.models)
        robustness = read_study_params(study.robustness.params_yaml, roles)
        if attacks is None:
            attacks = read_attack_params(study.params_yaml, roles, list(robustness.further_models))
        return cls(edition, robustness, attacks)


@dataclass(frozen=True, slots=True)
class AttackedModel:
    """A model, the images that it is attacked on, and how it classifies them.

    `name`: a role of the edition, or that of a further or a wrapped model, of which `wrapped` says what it is.
    `before`: the judged logits of an image, by file. `groups`: None where the model has all classes. `searched`: the
    network that searches ask, where it is another than the model's. `has_scores`: its scores are stored.
    """

    name: str
    model: LoadedModel
    images: pd.DataFrame
    files: Mapping[str, StudyFile]
    before: Callable[[str], Logits]
    wrapped: WrappedModel | None = None
    groups: Groups | None = None
    searched: nn.Module | None = None
    has_scores: bool = False

    def network(self, how: Searching) -> PixelNetwork:
        """The network that searches ask."""
        network = self.model.network if self.searched is None else self.searched
        return PixelNetwork(network, how.device, how.precision, how.batch_size)

    def sources(self, models: Mapping[str, LoadedModel], how: Searching) -> dict[str, PixelNetwork]:
        """Other models as networks on the pixels that this one sees, with its groups if it has any."""
        return source_networks(models, None if self.groups is None else self.groups.classes, how)

    def subject(self, file: str) -> Subject:
        """An image as it is attacked; its class is the model's, a group where it has groups."""
        row = self.images[self.images["file"] == file].iloc[0]
        return Subject(file, row["image_id"], self._label(int(row["class_index"])), self.pixels(file))

    def stored(self, file: str) -> dict[str, Any]:
        """Columns of ATTACKED: the class of an image, which the model may know as a group only, and its SHA-256."""
        row = self.images[self.images["file"] == file].iloc[0]
        return {"class_index": int(row["class_index"]), "source_sha256": row["file_sha256"]}

    def pixels(self, file: str) -> Pixels:
        """The pixels of an image that the model sees."""
        return pixels_of(file, SetImages(self.files), self.model.preprocessing)

    def others(self) -> dict[str, Other]:
        """The images that the model classifies correctly, by file."""
        labels = zip(self.images["file"], map(self._label, self.images["class_index"].tolist()), strict=True)
        return {
            # the default binds this file; a plain closure would see the last one
            file: Other(label, lambda file=file: self.pixels(file))  # type: ignore[misc]
            for file, label in labels
            if int(self.before(file).argmax()) == label
        }

    def _label(self, class_index: int) -> int:
        found = label(self.groups, class_index)
        # images of neither group were left out when the model was opened
        assert found is not None
        return found


def open_target(
    study: AttackStudy,
    params: AllParams,
    name: str,
    settings: Settings,
    lpips: Lpips | None = None,
) -> tuple[Judge, AttackedModel]:
    """A model of a study and its images; what is judged gets the LPIPS, too, if `lpips` is given.

    Raises CleansetError for a name that no model of the study has, and where no image is of a class of the model's
    groups.
    """
    further = params.robustness.further_models
    check_known("model", name, params.attacks.models(params.edition.models, further))
    around = params.attacks.wrapped.get(name)
    role, groups = (name, None) if around is None else (around.model, around.two_groups)
    if role in further:
        folders = study.robustness.folder, study.edition.folder
        model = load_further(further[role], *folders, role, settings).loaded
    else:
        model = load_member(params.edition.network(role), study.edition.folder)
    images = images_for(
        read_table(study.robustness.images, STUDY_IMAGES),
        params.robustness.images,
        role,
        params.robustness.classes_of(role),
    )
    images = images_of(groups, images, name)
    if around is not None:
        members = None if groups is None else groups.classes
        model = replace(model, network=wrap_network(model.network, members, around.wrapper is not None))
    judge = Judge(model, settings.devices[0], lpips)
    files, seed = files_of(study.edition, images), params.attacks.seed
    before = logits_before(judge, name, model, files, seed)
    is_of_edition = around is None and role not in further
    return judge, AttackedModel(name, model, images, files, before, around, groups, has_scores=is_of_edition)


def logits_before(
    judge: Judge, name: str, model: LoadedModel, files: Mapping[str, StudyFile], seed: int
) -> Callable[[str], Logits]:
    """The judged logits of an image before any attack, by file; each is computed once. `seed` is that of the params."""

    @cache
    def before(file: str) -> Logits:
        pixels = pixels_of(file, SetImages(files), model.preprocessing)
        return judge.logits([pixels], [seed_of(seed, "judged", f"{name} ", file)])[0]

    return before


def other_models(study: AttackStudy, params: AllParams, name: str) -> dict[str, LoadedModel]:
    """The models of the edition but the one of a name, by role; lists have no network."""
    models = {role: model for role, model in params.edition.models.items() if role != name and not model.is_list}
    return {role: load_member(model, study.edition.folder) for role, model in models.items()}


def check_scores(study: AttackStudy, params: Params, target: AttackedModel, images: pd.DataFrame) -> None:
    """Raise CleansetError unless images of a target get the stored scores of the edition's model, bit for bit.

    Of a further or a wrapped model, and of scores below float64, there is nothing to compare with.
    """
    if not target.has_scores or params.score.precision != "float64":
        return
    logits = np.stack([target.before(file) for file in images["file"]])
    clean = ReadAnswers(params.dataset.class_list())(logits)
    frame = pd.DataFrame({column: list(values) for column, values in clean.items()})
    edition = study.edition
    stored = (
        read_table(edition.scores(target.name), SCORES),
        read_table(edition.crop_scores(target.name), CROP_SCORES),
    )
    check_clean(target.name, images, frame, *stored)


def guess_of(study: Study, params: StudyParams, target: AttackedModel) -> Callable[[Subject], Pixels]:
    """The most confident known mistake of an image's class, by the stored predictions of a study, made again."""
    corruptions, scenarios = (
        read_table(study.predictions(family, target.name), PREDICTIONS[family]) for family in GUESSED
    )
    # scenarios have no severity; 0 is below all severities of corruptions
    mistakes = most_confident_mistakes(target.images, pd.concat((corruptions, scenarios.assign(severity=0))))
    # a changed image is square already: it is resized, never cropped
    whole = Resized(target.model.preprocessing.size)

    @cache
    def changed(family: str) -> ChangedImages:
        return change_plan(family_named(family), Sources.read(study), params).changed_images(target.files, params)

    # the images of a class, which follow each other, share a mistake
    @lru_cache(maxsize=16)
    def pixels(file: str, name: str, severity: int) -> Pixels:
        if name == CLEAN:
            return target.pixels(file)
        # of all families the unchanged images are the same; severities begin with 1
        family = "corruptions" if severity or name == UNCHANGED_IMAGE else "scenarios"
        return whole(changed(family)(str(ChangeName(file, name, severity))))

    def guess(subject: Subject) -> Pixels:
        mistake = mistakes.get(subject.class_index)
        return subject.pixels if mistake is None else pixels(*mistake)

    return guess
