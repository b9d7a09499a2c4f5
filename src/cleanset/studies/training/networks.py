"""Networks of timm and torchvision by name, with any number of classes, from pixels in 0..1 to logits."""

from pathlib import Path
from typing import Any

import timm
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torchvision import models as torchvision_models

from cleanset.edition.params import Model
from cleanset.errors import CleansetError, reason
from cleanset.files import replacing
from cleanset.images.preprocessing import ResizeAndCrop, timm_preprocessing
from cleanset.scoring.models import Normalise, weights_at_hand
from cleanset.scoring.weight_files import read_tensors
from cleanset.studies.training.params import Network
from cleanset.validation import shown

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's mean and standard deviation of each channel, in 0..1: torchvision's, and that of most of timm's."""
CROP_SHARE = 0.875
"""Share of the short side that the central square keeps."""


def preprocessing(size: int) -> ResizeAndCrop:
    """The preprocessing of every network that is trained here: the central CROP_SHARE of the short side, bilinear."""
    return timm_preprocessing(size, CROP_SHARE, "bilinear", "center")


def build_network(wanted: Network, classes: int, size: int, folder: Path, seed: int) -> nn.Module:
    """A network from pixels in 0..1, of shape (n, 3, size, size), to logits (n, classes).

    New weights are drawn from `seed`; published ones are downloaded to the edition in `folder`, and their classifier
    is replaced by a new one where they have other classes. Raises CleansetError for a network that the library does
    not have, that takes no images of that size, and whose weights are missing.
    """
    if wanted.source == "smp":
        raise CleansetError(f"{wanted.name}: a network of smp segments; expected one of timm or torchvision")
    # new weights are the same whatever was drawn before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        build = _timm_network if wanted.source == "timm" else _torchvision_network
        network = nn.Sequential(Normalise(*_normalisation(wanted)), build(wanted, classes, size, folder))
    _check_size(network, wanted.name, classes, size)
    return network


def _normalisation(wanted: Network) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if wanted.source == "torchvision":
        return MEAN, STD
    config: Any = timm.get_pretrained_cfg(wanted.name, allow_unregistered=False) if _is_of_timm(wanted.name) else None
    return (MEAN, STD) if config is None else (config.mean, config.std)


def _is_of_timm(name: str) -> bool:
    return ":" not in name and timm.is_model(name.partition(".")[0])


def _timm_network(wanted: Network, classes: int, size: int, folder: Path) -> nn.Module:
    if not _is_of_timm(wanted.name):
        raise CleansetError(f"{shown(wanted.name)}: expected a network's name of timm {timm.__version__}")
    options: dict[str, Any] = {"num_classes": classes}
    if wanted.pretrained:
        path = weights_at_hand(Model(source="timm", name=wanted.name), folder)
        options |= {"pretrained": True, "pretrained_cfg_overlay": {"file": str(path)}}
    try:
        return _with_size(wanted.name, options, size)
    except Exception as error:  # timm raises whatever its builders run into
        raise CleansetError(f"{wanted.name}: cannot be built ({reason(error)}); expected another network") from None


def _with_size(name: str, options: dict[str, Any], size: int) -> nn.Module:
    """The network for images of a size, which transformers want to be told."""
    try:
        network: nn.Module = timm.create_model(name, **options, img_size=size)
    except TypeError:
        network = timm.create_model(name, **options)
    return network


def _torchvision_network(wanted: Network, classes: int, size: int, folder: Path) -> nn.Module:
    name, _, weights = wanted.name.partition(".")
    if name not in torchvision_models.list_models(module=torchvision_models):
        raise CleansetError(f"{shown(wanted.name)}: expected a classifier's name of torchvision")
    # the second head of these two is trained by their authors alone
    options: dict[str, Any] = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    if "aux_logits" not in options and options:
        options["aux_logits"] = False
    network: nn.Module = torchvision_models.get_model(name, weights=None, num_classes=classes, **options)
    if wanted.pretrained:
        if not weights:
            raise CleansetError(f"{wanted.name}: pretrained without weights; expected NAME.WEIGHTS")
        path = weights_at_hand(Model(source="torchvision", name=wanted.name), folder)
        _load_fitting(network, read_tensors(path))
    return network


def _load_fitting(network: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load all tensors but those of a classifier with other classes."""
    wanted = network.state_dict()
    network.load_state_dict(
        {**wanted, **{k: v for k, v in tensors.items() if k in wanted and v.shape == wanted[k].shape}}
    )


def _check_size(network: nn.Module, name: str, classes: int, size: int) -> None:
    """Raise CleansetError unless the network gives a logit for each class of an image of that size."""
    was_training = network.training
    try:
        with torch.no_grad():
            shape = tuple(network.eval()(torch.zeros(1, 3, size, size)).shape)
    except Exception as error:  # a network raises whatever the size leads it to
        raise CleansetError(
            f"{name}: takes no images of {size} x {size} ({reason(error)}); expected its own size: set size"
        ) from None
    finally:
        network.train(was_training)
    if shape != (1, classes):
        raise CleansetError(f"{name}: gives {shape[1:]} numbers an image; expected {classes} logits")


def millions_of_parameters(network: nn.Module) -> float:
    """The number of parameters in millions, of six decimals."""
    return round(sum(each.numel() for each in network.parameters()) / 1e6, 6)


def write_weights(path: Path, weights: dict[str, Tensor], inner_name: str = "1") -> None:
    """Write the network behind the normalisation, under its library's own names, as safetensors.

    `inner_name`: of the module that is that network.
    """
    prefix = f"{inner_name}."
    inner = {name.removeprefix(prefix): each.contiguous() for name, each in weights.items() if name.startswith(prefix)}
    content = save(dict(sorted(inner.items())))
    with replacing(path) as partial:
        partial.write_bytes(content)
