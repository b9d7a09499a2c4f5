"""The models under attack, opened with their images, and the networks that searches ask, also those of other models.

Models under attack are the edition's, further ones, and those that params.yaml wraps. Images made on other models are
tried on the one under attack (transfer).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from time import time

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, Precision
from cleanset.evaluation.models import NamedModel
from cleanset.evaluation.sets import ImageFile, SetImages
from cleanset.images.preprocessing import PixelPlanes, Resized
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.devices import device_of
from cleanset.scoring.differentiable import PixelNetwork, wrap_network
from cleanset.scoring.logits import Groups
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import ignore
from cleanset.studies.attacks.base import Other, Subject, seed_of
from cleanset.studies.attacks.changes import GUESSED, most_confident_mistakes
from cleanset.studies.attacks.judge import ImageLogits, Judge
from cleanset.studies.attacks.study import AttackStudy, WrappedModel
from cleanset.studies.robustness.answers import ANSWER_TABLES, answer_columns, check_of_stored, with_step
from cleanset.studies.robustness.families import OpenedStudy, family_named
from cleanset.studies.robustness.images import ChangedImages, ChangeName
from cleanset.studies.robustness.sections import CLEAN
from cleanset.studies.robustness.sections import UNCHANGED as UNCHANGED_IMAGE
from cleanset.tables import read_table


class ResizedPixels(nn.Module):
    """Pixels of any side as square ones of another; unchanged if they have that side."""

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

    def network(self, network: nn.Module) -> PixelNetwork:
        """A network that is computed so."""
        return PixelNetwork(network, self.device, self.precision, self.batch_size)

    def queried(self, network: nn.Module) -> PixelNetwork:
        """A network that is computed so, for attacks, which may ask for more images at a time."""
        size = device_of(self.device).query_size(self.batch_size)
        return PixelNetwork(network, self.device, self.precision, self.batch_size, query_size=size)


def source_network(model: LoadedModel, groups: Sequence[Sequence[int]] | None, how: Searching) -> PixelNetwork:
    """A model on pixels of any side; with `groups` of class indices, one logit for each of them."""
    network = nn.Sequential(ResizedPixels(model.preprocessing.size), wrap_network(model.network, groups, False))
    return how.network(network)


@dataclass(frozen=True)
class Target:
    """A model, the images that it is attacked on, its judge, and how searches compute it."""

    name: str
    """A role of the edition, or the name of a further or a wrapped model."""

    model: LoadedModel
    """The model under attack, with its wrapper if it is a wrapped one."""

    images: pd.DataFrame
    """Rows of STUDY_IMAGES: the images that it may be attacked on."""

    files: Mapping[str, ImageFile]
    """The location of each image, by file."""

    classes: ClassTable
    """The class table of the images."""

    judge: Judge
    """What gives the verdicts on candidates."""

    how: Searching
    """How searches compute the model."""

    seed: int
    """The seed of the params."""

    wrapped: WrappedModel | None = None
    """What is around the model; None for a model of the edition or a further one."""

    groups: Groups | None = None
    """The groups that it distinguishes; None if it has all classes."""

    searched: nn.Module | None = None
    """The network that searches ask, where it is another than the model's."""

    opened_at: float = field(default_factory=time)
    """When it was opened, in seconds since 1970: before any query of an attack."""

    @cached_property
    def before(self) -> Callable[[str], ImageLogits]:
        """The judged logits of an image before any attack, by file; each is computed once."""

        @cache
        def judged(file: str) -> ImageLogits:
            return self.judge.logits(self.pixels(file), seed_of(self.seed, "judged", f"{self.name} ", file))

        return judged

    def network(self) -> PixelNetwork:
        """The network that searches ask, in the batches of all other computations: what depends on these, shows."""
        return self.how.network(self._searched)

    def queried_network(self) -> PixelNetwork:
        """The network that attacks ask."""
        return self.how.queried(self._searched)

    @property
    def _searched(self) -> nn.Module:
        return self.model.network if self.searched is None else self.searched

    def sources(self, models: Iterable[NamedModel]) -> dict[str, PixelNetwork]:
        """Other models as networks on the pixels that this one sees, with its groups if it has any."""
        groups = None if self.groups is None else self.groups.classes
        return {each.name: source_network(each.loaded, groups, self.how) for each in models}

    def subject(self, file: str) -> Subject:
        """An image to be attacked; its class is the model's, a group where it has groups."""
        row = self.images[self.images["file"] == file].iloc[0]
        return Subject(file, row["image_id"], self.label(int(row["class_index"])), self.pixels(file))

    def stored(self, file: str) -> dict[str, object]:
        """Columns of ATTACKED: the class of an image, which the model may know as a group only, and its SHA-256."""
        row = self.images[self.images["file"] == file].iloc[0]
        return {"class_index": int(row["class_index"]), "source_sha256": row["file_sha256"]}

    def pixels(self, file: str) -> PixelPlanes:
        """The pixels of an image that the model sees."""
        return pixels_of(file, SetImages(self.files), self.model.preprocessing)

    def others(self) -> dict[str, Other]:
        """The images that the model classifies correctly, by file."""
        labels = zip(self.images["file"], map(self.label, self.images["class_index"].tolist()), strict=True)
        return {
            # the default binds this file; a plain closure would see the last one
            file: Other(label, lambda file=file: self.pixels(file))  # type: ignore[misc]
            for file, label in labels
            if int(self.before(file).argmax()) == label
        }

    def label(self, class_index: int) -> int:
        """The class of an image as the model knows it: a group where it has groups."""
        found = class_index if self.groups is None else self.groups.group_of(class_index)
        # images of neither group were left out when the model was opened
        assert found is not None
        return found


def scores_check(study: AttackStudy, params: Params, target: Target) -> Callable[[Sequence[str]], None]:
    """The check that images of a target, by file, get the stored scores of the edition's model, bit for bit.

    It raises CleansetError where they do not. A further or a wrapped model, or scores below float64, cannot be
    compared. `params`: the edition's.
    """
    if target.wrapped or target.name not in params.models or params.score.precision != "float64":
        return ignore
    compare = check_of_stored(study.edition, target.name, target.classes)
    images = target.images.set_index("file", drop=False)

    def check(files: Sequence[str]) -> None:
        logits = np.stack([target.before(file) for file in files])
        clean = answer_columns(logits, params.dataset.class_list(target.classes))
        compare(
            images.loc[[*files]].reset_index(drop=True), pd.DataFrame({key: [*each] for key, each in clean.items()})
        )

    return check


def guess_of(opened: OpenedStudy, target: Target) -> Callable[[Subject], PixelPlanes]:
    """The most confident known mistake of an image's class, by the stored predictions of a study, made again."""
    families = [family_named(name) for name in GUESSED]
    stored = (
        read_table(opened.answers.predictions(each.name, target.name), ANSWER_TABLES[each.name], target.classes)
        for each in families
    )
    mistakes = most_confident_mistakes(target.images, pd.concat(map(with_step, stored, families)))
    # a changed image is square already: it is resized, never cropped
    whole = Resized(target.model.preprocessing.size)

    @cache
    def changed(family: str) -> ChangedImages:
        # every image of the model: one that a family leaves out may be a mistake of another
        return replace(opened.plan(family_named(family)), files=target.files).changed_images()

    # the images of a class, which follow each other, share a mistake
    @lru_cache(maxsize=16)
    def pixels(name: ChangeName) -> PixelPlanes:
        if name.change == CLEAN:
            return target.pixels(name.file)
        # of all families the unchanged images are the same; severities begin with 1
        family = "corruptions" if name.step or name.change == UNCHANGED_IMAGE else "scenarios"
        return whole(changed(family)(name))

    def guess(subject: Subject) -> PixelPlanes:
        mistake = mistakes.get(subject.class_index)
        return subject.pixels if mistake is None else pixels(mistake)

    return guess
