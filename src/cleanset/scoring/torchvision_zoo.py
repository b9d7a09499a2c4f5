"""The classifiers of torchvision, each with one of its published weights: NAME.WEIGHTS, such as alexnet.IMAGENET1K_V1.

The weights decide preprocessing and normalisation: torchvision publishes its transforms beside them.
"""

import re
from typing import Any

import torchvision
from torch import nn
from torchvision import models

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.errors import CleansetError, cut
from cleanset.images.preprocessing import ResizeAndCrop, torchvision_preprocessing

MAX_LISTED = 200
"""Characters of the names that a message lists."""
_PORTED = ("googlenet", "inception_v3")
"""Networks whose weights come from TensorFlow, and expect another normalisation, which they do inside."""
_URL_DIGEST = re.compile(r"-([0-9a-f]{8,64})\.pth$")


def published_weights(name: str) -> Any:
    """torchvision's entry of published weights, of the type WeightsEnum, for NAME.WEIGHTS.

    Raises CleansetError if there are none, or if they are not of a classifier of ImageNet's 1,000 classes.
    """
    architecture, _, weights = name.partition(".")
    known = models.list_models(module=models)  # the classifiers for images
    where = f"torchvision {torchvision.__version__.partition('+')[0]}"
    if architecture not in known:
        listed = cut(", ".join(known), MAX_LISTED)
        raise CleansetError(f"params.yaml: {name!r}: no classifier of {where}; expected NAME.WEIGHTS, of {listed}")
    entries = models.get_model_weights(architecture)
    usable = [each.name for each in entries if len(each.meta.get("categories") or ()) == CLASSES]
    if weights not in usable:
        wanted = ", ".join(f"{architecture}.{each}" for each in usable)
        raise CleansetError(f"params.yaml: {name!r}: no classifier's weights of {where}; expected one of {wanted}")
    return entries[weights]


def preprocessing_of(name: str) -> ResizeAndCrop:
    """The preprocessing that torchvision publishes for NAME.WEIGHTS. Raises CleansetError as `published_weights`."""
    transforms = published_weights(name).transforms()
    (size,), (resize,) = transforms.crop_size, transforms.resize_size
    try:
        return torchvision_preprocessing(resize, size, transforms.interpolation.value)
    except ValueError as error:
        raise CleansetError(f"{name}: {error}") from None


def normalisation_of(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel. Raises CleansetError as `published_weights` does."""
    transforms = published_weights(name).transforms()
    return tuple(transforms.mean), tuple(transforms.std)


def network_of(name: str) -> nn.Module:
    """The network of NAME.WEIGHTS without its weights, as torchvision builds it for these.

    Raises CleansetError as `published_weights` does.
    """
    weights, architecture = published_weights(name), name.partition(".")[0]
    options: dict[str, Any] = {}  # what torchvision's builders choose when they load published weights
    if architecture.startswith("vit_"):
        options = {"image_size": weights.meta["min_size"][0]}
    elif architecture in _PORTED:
        options = {"transform_input": True, "init_weights": False}
    network: nn.Module = models.get_model(architecture, weights=None, **options)
    return network


def address_of(name: str) -> tuple[str, str | None]:
    """Where torchvision keeps the weights, and how their SHA-256 begins, which is in the name of the file."""
    url = str(published_weights(name).url)
    digest = _URL_DIGEST.search(url)
    return url, digest[1] if digest else None
