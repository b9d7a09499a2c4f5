"""The one opener of models from an edition, a zoo, a file of weights, a training, a callable, a program, or wrapped.

Besides the network it has the fingerprints of all that its answers depend on.
"""

import hashlib
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TypeGuard

import numpy as np

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, reason
from cleanset.evaluation.given_model import load_given
from cleanset.evaluation.specs import (
    CommandModel,
    GivenModel,
    ModuleModel,
    Spec,
    TrainedModel,
    WrappedNetwork,
    ZooModel,
)
from cleanset.evaluation.trained import load_trained, preprocessing_of_entry
from cleanset.evaluation.user_model import (
    CommandNetwork,
    check_custom,
    load_member,
    load_module,
    module_of_member,
    random_image,
)
from cleanset.images.codec import png
from cleanset.images.preprocessing import RES256CROP224, Preprocessing
from cleanset.plumbing.files import sha256
from cleanset.scoring.checked_network import CheckedNetwork
from cleanset.scoring.decoding import PixelBatch
from cleanset.scoring.differentiable import wrap_network
from cleanset.scoring.engine import Settings
from cleanset.scoring.fingerprints import program_fingerprint
from cleanset.scoring.models import LoadedModel, is_at_hand, preprocessing_of, weights_at_hand
from cleanset.scoring.opened_files import opened_files
from cleanset.scoring.scorer import Scorer, arithmetic

# images of random pixels that a network of a module is tried with
TRIED = 2


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A loaded model under the name that it was given; `identity` is a digest of all that its scores depend on."""

    name: str
    loaded: LoadedModel
    identity: str


def check_model(spec: Spec) -> None:
    """Raise CleansetError for a model that cannot be there, before anything is computed; download missing weights."""
    if isinstance(spec, WrappedNetwork):
        check_model(spec.of)
        return
    if not isinstance(spec, ZooModel):
        if not isinstance(spec, GivenModel):
            check_custom(spec)
        return
    if spec.model.source == "module":
        check_custom(module_of_member(spec.model, spec.folder))
        return
    if spec.model.source == "robustbench" and find_spec("robustbench") is None:
        raise CleansetError(
            f"--model {spec.text}: robustbench is not installed, which only its own models need: pip install "
            "robustbench, in an environment of its own, because it changes the version of timm"
        )
    try:
        preprocessing_of(spec.model)
        weights_at_hand(spec.model, spec.folder)
    except CleansetError as error:
        raise _as_named(spec, error) from None


def lacks_weights(spec: Spec) -> TypeGuard[ZooModel]:
    """Whether a model is of a zoo, and its weights are not on this machine."""
    return isinstance(spec, ZooModel) and not is_at_hand(spec.model, spec.folder)


def open_model(spec: Spec, settings: Settings, classes: ClassTable) -> NamedModel:
    """Load a model. Raises CleansetError if that fails, or if it does not give a logit for each of the classes."""
    if isinstance(spec, WrappedNetwork):
        return _wrapped(spec, open_model(spec.of, settings, classes))
    if isinstance(spec, CommandModel):
        network = CommandNetwork(spec.text, spec.command, classes).eval()
        size = RES256CROP224.size
        opened = opened_files(spec.command, png(random_image().resize((size, size))))
        code = program_fingerprint(spec.command, opened.files, opened.environments)
        # in place of weights, which only the program knows
        loaded = LoadedModel(network, RES256CROP224, code, classes=len(classes), code=code)
        return NamedModel(spec.text, loaded, code)
    if isinstance(spec, ModuleModel):
        loaded = load_module(spec, classes)
        return NamedModel(spec.text, loaded, _identity_of_code(spec.text, loaded, settings))
    if isinstance(spec, GivenModel):
        loaded = load_given(spec, classes)
        return NamedModel(spec.text, loaded, _identity_of_code(spec.text, loaded, settings))
    model = spec.model
    if isinstance(model, TrainedModel) and model.is_of_training:
        loaded = load_trained(model, spec.folder, classes)
        loaded = replace(loaded, network=CheckedNetwork(spec.text, loaded.network, len(classes)))
        identity = f"{model.source} {model.name} {model.size} {' '.join(model.classes or [])}"
        return NamedModel(spec.text, loaded, identity)
    try:
        loaded = load_member(model, spec.folder, classes, spec.text)
    except CleansetError as error:
        raise _as_named(spec, error) from None
    if model.source == "module":
        return NamedModel(spec.text, loaded, _identity_of_code(spec.text, loaded, settings))
    return NamedModel(spec.text, loaded, f"{model.source} {model.threat_model} {model.name}")


def preprocessing_of_spec(spec: Spec, settings: Settings, classes: ClassTable) -> Preprocessing:
    """The preprocessing of a model; weights are read only where a callable of a module gives it."""
    if isinstance(spec, WrappedNetwork):
        return preprocessing_of_spec(spec.of, settings, classes)
    if isinstance(spec, ZooModel) and spec.model.source != "module":
        return preprocessing_of_entry(spec.model)
    return open_model(spec, settings, classes).loaded.preprocessing


def preprocessing_digest(preprocessing: Preprocessing) -> str:
    """A digest of the result of a preprocessing on the image of `random_image`: it changes where its code does."""
    return sha256(preprocessing(random_image()).tobytes())


def _wrapped(spec: WrappedNetwork, found: NamedModel) -> NamedModel:
    members = None if spec.groups is None else spec.groups.classes
    network = wrap_network(found.loaded.network, members, spec.is_uninteresting)
    identity = f"{found.identity}, in groups {members}, uninteresting {spec.is_uninteresting}"
    return NamedModel(spec.text, replace(found.loaded, network=network), identity)


def _as_named(spec: ZooModel, error: CleansetError) -> CleansetError:
    """The error of a model, which a message of one that a command line names has no params.yaml for."""
    if spec.is_of_params:
        return error
    text = str(error).removeprefix("params.yaml: ")
    text = text.partition(", or name a file with the weights of")[0]
    return CleansetError(f"--model {spec.text}: {text}")


def _identity_of_code(name: str, loaded: LoadedModel, settings: Settings) -> str:
    # the weights alone do not distinguish two versions of the code
    return f"{_tried(name, loaded, settings)}, code {loaded.code}"


def _tried(name: str, loaded: LoadedModel, settings: Settings) -> str:
    """A digest of what preprocessing and network make of random pixels: other code with the same weights shows in it.

    Raises CleansetError if the network gives no logits for them.
    """
    size = loaded.preprocessing.size
    pixels = np.random.default_rng(0).integers(0, 256, (TRIED, 3, size, size), np.uint8)
    batch = PixelBatch([f"{name}, an image of random pixels"] * TRIED, pixels)
    with arithmetic(settings.precision):
        try:
            (scored,) = Scorer(loaded, settings.devices[0], settings.precision)([batch])
        except CleansetError:
            raise
        except Exception as error:  # copying runs the network's own code, too
            raise CleansetError(
                f"{name}: cannot be copied to {settings.devices[0]} ({reason(error)}); expected a network that "
                "copy.deepcopy copies"
            ) from None
    digest = hashlib.sha256(loaded.preprocessing(random_image()).tobytes())
    for array in scored.columns.values():
        digest.update(array.tobytes())
    return digest.hexdigest()
