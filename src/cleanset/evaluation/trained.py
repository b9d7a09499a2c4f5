"""Trained networks of timm and torchvision, with any number of classes and any image size.

studies/training builds its networks here, and `evaluation.models` loads trained ones.
"""

from collections.abc import Sequence
from pathlib import Path

import timm
import torch
from torch import Tensor, nn
from torchvision import models as torchvision_models

from cleanset.classes import ClassTable
from cleanset.edition.params import Model
from cleanset.errors import CleansetError, reason
from cleanset.evaluation.specs import TrainedModel
from cleanset.images.preprocessing import ResizeAndCrop, timm_preprocessing
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.validation import shown
from cleanset.scoring.checkpoints import load_checkpoint, read_tensors
from cleanset.scoring.models import LoadedModel, Normalise, preprocessing_of, weights_at_hand

MEAN = (0.485, 0.456, 0.406)
"""ImageNet's mean of each channel, in 0..1: torchvision's, and most of timm's."""

STD = (0.229, 0.224, 0.225)
"""ImageNet's standard deviation of each channel, in 0..1: torchvision's, and most of timm's."""

CROP_SHARE = 0.875
"""Share of the short side that the central square keeps."""
NOT_A_CLASS = -1e4
"""The logit of a class that a model does not have: its probability is 0, and every number stays finite."""


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
    network = normalised(entry.source, entry.name, len(places) or len(classes), preprocessing_of_entry(entry).size)
    load_checkpoint(network, path, None)
    if places:
        network = OnClasses(network, places, len(classes))
    return LoadedModel(network.eval().requires_grad_(False), preprocessing_of_entry(entry), found, classes=len(classes))


def preprocessing_of_entry(entry: Model) -> ResizeAndCrop:
    """The preprocessing of a model of a zoo, or of one that was trained at another size; builds no network."""
    size = entry.size if isinstance(entry, TrainedModel) else None
    return preprocessing_of(entry) if size is None else trained_preprocessing(size)


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
        # their second classifiers are not scored
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
