"""Load a model: its weights, its preprocessing by name, and the normalisation inside.

A model comes from timm, by name and tag, from RobustBench's ImageNet zoo, or from torchvision, by name and weights,
such as alexnet.IMAGENET1K_V1. torchvision publishes transforms with its weights, which decide preprocessing and
normalisation. Weights are downloaded once or read from a local file.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import timm
import torch
import torchvision
from torch import Tensor, nn
from torchvision import models

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.params import Model
from cleanset.errors import CleansetError, UnreachableError
from cleanset.images.preprocessing import ROBUSTBENCH, ResizeAndCrop, timm_preprocessing, torchvision_preprocessing
from cleanset.plumbing.files import read_text, sha256_of
from cleanset.plumbing.validation import check_known
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.downloads import Drive, Hub, Web, digest_file, fetch, what_instead_of_weights

# networks whose weights come from TensorFlow, and expect another normalisation, which they do inside
_PORTED = ("googlenet", "inception_v3")
# torchvision's name of RobustBench's Standard_R50
_STANDARD = "resnet50.IMAGENET1K_V1"
_URL_DIGEST = re.compile(r"-([0-9a-f]{8,64})\.pth$")


def published_weights(name: str) -> "models.WeightsEnum":
    """torchvision's entry of published weights, of the type WeightsEnum, for NAME.WEIGHTS.

    Raises CleansetError unless these are weights of a classifier of ImageNet's 1,000 classes.
    """
    architecture, _, weights = name.partition(".")
    known = models.list_models(module=models)  # the classifiers for images
    where = f"torchvision {torchvision.__version__.partition('+')[0]}"
    if architecture not in known:
        nearest = _nearest(architecture, known)
        raise CleansetError(f"params.yaml: {name!r}: no classifier of {where}; expected NAME.WEIGHTS, of {nearest}")
    entries = models.get_model_weights(architecture)
    usable = [each.name for each in entries if len(each.meta.get("categories") or ()) == CLASSES]
    if weights not in usable:
        wanted = ", ".join(f"{architecture}.{each}" for each in usable)
        raise CleansetError(f"params.yaml: {name!r}: no classifier's weights of {where}; expected one of {wanted}")
    return entries[weights]


def _nearest(name: str, known: Collection[str]) -> str:
    """The five known names that are most like a name."""
    return ", ".join(get_close_matches(name, known, n=5, cutoff=0))


def normalisation_of(model: Model) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel; RobustBench's networks normalise inside, and so take pixels / 255.

    Raises CleansetError for a name that its library does not know.
    """
    if model.source == "robustbench":
        return (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    of = published_weights(model.name).transforms() if model.source == "torchvision" else _timm_config(model)
    return tuple(of.mean), tuple(of.std)


def network_of(name: str) -> nn.Module:
    """The network of NAME.WEIGHTS without its weights, as torchvision builds it for these.

    Raises CleansetError as `published_weights` does.
    """
    weights = published_weights(name)
    architecture = name.partition(".")[0]
    options: dict[str, object] = {}  # what torchvision's builders choose when they load published weights
    if architecture.startswith("vit_"):
        options = {"image_size": weights.meta["min_size"][0]}
    elif architecture in _PORTED:
        options = {"transform_input": True, "init_weights": False}
    network: nn.Module = models.get_model(architecture, weights=None, **options)
    return network


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A network with its weights, and the preprocessing that belongs to it."""

    network: nn.Module
    """Maps pixels in [0, 1], shape (n, 3, size, size), to logits of shape (n, classes)."""

    preprocessing: ResizeAndCrop
    weights_sha256: str
    classes: int
    """Number of classes of the images; a logit is expected for each."""

    code: str = ""
    """Fingerprint of the code of a custom model (see `scoring.fingerprints`); empty for a network of a zoo, whose
    library's version is known."""

    order_is_stated: bool = False
    """Whether the callable of a custom model states the order of its outputs, and is believed."""


class Normalise(nn.Module):
    """(x - mean) / std for each of the three channels."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float64).reshape(1, -1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Normalised pixels, in the precision of `pixels`."""
        return (pixels - self.mean.to(pixels.dtype)) / self.std.to(pixels.dtype)


def load_model(model: Model, folder: Path) -> LoadedModel:
    """Build a model and load its weights; `folder` is the edition's, downloads go to data/weights in it.

    Raises CleansetError if the weights are missing, differ from the SHA-256 in params.yaml, are not
    plain tensors, or do not fit the model key by key.
    """
    preprocessing = preprocessing_of(model)
    network = _network(model)
    path = weights_at_hand(model, folder)
    if model.weights is not None and model.sha256 is None:
        raise CleansetError(
            f"params.yaml: weights {model.weights} of {model.name} without sha256, so that changes would go unnoticed: "
            "run cleanset models --pin"
        )
    found = sha256_of(path)
    pinned = model.sha256
    where = "params.yaml"
    downloaded = digest_file(path)
    if pinned is None and model.weights is None and downloaded.is_file():
        pinned = read_text(downloaded, "remove it").partition(" ")[0]
        where = downloaded.name
    if pinned not in (None, found):
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {pinned} as in {where}: fetch the weights again, or correct {where} if "
            "these are meant"
        )
    load_checkpoint(network, path, _timm_architecture(model, network))
    return LoadedModel(network.eval().requires_grad_(False), preprocessing, found, classes=CLASSES)


def preprocessing_of(model: Model) -> ResizeAndCrop:
    """The preprocessing that belongs to a model; builds no network.

    Raises CleansetError if timm, torchvision or RobustBench lacks such a model, or it cannot be used here.
    """
    try:
        if model.source == "robustbench":
            return _robustbench_entry(model).preprocessing
        if model.source == "torchvision":
            transforms = published_weights(model.name).transforms()
            (size,) = transforms.crop_size
            (resize,) = transforms.resize_size
            return torchvision_preprocessing(resize, size, transforms.interpolation.value)
        return _preprocessing_of_timm(_timm_config(model))
    except ValueError as error:
        raise CleansetError(f"{model.name}: {error}") from None


def _preprocessing_of_timm(of: "timm.models.PretrainedCfg") -> ResizeAndCrop:
    """The preprocessing in timm's configuration of a model. Raises ValueError as `timm_preprocessing` does."""
    config = timm.data.resolve_data_config({}, pretrained_cfg=of.to_dict())
    return timm_preprocessing(
        config["input_size"][-1], config["crop_pct"], config["interpolation"], config["crop_mode"]
    )


def weights_path(model: Model, folder: Path) -> Path:
    """The path of a model's weights, downloaded or not, in an edition's folder."""
    if model.weights is not None:
        return folder / model.weights
    if model.source == "module":
        return folder / f"{model.name.partition(':')[0].replace('.', '/')}.py"
    weights = folder / "data" / "weights"
    if model.source == "timm":
        return weights / "timm" / model.name / "model.safetensors"
    if model.source == "torchvision":
        return weights / "torchvision" / f"{model.name}.pth"
    return weights / "imagenet" / str(model.threat_model) / f"{model.name}.pt"  # where RobustBench looks


def is_at_hand(model: Model, folder: Path) -> bool:
    """Whether a model's weights are there already; nothing is downloaded."""
    return weights_path(model, folder).is_file()


def weights_at_hand(model: Model, folder: Path) -> Path:
    """The path of a model's weights, downloaded if they are not there yet.

    Raises CleansetError if they are missing, cannot be downloaded, or if the file does not hold weights.
    """
    path = weights_path(model, folder)
    if model.weights is not None:
        if not path.is_file():
            raise CleansetError(f"{path}: missing; expected the weights of {model.name} (params.yaml)")
    elif not path.is_file():
        _download(model, path)
    if (other := what_instead_of_weights(path)) is not None:
        if model.weights is not None:
            raise CleansetError(f"{path}: {other}, not weights: remove it; expected the weights of {model.name}")
        path.unlink()
        raise CleansetError(f"{path}: {other}, not weights: removed; run again to download the weights of {model.name}")
    return path


def _download(model: Model, path: Path) -> None:
    origin = _origin(model)
    try:
        if origin is None:
            raise ValueError(f"{model.source} has no address")
        fetch(origin, path)
    except ValueError as error:
        by_hand = f"save {origin.url} under that name" if origin else "put a file there"
        raise UnreachableError(
            f"{path}: cannot be downloaded ({error}); run again, or {by_hand}, "
            f"or name a file with the weights of {model.name} in params.yaml (weights and sha256)"
        ) from None


def _origin(model: Model) -> Hub | Drive | Web | None:
    """Where a zoo keeps a model's weights; None if it names no address."""
    if model.source == "torchvision":
        return _web_origin(model.name)
    if model.source == "robustbench":
        return _robustbench_entry(model).origin
    config = _timm_config(model)
    return Hub(config.hf_hub_id, config.hf_hub_filename or "model.safetensors") if config.hf_hub_id else None


def _web_origin(name: str) -> Web:
    """Where torchvision keeps the weights of NAME.WEIGHTS."""
    url = str(published_weights(name).url)
    digest = _URL_DIGEST.search(url)
    return Web(url, digest[1] if digest else "")


def _timm_config(model: Model) -> "timm.models.PretrainedCfg":
    """timm's configuration of a pretrained model."""
    expected = f"expected a model name of timm {timm.__version__}"
    if ":" in model.name:  # hf-hub:… would read a configuration from elsewhere
        raise CleansetError(f"params.yaml: {model.name!r}; {expected}")
    try:
        config = timm.get_pretrained_cfg(model.name, allow_unregistered=False)
    except RuntimeError as error:
        raise CleansetError(f"params.yaml: {model.name!r}: {str(error).rstrip('.')}; {expected}") from None
    if config.num_classes != CLASSES:
        raise CleansetError(f"{model.name}: {config.num_classes} classes; expected {CLASSES}, as in ImageNet-1k")
    return config


def _network(model: Model) -> nn.Module:
    """The network of a model without its weights, from pixels in [0, 1] to logits."""
    if model.source == "robustbench":
        return _robustbench_entry(model).build()
    normalise = Normalise(*normalisation_of(model))
    if model.source == "torchvision":
        return nn.Sequential(normalise, network_of(model.name))
    return nn.Sequential(normalise, timm.create_model(model.name, pretrained=False))


def _timm_architecture(model: Model, network: nn.Module) -> str | None:
    """timm's name of a network of timm, also where it is a part of RobustBench's; None for another network."""
    if model.source == "timm":
        return model.name
    config = getattr(getattr(network, "model", None), "pretrained_cfg", None) if model.source == "robustbench" else None
    return config.get("architecture") if config else None


@dataclass(frozen=True, slots=True)
class _RobustbenchEntry:
    """A model of RobustBench's ImageNet zoo: its network without weights, preprocessing, and where its weights are."""

    build: Callable[[], nn.Module]
    preprocessing: ResizeAndCrop
    origin: Drive | Web


def robustbench_zoo() -> dict[str, dict[str, Any]]:
    """The entries of RobustBench's ImageNet zoo by threat model and name."""
    import pyautoattack

    # robustbench 1.1.1 imports autoattack, but depends on its renamed release
    sys.modules.setdefault("autoattack", pyautoattack)
    sys.modules.setdefault("autoattack.state", pyautoattack.state)
    with warnings.catch_warnings(action="ignore"), _without_home():
        from robustbench.model_zoo.imagenet import imagenet_models

    return {threat.value: dict(entries) for threat, entries in imagenet_models.items()}


def served_models(threat: str | None) -> list[str]:
    """The models of RobustBench that commands take, by name, of one threat model or of all.

    Raises CleansetError for an unknown threat model.
    """
    zoo = robustbench_zoo()
    if threat is not None:
        check_known("threat model", threat, zoo)
    return [
        f"robustbench:{of}/{name}"
        for of, entries in zoo.items()
        for name, entry in entries.items()
        if threat in (None, of) and not isinstance(entry["gdrive_id"], list)
    ]


def _robustbench_entry(model: Model) -> _RobustbenchEntry:
    """The entry of a model in RobustBench's ImageNet zoo, with what its `load_model` does for special ones.

    Raises CleansetError for a model that is not there, or is not read from one file.
    """
    zoo = robustbench_zoo().get(str(model.threat_model), {})
    served = [name for name, entry in zoo.items() if not isinstance(entry["gdrive_id"], list)]
    if model.name in zoo and model.name not in served:
        raise CleansetError(
            f"params.yaml: {model.name!r}: RobustBench mixes two networks, whose weights are in two files; expected a "
            "model with one: load it in a module of your own, ROLE=module:MODULE:CALLABLE"
        )
    if model.name not in zoo:
        nearest = _nearest(model.name, served) or "another threat_model"
        raise CleansetError(
            f"params.yaml: {model.name!r} is not in RobustBench's ImageNet zoo for {model.threat_model}; expected one "
            f"of {nearest}: cleanset models --robustbench lists all"
        )
    entry = zoo[model.name]
    if entry["gdrive_id"]:
        return _RobustbenchEntry(entry["model"], ROBUSTBENCH[entry["preprocessing"]], Drive(entry["gdrive_id"]))
    if model.name == "Standard_R50":
        like = Model(source="torchvision", name=_STANDARD)
        return _RobustbenchEntry(lambda: _network(like), ROBUSTBENCH[entry["preprocessing"]], _web_origin(_STANDARD))
    name = f"{model.name}_imagenet_{model.threat_model}".lower().replace("-", "_")  # registered with timm
    config = timm.get_pretrained_cfg(name)
    return _RobustbenchEntry(lambda: timm.create_model(name), _preprocessing_of_timm(config), Web(config.url))


@contextmanager
def _without_home() -> Iterator[None]:
    """Hide the home folder, because gdown, which robustbench imports, makes a cache in it on import."""
    home = os.environ.get("HOME")
    os.environ["HOME"] = os.devnull
    try:
        yield
    finally:
        if home is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = home
