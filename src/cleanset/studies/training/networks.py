"""Classification networks: built with new or published weights, from a library or a module, and with trained ones."""

from pathlib import Path
from typing import cast

import torch
from torch import nn

from cleanset.classes import ClassTable
from cleanset.edition.params import Model
from cleanset.errors import CleansetError, raised
from cleanset.evaluation.specs import ModuleModel
from cleanset.evaluation.trained import OnClasses, normalised, trained_preprocessing
from cleanset.evaluation.user_model import returned_by
from cleanset.images.preprocessing import Resized
from cleanset.plumbing.validation import shown
from cleanset.scoring.checked_network import checked_logits
from cleanset.scoring.checkpoints import load_checkpoint
from cleanset.scoring.gate import MIN_ROUNDED_ROWS, NetworkGate, not_finite
from cleanset.scoring.models import weights_at_hand
from cleanset.studies.training.finished import network_of_record, record_of_weights
from cleanset.studies.training.run_params import Network

TRIED = MIN_ROUNDED_ROWS
"""Images of random pixels that a network is tried with."""


def build_network(
    wanted: Network, *, classes: int, size: int, edition: Path, seed: int, study: Path | None = None
) -> nn.Module:
    """A network from pixels in 0..1, of shape (n, 3, size, size), to logits (n, classes).

    New weights are drawn from `seed`; published ones are downloaded to the folder `edition`, and their classifier is
    replaced by a new one for other classes. The module of a custom network is looked for in the folder `study` first.
    Raises CleansetError for a network that the library does not have, that takes no images of that size, and whose
    weights are missing.
    """
    if wanted.source == "smp":
        raise CleansetError(f"smp:{wanted.name}: it segments; expected a network of timm or torchvision")
    if wanted.source == "module":
        network = _network_of_module(wanted.name, size, study, seed)
        _check_size(network, wanted.name, classes, size)
        return network
    weights = None
    if wanted.pretrained:
        if wanted.source == "torchvision" and "." not in wanted.name:
            raise CleansetError(f"torchvision:{wanted.name}: pretrained without weights; expected NAME.WEIGHTS")
        weights = weights_at_hand(Model(source=wanted.source, name=wanted.name), edition)
    # new weights are the same whatever was drawn before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = normalised(wanted.source, wanted.name, classes, size, weights=weights)
    if not wanted.normalised:
        network = nn.Sequential(nn.Identity(), cast(nn.Sequential, network)[1])
    _check_size(network, wanted.name, classes, size)
    return network


def trained_network(
    weights: Path, known: ClassTable, architecture: str | None = None
) -> tuple[nn.Module, str | Resized]:
    """The network of a finished fold with its weights, for all `known` classes, and its preprocessing.

    A network of a module runs its code, so that the user has to name it as `architecture`. Raises CleansetError if not,
    as `record_of_weights` does, and for a class that is not known.
    """
    folder = weights.resolve().parent
    record = record_of_weights(folder / "record.json", weights)
    classes = record["classes"]
    size = record["settings"]["size"]
    for key in classes:
        if key not in known.indices:
            raise CleansetError(f"{weights}: trained on class {shown(key)}; expected {known.expected_key}")
    # of runs/NAME/FOLD in the study's data
    study = folder.parents[3]
    wanted = network_of_record(record)
    if wanted.source == "module" and architecture != wanted.name:
        raise CleansetError(
            f"{weights}: belongs to the network {wanted.name}, whose code in {study} would run; expected "
            f"--architecture {wanted.name}, if you trust it"
        )
    if wanted.source != "module" and architecture is not None:
        raise CleansetError(
            f"--architecture {shown(architecture)}: the weights are of {wanted.source}:{wanted.name}; leave it out"
        )
    network = build_network(wanted, classes=len(classes), size=size, edition=folder, seed=0, study=study)
    load_checkpoint(cast(nn.Sequential, network)[1], weights, None)
    whole = OnClasses(network, [known.indices[key] for key in classes], len(known))
    if (resizing := record["settings"]["resizing"]) != "cropped":
        return whole, Resized(size, resizing == "nearest")
    return whole, trained_preprocessing(size).name


def _network_of_module(name: str, size: int, study: Path | None, seed: int) -> nn.Module:
    """The network that a callable returns, by itself behind no normalisation, in which its weights have its own names.

    Raises CleansetError unless its preprocessing gives images of that size.
    """
    module, _, function = name.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        returned = returned_by(ModuleModel(name, module, function, study))
    if returned.order is not None:
        raise CleansetError(f"{name}: returns an order of its outputs, which the training decides; expected none")
    found = returned.preprocessing.size
    if found != size:
        raise CleansetError(
            f"{name}: its preprocessing gives images of {found} x {found}, size is {size}; expected the same: set size"
        )
    return nn.Sequential(nn.Identity(), returned.network)


def _check_size(network: nn.Module, name: str, classes: int, size: int) -> None:
    """Raise CleansetError unless the network gives a logit for each class of images of that size."""
    was_training = network.training
    pixels = torch.rand((TRIED, 3, size, size), generator=torch.Generator().manual_seed(0))
    try:
        with torch.no_grad():
            answer = network.eval()(pixels)
    except Exception as error:  # a network raises whatever the size leads it to
        raise CleansetError(
            f"{name}: the network raises {raised(error)} for images of {size} x {size}; expected its own size: set size"
        ) from None
    finally:
        network.train(was_training)
    logits = checked_logits(answer, TRIED, NetworkGate(name, classes))
    if not logits.isfinite().all():
        raise not_finite(f"{name}, an image of random pixels")
