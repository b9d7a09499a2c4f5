"""Trained networks of timm and torchvision, with any number of classes and any image size, and further models.

studies/training builds its networks here, and the studies load trained ones. Further models of a study of
robustness are listed for `cleanset models`, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import timm
import torch
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn
from torchvision import models as torchvision_models

from cleanset.classes import ClassTable
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, reason
from cleanset.images.preprocessing import Preprocessing, ResizeAndCrop, timm_preprocessing
from cleanset.measure.run import NamedModel, load
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.validation import shown
from cleanset.scoring.checked_network import CheckedNetwork
from cleanset.scoring.checkpoints import load_checkpoint, read_tensors
from cleanset.scoring.engine import Settings
from cleanset.scoring.ensemble import lines_table
from cleanset.scoring.models import LoadedModel, Normalise, preprocessing_of, weights_at_hand, weights_path
from cleanset.studies.robustness.families import OpenedStudy
from cleanset.studies.robustness.images import Study
from cleanset.studies.robustness.params import FurtherModel, ListedModel, TrainedModel

MEAN = (0.485, 0.456, 0.406)
"""ImageNet's mean of each channel, in 0..1: torchvision's, and most of timm's."""

STD = (0.229, 0.224, 0.225)
"""ImageNet's standard deviation of each channel, in 0..1: torchvision's, and most of timm's."""

CROP_SHARE = 0.875
"""Share of the short side that the central square keeps."""
NOT_A_CLASS = -1e4
"""The logit of a class that a model does not have: its probability is 0, and every number stays finite."""


def load_further(listed: ListedModel, settings: Settings, classes: ClassTable) -> NamedModel:
    """Load a model of `further_models`, with logits for all `classes`.

    Raises CleansetError as `measure.run.load` does, and for weights of other classes than the entry's.
    """
    entry = listed.entry
    if isinstance(entry, str) or not entry.is_of_training:
        return load(listed.spec, settings, classes)
    loaded = load_trained(entry, listed.edition, classes)
    loaded = replace(loaded, network=CheckedNetwork(listed.role, loaded.network, len(classes)))
    identity = f"{entry.source} {entry.name} {entry.size} {' '.join(entry.classes or [])}"
    return NamedModel(listed.role, loaded, identity)


def further_preprocessing(listed: ListedModel, settings: Settings, classes: ClassTable) -> Preprocessing:
    """The preprocessing of a model of `further_models`; a module's callable is called for it."""
    if isinstance(listed.entry, str):
        return load(listed.spec, settings, classes).loaded.preprocessing
    return _preprocessing(listed.entry)


def load_trained(entry: TrainedModel, edition: Path, classes: ClassTable) -> LoadedModel:
    """The network of an entry with its weights, and logits for all `classes`; `edition`: the folder.

    Raises CleansetError if the weights are missing, have another SHA-256, or do not fit the network and its classes.
    """
    path = weights_at_hand(entry, edition)
    if (found := sha256_of(path)) != entry.sha256:
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {entry.sha256} as in params.yaml: restore the weights, or correct it"
        )
    places = [classes.indices[key] for key in entry.classes or []]
    network = normalised(entry.source, entry.name, len(places) or len(classes), _preprocessing(entry).size)
    load_checkpoint(network, path, None)
    if places:
        network = OnClasses(network, places, len(classes))
    return LoadedModel(network.eval().requires_grad_(False), _preprocessing(entry), found, classes=len(classes))


def _preprocessing(entry: TrainedModel) -> ResizeAndCrop:
    return trained_preprocessing(entry.size) if entry.size is not None else preprocessing_of(entry)


def trained_preprocessing(size: int) -> ResizeAndCrop:
    """The preprocessing of every network of studies/training: the central CROP_SHARE of the short side, bilinear."""
    return timm_preprocessing(size, CROP_SHARE, "bilinear", "center")


class OnClasses(nn.Module):
    """A network of some classes as one of all; `places` has the class index of each of its logits."""

    places: Tensor

    def __init__(self, network: nn.Module, places: Sequence[int], all_classes: int) -> None:
        super().__init__()
        self.network = network
        self.all_classes = all_classes
        self.register_buffer("places", torch.tensor(list(places)), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, all_classes), NOT_A_CLASS for the others; gradients flow through."""
        logits = self.network(pixels)
        others = logits.new_full((len(logits), self.all_classes), NOT_A_CLASS)
        found: Tensor = others.scatter(1, self.places.expand(len(logits), -1), logits)
        return found


def normalised(source: str, name: str, classes: int, size: int, weights: Path | None = None) -> nn.Module:
    """A network of timm or torchvision from pixels in 0..1 to logits (n, classes), behind its normalisation.

    `weights`: a file of its published weights, whose classifier is replaced by a new one for other classes; without it
    all are new, drawn from torch's global generator. Raises CleansetError for a name that the library does not have.
    """
    if source == "torchvision":
        return nn.Sequential(Normalise(MEAN, STD), _of_torchvision(name, classes, size, weights))
    if source != "timm" or ":" in name or not timm.is_model(name.partition(".")[0]):
        raise CleansetError(f"{source}:{shown(name)}: no such network; expected a name of timm {timm.__version__}")
    config = timm.get_pretrained_cfg(name)
    mean, std = (MEAN, STD) if config is None else (config.mean, config.std)
    return nn.Sequential(Normalise(mean, std), _of_timm(name, classes, size, weights))


def _of_timm(name: str, classes: int, size: int, weights: Path | None) -> nn.Module:
    options: dict[str, object] = {"num_classes": classes}
    if weights is not None:
        options |= {"pretrained": True, "pretrained_cfg_overlay": {"file": str(weights)}}
    try:
        try:
            # transformers want to know the size; others do not take it
            network: nn.Module = timm.create_model(name, **options, img_size=size)
        except TypeError:
            network = timm.create_model(name, **options)
    except Exception as error:  # timm raises whatever its builders run into
        raise CleansetError(
            f"timm:{name}: cannot be built for {classes} classes and images of {size} x {size} ({reason(error)}); "
            "choose another network or size"
        ) from None
    return network


def _of_torchvision(text: str, classes: int, size: int, weights: Path | None) -> nn.Module:
    name = text.partition(".")[0]
    if name not in torchvision_models.list_models(module=torchvision_models):
        raise CleansetError(f"torchvision:{shown(text)}: no such network; expected the name of a classifier")
    options: dict[str, object] = {}
    if name in ("googlenet", "inception_v3"):
        # their second classifiers are no part of what is scored
        options = {"aux_logits": False, "init_weights": weights is None}
    if name.startswith("vit_") and weights is None:
        options = {"image_size": size}
    network: nn.Module = torchvision_models.get_model(name, weights=None, num_classes=classes, **options)
    if weights is not None:
        wanted = network.state_dict()
        found = read_tensors(weights)
        fitting = {key: value for key, value in found.items() if key in wanted and value.shape == wanted[key].shape}
        network.load_state_dict(wanted | fitting)
    return network


@dataclass(frozen=True, slots=True)
class FurtherMember:
    """A model of `further_models`, as `cleanset models` lists it; of a custom model role and model alone are known."""

    role: str
    """Its name."""
    model: str
    """Source and name, or module:callable."""
    classes: int | None = None
    """The number of its classes; None: all."""
    preprocessing: str | None = None
    """The name of its preprocessing."""
    trained_on: tuple[str, ...] = ()
    """The corruptions that it was trained with."""
    weights: str | None = None
    """The file of its weights, relative to the edition's folder."""
    found: str | None = None
    """The SHA-256 of that file; None if it is missing."""
    pinned: str | None = None
    """The SHA-256 in params.yaml."""
    state: str | None = None
    """Whether the weights are there, missing, or of other bytes."""


def further_members(edition: Edition) -> list[FurtherMember]:
    """Every model of `further_models`, in their order; empty without a study of robustness."""
    study = Study(edition.folder / "studies" / "robustness")
    if not study.params_yaml.is_file():
        return []
    params = OpenedStudy.read(study).params
    return [_member(edition, role, entry) for role, entry in params.further_models.items()]


def _member(edition: Edition, role: str, entry: FurtherModel) -> FurtherMember:
    if isinstance(entry, str):
        return FurtherMember(role=role, model=entry)
    path = edition.folder / weights_path(entry, edition.folder)
    found = sha256_of(path) if path.is_file() else None
    return FurtherMember(
        role=role,
        model=" ".join(filter(None, (entry.source, entry.name, entry.threat_model))),
        classes=len(entry.classes) if entry.classes else None,
        preprocessing=_preprocessing(entry).name,
        trained_on=tuple(entry.trained_on),
        weights=path.relative_to(edition.folder).as_posix(),
        found=found,
        pinned=entry.sha256,
        state="missing" if found is None else "there" if entry.sha256 in (None, found) else "other bytes",
    )


def as_objects(listed: list[FurtherMember]) -> list[dict[str, object]]:
    """The models for programs; `study` distinguishes them from the ensemble."""
    return [{"study": "robustness", **asdict(member)} for member in listed]


def as_table(listed: list[FurtherMember]) -> Table:
    """The models for people, in the form of the ensemble's."""
    return lines_table([(), *map(_lines, listed)])


def _lines(member: FurtherMember) -> Iterator[tuple[str, Text]]:
    """Name and value of each line; as Text, since rich would take brackets in a path for markup."""
    yield "role", Text(member.role, "bold").append(" (further model of studies/robustness)", "not bold")
    yield "model", Text(member.model)
    if member.weights is None:
        return
    if member.classes is not None:
        yield "classes", Text(str(member.classes))
    yield "preprocessing", Text(member.preprocessing or "")
    if member.trained_on:
        yield "trained on", Text(", ".join(member.trained_on))
    yield "weights", Text(member.weights)
    yield "SHA-256", Text(member.found or "")
    yield "pinned", Text("the same" if member.found and member.found == member.pinned else member.pinned or "no")
    yield "state", Text(member.state or "", "green" if member.state == "there" else "red")
