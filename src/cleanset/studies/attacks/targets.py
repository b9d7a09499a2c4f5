"""The models under attack, the verdict on each candidate, and the substitute models of transfer attacks.

Models under attack are the edition's, further ones, and those that params.yaml wraps.

A verdict: the float64 logits of the PNG that holds a candidate, and how far it is from the image. Whoever has the file
gets the same verdict on any machine, whatever the search was computed in. One of the distances is learned: LPIPS (Zhang
and others 2018), as the library lpips 0.1.4 computes it. The library brings its linear layers, of version 0.1;
AlexNet's weights, which it would download, are read from a file.

Straight through: steps of a network that gradients pass as if they were the identity, for networks that hide theirs
behind such steps. Backward pass differentiable approximation: A. Athalye, N. Carlini, D. Wagner, "Obfuscated Gradients
Give a False Sense of Security" (ICML 2018).
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from time import time
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, Precision
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.preprocessing import PixelPlanes, Resized
from cleanset.measure.user_model import load_member
from cleanset.scoring.checked_network import CheckedNetwork
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.devices import Device, device_of, to_device
from cleanset.scoring.differentiable import PixelNetwork, wrap_network
from cleanset.scoring.engine import settings_for
from cleanset.scoring.gate import not_finite
from cleanset.scoring.logits import Groups
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic, ignore
from cleanset.studies.attacks.base import LEVELS, Ball, Other, Result, Subject, globally_seeded, seed_of, to_unit
from cleanset.studies.attacks.candidate_files import Begun, Unwritten
from cleanset.studies.attacks.changes import GUESSED, most_confident_mistakes
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy, WrappedModel
from cleanset.studies.robustness.answers import ANSWER_TABLES, answer_columns, check_of_stored, with_step
from cleanset.studies.robustness.families import StudyParams, change_plan, family_named
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
from cleanset.studies.robustness.params import ListedModel
from cleanset.studies.robustness.sections import CLEAN
from cleanset.studies.robustness.sections import UNCHANGED as UNCHANGED_IMAGE
from cleanset.studies.robustness.trained_models import load_further
from cleanset.tables import read_table
from cleanset.validation import check_known, shown

ImageLogits = NDArray[np.float64]
"""The logits of one image, of shape (classes,)."""


CPU = torch.device("cpu")


class Judge:
    """The float64 logits of images by one model, of each alone.

    So the logits of an image do not depend on the others, bit for bit. A random model draws on the CPU, from the
    beginning of a seed for each image: so they are the same on any machine and whenever they are asked for. A custom
    random model has draws of its own; the global generators of torch and numpy begin at the same seed. `lpips`: None
    for leaving LPIPS out. `precision`: another than float64 for a network that does not run in it.
    """

    def __init__(
        self,
        model: LoadedModel,
        device: torch.device,
        lpips: "Lpips | None" = None,
        precision: Precision = "float64",
    ) -> None:
        self._network = PixelNetwork(model.network, device, precision)
        self.lpips = lpips
        self.precision = precision

    def logits(self, image: PixelPlanes, seed: int = 0) -> ImageLogits:
        """The logits of an image; `seed` is for a random model. Raises CleansetError if one is not finite."""
        network = self._network
        with arithmetic(network.precision), torch.inference_mode(), globally_seeded(seed, network.device):
            # on the CPU: each GPU draws other numbers
            network.reseed(seed, CPU)
            found = np.asarray(network(to_unit([image], network))[0].double().cpu().numpy())
        if not np.isfinite(found).all():
            raise not_finite("an attacked image")
        return found

    def verdict(
        self,
        subject: Subject,
        result: Result,
        before: ImageLogits,
        file: Begun,
        seed: int = 0,
    ) -> dict[str, Any]:
        """The verdict on a candidate, by the PNG that holds it, as columns of SHARD; logits are in float64.

        `before` are the logits of the image; `file` is the candidate's, which may be made meanwhile; `seed` is for a
        random model. Raises CleansetError as `candidate_file` does.
        """
        after = self.logits(result.candidate, seed)
        lpips = None if self.lpips is None else self.lpips(subject.pixels, result.candidate)
        written = file()
        return {
            "content": written.png,
            "png_sha256": written.sha256,
            "seed": result.seed,
            "queries": result.queries,
            "logits_before": before,
            "logits_after": after,
            "was_correct": int(before.argmax()) == subject.class_index,
            "is_error": int(after.argmax()) != subject.class_index,
            **written.distances,
            "lpips": lpips,
            "from_center": written.from_center,
            "notices": list(result.notices),
            "broken_at": result.broken_at,
            "is_converged": result.is_converged,
        }


def unwritten(subject: Subject, result: Result, ball: Ball | None) -> Unwritten:
    """A candidate for an image, found by an attack in a ball around the image or another center."""
    center = subject.pixels if result.center is None else result.center
    return Unwritten(name=subject.name, image=subject.pixels, candidate=result.candidate, center=center, ball=ball)


MIN_LPIPS_SIDE = 31
"""Pixels; AlexNet has nothing left of a smaller image."""


class Lpips:
    """LPIPS with AlexNet, in float64 on one device; 0 for equal images.

    `weights`: torchvision's of AlexNet (alexnet-owt-7be5be79.pth), or the same as safetensors. Raises CleansetError
    without such a file.
    """

    def __init__(self, weights: Path, device: torch.device) -> None:
        if not weights.is_file():
            raise CleansetError(
                f"lpips: {weights} not found; expected AlexNet's weights as torchvision publishes them "
                "(alexnet-owt-7be5be79.pth): put them there, or set lpips: null in studies/attacks/params.yaml"
            )
        import lpips
        from torchvision.models import alexnet

        network = alexnet(weights=None)
        load_checkpoint(network, weights, None)
        # torchvision warns about how the library calls it
        with warnings.catch_warnings(action="ignore"):
            # pnet_rand: random weights in place of a download; they are replaced below
            metric: nn.Module = lpips.LPIPS(net="alex", version="0.1", pnet_rand=True, verbose=False)
        slices = metric.net.named_parameters()  # type: ignore[union-attr]
        loaded = network.features.state_dict()
        with torch.no_grad():
            for name, parameter in slices:
                # lpips calls features.0.weight slice1.0.weight
                parameter.copy_(loaded[name.partition(".")[2]])
        self.weights_sha256 = sha256(weights.read_bytes())
        self._device = device
        self._metric = metric.eval().to(device, torch.float64)

    def __call__(self, image: PixelPlanes, other: PixelPlanes) -> float:
        """The distance of two images, uint8 of shape (3, size, size). Raises CleansetError for a smaller one."""
        if min(image.shape[1:]) < MIN_LPIPS_SIDE:
            raise CleansetError(
                f"lpips: an image of {image.shape[2]} x {image.shape[1]} pixels; expected at least {MIN_LPIPS_SIDE} "
                "a side, as AlexNet needs: set lpips: null in studies/attacks/params.yaml"
            )
        pair = to_device(torch.from_numpy(np.stack((image, other))), self._device).double() / LEVELS
        with arithmetic("float64"), torch.inference_mode():
            # normalize: the library expects pixels in -1..1, these are in 0..1
            return float(self._metric(pair[:1], pair[1:], normalize=True))


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


MAX_NAMED_STEPS = 12
"""Steps that an error names at most."""


class StraightThrough(nn.Module):
    """A step of a network, computed as it is, with the derivative of the identity."""

    def __init__(self, name: str, step: nn.Module) -> None:
        super().__init__()
        self.name = name
        self.step = step

    def forward(self, pixels: Tensor) -> Tensor:
        """The result of the step. Raises CleansetError if its shape differs from the input's."""
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

    A name comes from `named_modules()`, such as `quantize` or `steps.0`. Raises CleansetError for another.
    """
    if not names:
        return network
    found = copy.deepcopy(network)
    # a network of a module is in a wrapper, of which its author knows nothing
    inner = found.network if isinstance(found, CheckedNetwork) else found
    known = [name for name, _ in inner.named_modules() if name]
    for name in names:
        if name not in known:
            some = ", ".join(known[:MAX_NAMED_STEPS]) + (", …" if len(known) > MAX_NAMED_STEPS else "")
            raise CleansetError(f"straight through {shown(name)}: no such step of the network; expected some of {some}")
        parent, _, last = name.rpartition(".")
        setattr(inner.get_submodule(parent), last, StraightThrough(name, inner.get_submodule(name)))
    return found


@dataclass(frozen=True)
class AttackedModel:
    """A model, the images that it is attacked on, its judge, and how searches compute it."""

    name: str
    """A role of the edition, or the name of a further or a wrapped model."""

    model: LoadedModel
    """The model under attack, with its wrapper if it is a wrapped one."""

    images: pd.DataFrame
    """Rows of STUDY_IMAGES: the images that it may be attacked on."""

    files: Mapping[str, StudyFile]
    """Where each image lies, by file."""

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
    """The groups that it tells apart; None where it has all classes."""

    searched: nn.Module | None = None
    """The network that searches ask, where it is another than the model's."""

    has_scores: bool = False
    """Whether the edition stores its scores."""

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

    def sources(self, models: Mapping[str, LoadedModel]) -> dict[str, PixelNetwork]:
        """Other models as networks on the pixels that this one sees, with its groups if it has any."""
        groups = None if self.groups is None else self.groups.classes
        return {name: source_network(model, groups, self.how) for name, model in models.items()}

    def subject(self, file: str) -> Subject:
        """An image as it is attacked; its class is the model's, a group where it has groups."""
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


def lpips_of(folder: Path, settings: AttackParams, device: torch.device) -> Lpips | None:
    """LPIPS with the weights that the params name, relative to a folder; None without weights."""
    return None if settings.lpips is None else Lpips(folder / settings.lpips, device)


def open_target(
    study: AttackStudy, params: AllParams, name: str, *, is_measured: bool = False, device: Device | None = None
) -> AttackedModel:
    """A model of a study and its images; verdicts include the LPIPS of the params if it `is_measured`.

    `device`: None for the first one of the edition's params.
    Raises CleansetError for a name that no model of the study has, and where no image is of a class of the model's
    groups.
    """
    further = params.robustness.further_models
    settings = settings_for(params.edition.score)
    if device is not None:
        settings = replace(settings, devices=[device])
    check_known("model", name, params.attacks.models(params.edition.models, further))
    around = params.attacks.wrapped.get(name)
    role, groups = (name, None) if around is None else (around.model, around.two_groups(params.classes))
    if role in further:
        listed = ListedModel(role, further[role], study.robustness.folder, study.edition.folder)
        model = load_further(listed, settings, params.classes).loaded
    else:
        model = load_member(params.edition.network(role), study.edition.folder, params.classes)
    images = images_for(
        read_table(study.robustness.images, STUDY_IMAGES, params.classes),
        params.robustness.images,
        role,
        params.robustness.classes_of(role, params.classes),
    )
    if groups is not None:
        of_a_group = [groups.group_of(index) is not None for index in images["class_index"].tolist()]
        if not any(of_a_group):
            raise CleansetError(
                f"wrapped.{name}.groups: none of the study's {len(images)} images is of one of their classes; "
                "expected at least one: name classes of the edition"
            )
        images = images[of_a_group].reset_index(drop=True)
    if around is not None:
        members = None if groups is None else groups.classes
        model = replace(model, network=wrap_network(model.network, members, around.wrapper is not None))
    how = Searching(settings.devices[0].torch, params.attacks.search_precision, settings.batch_size)
    judge = Judge(model, how.device, lpips_of(study.folder, params.attacks, how.device) if is_measured else None)
    return AttackedModel(
        name=name,
        model=model,
        images=images,
        files=files_of(study.edition, images),
        classes=params.classes,
        judge=judge,
        how=how,
        seed=params.attacks.seed,
        wrapped=around,
        groups=groups,
        has_scores=around is None and role not in further,
    )


def other_models(study: AttackStudy, params: AllParams, name: str) -> dict[str, LoadedModel]:
    """The models of the edition but the one of a name, by role; lists have no network."""
    models = {role: model for role, model in params.edition.models.items() if role != name and not model.is_list}
    return {role: load_member(model, study.edition.folder, params.classes) for role, model in models.items()}


def scores_check(study: AttackStudy, params: Params, target: AttackedModel) -> Callable[[Sequence[str]], None]:
    """The check that images of a target, by file, get the stored scores of the edition's model, bit for bit.

    It raises CleansetError where they do not. A further or a wrapped model, or scores below float64, cannot be
    compared.
    """
    if not target.has_scores or params.score.precision != "float64":
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


def guess_of(study: Study, params: StudyParams, target: AttackedModel) -> Callable[[Subject], PixelPlanes]:
    """The most confident known mistake of an image's class, by the stored predictions of a study, made again."""
    families = [family_named(name) for name in GUESSED]
    stored = (
        read_table(study.answers.predictions(each.name, target.name), ANSWER_TABLES[each.name], target.classes)
        for each in families
    )
    mistakes = most_confident_mistakes(target.images, pd.concat(map(with_step, stored, families)))
    # a changed image is square already: it is resized, never cropped
    whole = Resized(target.model.preprocessing.size)

    @cache
    def changed(family: str) -> ChangedImages:
        return change_plan(family_named(family), Sources.read(study, target.classes), params).changed_images(
            target.files, params
        )

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
