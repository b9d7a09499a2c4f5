"""Networks to be trained: built for the classes and the size of a run, and their weights written."""

from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from cleanset.edition.params import Model
from cleanset.errors import CleansetError, reason
from cleanset.files import replacing
from cleanset.scoring.models import weights_at_hand
from cleanset.studies.robustness.trained_models import normalised
from cleanset.studies.training.params import Network


def build_network(wanted: Network, classes: int, size: int, folder: Path, seed: int) -> nn.Module:
    """A network from pixels in 0..1, of shape (n, 3, size, size), to logits (n, classes).

    New weights are drawn from `seed`; published ones are downloaded to the edition in `folder`, and their classifier
    is replaced by a new one where they have other classes. Raises CleansetError for a network that the library does
    not have, that takes no images of that size, and whose weights are missing.
    """
    if wanted.source == "smp":
        raise CleansetError(f"smp:{wanted.name}: it segments; expected a network of timm or torchvision")
    weights = None
    if wanted.pretrained:
        if wanted.source == "torchvision" and "." not in wanted.name:
            raise CleansetError(f"torchvision:{wanted.name}: pretrained without weights; expected NAME.WEIGHTS")
        weights = weights_at_hand(Model(source=wanted.source, name=wanted.name), folder)
    # new weights are the same whatever was drawn before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = normalised(wanted.source, wanted.name, classes, size, weights)
    _check_size(network, wanted.name, classes, size)
    return network


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
