"""Loading the models that are to be measured: from a zoo, from a file of weights, from a Python module."""

import hashlib
from dataclasses import dataclass

import numpy as np

from cleanset.errors import CleansetError
from cleanset.evaluate.specs import ModuleModel, Spec, ZooModel
from cleanset.evaluate.user_model import callable_of, load_module, random_image
from cleanset.scoring.decoding import Batch
from cleanset.scoring.engine import Settings
from cleanset.scoring.models import LoadedModel, load_model, preprocessing_of, weights_at_hand
from cleanset.scoring.scorer import Scorer, arithmetic

TRIED = 2
"""Images of random pixels that a network of a module is tried with."""


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A loaded model under the name that it was given; `identity` is a digest of all that its scores depend on."""

    name: str
    loaded: LoadedModel
    identity: str


def check(spec: Spec) -> None:
    """Raise CleansetError for a model that cannot be there, before anything is computed; download missing weights."""
    if isinstance(spec, ModuleModel):
        callable_of(spec)
        return
    try:
        preprocessing_of(spec.model)
        weights_at_hand(spec.model, spec.folder)
    except CleansetError as error:
        raise _of_command(spec, error) from None


def load(spec: Spec, settings: Settings) -> NamedModel:
    """Load a model. Raises CleansetError if that fails, or if it does not give logits."""
    if isinstance(spec, ModuleModel):
        loaded = load_module(spec)
        return NamedModel(spec.text, loaded, _tried(spec.text, loaded, settings))
    try:
        loaded = load_model(spec.model, spec.folder)
    except CleansetError as error:
        raise _of_command(spec, error) from None
    return NamedModel(spec.text, loaded, f"{spec.model.source} {spec.model.threat_model} {spec.model.name}")


def _of_command(spec: ZooModel, error: CleansetError) -> CleansetError:
    """The error of a model that is named on the command line and not in params.yaml."""
    text = str(error).removeprefix("params.yaml: ")
    text = text.partition(", or name a file with the weights of")[0]
    return CleansetError(f"--model {spec.text}: {text}")


def _tried(name: str, loaded: LoadedModel, settings: Settings) -> str:
    """A digest of what preprocessing and network make of random pixels: other code with the same weights shows in it.

    Raises CleansetError if the network gives no logits for them.
    """
    size = loaded.preprocessing.size
    pixels = np.random.default_rng(0).integers(0, 256, (TRIED, 3, size, size), np.uint8)
    batch = Batch([f"{name}, an image of random pixels"] * TRIED, pixels)
    with arithmetic(settings.precision):
        try:
            (scored,) = Scorer(loaded, settings.devices[0], settings.precision)([batch])
        except (RuntimeError, TypeError) as error:  # a network that cannot be copied, or moved
            raise CleansetError(f"{name}: cannot be copied to {settings.devices[0]} ({error})") from None
    digest = hashlib.sha256(loaded.preprocessing(random_image()).tobytes())
    for array in scored.columns.values():
        digest.update(array.tobytes())
    return digest.hexdigest()
