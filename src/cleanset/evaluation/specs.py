"""Names of models to be measured: a role, an entry of a zoo, a file of weights, a callable of a module, a command."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from cleanset.classes import context_classes
from cleanset.edition.models import zoo_fields
from cleanset.edition.params import Model, has_no_network
from cleanset.errors import CleansetError, InputError
from cleanset.plumbing.cache import cache_folder
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.validation import EachOnce, is_callable_name, shown, validate
from cleanset.scoring.logits import Groups

WEIGHTS = (".safetensors", ".pt", ".pth")
WEIGHTS_READERS = "cleanset.weights"
"""The entry points of callables that read weights by a record next to them, each under the record's name."""

EXPECTED_SPEC = (
    "expected timm:NAME, torchvision:NAME.WEIGHTS, robustbench:THREAT/NAME, a file of weights (with --architecture), "
    "MODULE:CALLABLE, command:PROGRAM, or a role of the edition"
)
_NAMED = re.compile(r"([^=:/]+)=(.*)", re.DOTALL)
MAX_NAME = 100
"""Characters of the name that is given to a model, or to predictions."""


def _known_key(key: str, info: ValidationInfo) -> str:
    classes = context_classes(info)
    if key not in classes.indices:
        raise ValueError(f"expected {classes.expected_key}, such as {classes.example_key}")
    return key


Wnid = Annotated[str, AfterValidator(_known_key)]
"""A class key; the class table is the validation context."""


class TrainedModel(Model):
    """A further model: its source, and the facts that the training of its weights decided."""

    classes: Annotated[list[Wnid], Field(min_length=2), EachOnce] | None = None
    """The classes of its logits, in their order: it is measured on images of these alone. null: all classes."""
    size: Annotated[int, Field(ge=16, le=2048)] | None = None
    """The side, in pixels, of the images that it was trained with, whose central part is seen. null: as published."""
    trained_on: Annotated[list[str], Field(default_factory=list)]
    """The corruptions that it was trained with, which mce_unseen leaves out."""

    @property
    def is_of_training(self) -> bool:
        """Whether the network differs from the published one."""
        return self.classes is not None or self.size is not None

    @model_validator(mode="after")
    def _with_weights(self) -> "TrainedModel":
        if self.is_of_training and (self.weights is None or self.source not in ("timm", "torchvision")):
            raise ValueError("classes and size go with weights of a network of timm or torchvision; expected weights")
        if self.weights is not None and self.sha256 is None:
            raise ValueError(
                f"weights without sha256: changes would go unnoticed; add the output of sha256sum {self.weights}"
            )
        return self


@dataclass(frozen=True, slots=True)
class ZooModel:
    """A model of timm, torchvision or RobustBench, or one of their networks with weights of a file.

    `text` is the name of the model as given; `folder` is where its weights are, or will be downloaded to (see
    load_model). `is_of_params`: whether a params.yaml names it, not a command line; messages name it.
    """

    text: str
    model: Model
    folder: Path
    is_of_params: bool = False


@dataclass(frozen=True, slots=True)
class ModuleModel:
    """The model that a callable of a Python module returns (see user_model).

    `folder`: where the module is looked for first; None: the current one. `weights`: a file of weights that a training
    has written, which the callable gets, with the class table of the images and `architecture`, what the user has
    named the network.
    """

    text: str
    module: str
    name: str
    folder: Path | None = None
    weights: Path | None = None
    architecture: str | None = None


@dataclass(frozen=True, slots=True)
class CommandModel:
    """The model behind a command that answers a folder of images (see `evaluation.user_model`)."""

    text: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenModel:
    """A model that a function of Python was given as objects (see `evaluation.given_model`)."""

    text: str
    network: object
    """A torch.nn.Module, a model of foolbox, or any callable from pixels in 0..1 to logits."""
    transform: object
    """From a PIL image to what the network gets, or the name of a preprocessing."""


@dataclass(frozen=True, slots=True)
class WrappedNetwork:
    """A model with two groups of classes in place of all, the gradient-masking wrapper around it, or both."""

    text: str
    of: "Spec"
    groups: Groups | None
    is_uninteresting: bool
    """Whether it is in the wrapper of Unrestricted Adversarial Examples, appendix E."""


Spec = ZooModel | ModuleModel | CommandModel | GivenModel | WrappedNetwork


def spec_of_entry(role: str, entry: Model | str, edition: Path, study: Path | None = None) -> Spec:
    """A model that a params.yaml names; the paths of its weights are relative to the folder `edition`.

    The module of `module:callable` is looked for in the folder `study` first.
    """
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        return ModuleModel(role, module, name, study)
    return ZooModel(role, entry, edition, is_of_params=True)


def is_custom(spec: Spec) -> bool:
    """Whether a user's own code answers, which may remember what it was asked."""
    if isinstance(spec, WrappedNetwork):
        return is_custom(spec.of)
    return not isinstance(spec, ZooModel) or spec.model.source == "module"


def parse_specs(
    texts: Sequence[str], architecture: str | None, roles: Mapping[str, Model], edition: Path, weights: Path | None
) -> list[Spec]:
    """The models given as MODEL or NAME=MODEL, in their order.

    `roles` are the models of the edition in the folder `edition`; `weights` is the folder to which other models are
    downloaded, None for the cache. Raises CleansetError without names, for a duplicate, and for a name that is not a
    model's.
    """
    if not texts:
        raise CleansetError(f"evaluate: no --model; {EXPECTED_SPEC}")
    named = [split_name(text) for text in texts]
    names = [name for name, _ in named]
    for place, (name, model) in enumerate(named):
        if name in names[:place]:
            raise CleansetError(f"--model {name}: given twice; expected each model once")
        # by this name the edition's results are found
        if name != model and name in roles:
            raise CleansetError(f"--model {texts[place]}: {name} is a role of the edition; expected another name")
    if architecture is not None and not any(_is_file(model, roles) for _, model in named):
        raise CleansetError(f"--architecture {architecture}: no --model is a file of weights; expected one")
    found = [_parse(model, architecture, roles, edition=edition, weights=weights) for _, model in named]
    return [replace(spec, text=name) for spec, name in zip(found, names, strict=True)]


def is_same_model(one: Spec, other: Spec) -> bool:
    """Whether two specs name one model, perhaps under two names."""
    return replace(one, text=other.text) == other


def split_name(text: str) -> tuple[str, str]:
    """The name and the model of NAME=MODEL; of MODEL alone both are the same.

    A name has neither a colon nor a slash, so that a command, or a path, may have an equals sign. Raises CleansetError
    for an empty, long or unprintable name.
    """
    match = _NAMED.fullmatch(text)
    if match is None or Path(text).is_file():
        return text, text
    name = match[1]
    if not name.isprintable() or name != name.strip() or len(name) > MAX_NAME or not match[2]:
        raise CleansetError(f"--model {shown(text)}: expected NAME=MODEL, with a name of 1 to {MAX_NAME} characters")
    return name, match[2]


def _is_file(text: str, roles: Mapping[str, Model]) -> bool:
    return text not in roles and text.endswith(WEIGHTS)


def _parse(
    text: str, architecture: str | None, roles: Mapping[str, Model], edition: Path, weights: Path | None
) -> Spec:
    if text in roles:
        if roles[text].is_list:
            raise CleansetError(f"--model {has_no_network(text, roles[text])}")
        return ZooModel(text, roles[text], edition)
    if _is_file(text, roles):
        return _file(text, architecture)
    source, colon, name = text.partition(":")
    if colon and source in ("timm", "torchvision", "robustbench") and name:
        return ZooModel(text, _of_zoo(text, source, name), cache_folder() if weights is None else weights)
    if colon and source == "command":
        return _command(text, name)
    if is_callable_name(text):
        return ModuleModel(text, source, name)
    known = f"; its roles are {', '.join(roles)}" if roles else ""
    raise InputError(f"--model {shown(text)}: no such model; {EXPECTED_SPEC}{known}")


def _command(text: str, line: str) -> CommandModel:
    try:
        words = shlex.split(line)
    except ValueError as error:  # a quotation mark without its other one
        raise CleansetError(f"--model {shown(text)}: {error}; expected a command as a shell reads it") from None
    if not words:
        raise CleansetError(f"--model {shown(text)}: no command; expected one after command:")
    return CommandModel(text, tuple(words))


def _of_zoo(text: str, source: str, name: str) -> Model:
    fields = zoo_fields(source, name)
    if not fields["name"]:
        raise CleansetError(f"--model {shown(text)}: no name after the threat model; {EXPECTED_SPEC}")
    return validate(Model, fields, f"--model {shown(text)}")


def _file(text: str, architecture: str | None) -> Spec:
    path = Path(text).absolute()
    if not path.is_file():
        raise CleansetError(f"--model {text}: missing; expected a file of weights")
    source, _, name = (architecture or "").rpartition(":")
    is_of_zoo = source in ("", "timm", "torchvision")
    if architecture is None or not is_of_zoo:
        for reader in entry_points(group=WEIGHTS_READERS):
            if (path.parent / reader.name).is_file():
                return ModuleModel(text, reader.module, reader.attr, weights=path, architecture=architecture)
    if architecture is None:
        raise CleansetError(f"--model {text}: a file of weights; expected --architecture, too, such as resnet50")
    if not is_of_zoo or not name:
        raise CleansetError(
            f"--architecture {shown(architecture)}: expected a name of timm, or torchvision:NAME.WEIGHTS"
        )
    fields = {"source": source or "timm", "name": name, "weights": str(path), "sha256": sha256_of(path)}
    return ZooModel(text, Model.model_validate(fields), path.parent)


def file_stems(names: Sequence[str]) -> list[str]:
    """The name of each model's files: its own, with other characters than usual as _, and each another."""
    found: list[str] = []
    for name in names:
        stem = unique = re.sub(r"[^A-Za-z0-9._+-]+", "_", name).strip("._")[-100:] or "model"
        number = len(found)
        while unique in found or unique == "results":
            unique = f"{stem}-{number}"
            number += 1
        found.append(unique)
    return found
