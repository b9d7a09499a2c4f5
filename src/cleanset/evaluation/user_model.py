"""Custom models: a callable of a Python module or a command, and the contract that each has to keep.

`MODULE:CALLABLE` names a callable without arguments that returns a network and its preprocessing, in a tuple:

- the network, a torch.nn.Module, maps pixels in [0, 1], float of shape (n, 3, size, size), red first, to logits of
  shape (n, classes), 1,000 of ImageNet, finite, in the order of the class indices. Normalisation is inside it. It is
  computed in float64, unless --precision says otherwise, so constants belong in its parameters or buffers. It is set
  to evaluation.
- the preprocessing is the name of one of this project (keras256, Res256Crop224, or timm-<filter>-<resize>-<size>, such
  as timm-bicubic-235-224), or a callable that maps a PIL image in mode RGB to pixels, uint8 of shape (3, size, size),
  red first; the size is the same for all images. On a GPU it is called in other processes: a function of a module, not
  a lambda.

`command:PROGRAM ARGUMENT…` names a command, as a shell reads it. The path of a folder, whose PNGs are 224 x 224 pixels,
is its last argument; it prints a line `file, wnid` for each of them, in any order. An answer becomes logits of 1 for
the class and 0 for the others: its confidences mean nothing, and it has no gradient.

Any network can be restricted to predictions among the classes of the images alone. ImageNet-R and ImageNet-A, which
have images of 200 classes, are measured so: D. Hendrycks and others, "The Many Faces of Robustness" (ICCV 2021) and
"Natural Adversarial Examples" (CVPR 2021).
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from cleanset.classes import ClassTable
from cleanset.edition.models import changed_files
from cleanset.edition.params import Model
from cleanset.errors import CleansetError, raised, reason
from cleanset.evaluation.class_order import places_of
from cleanset.evaluation.printed_answers import printed_answers
from cleanset.evaluation.specs import CommandModel, ModuleModel
from cleanset.images import codec
from cleanset.images.preprocessing import NAMED, PixelPlanes, Preprocessing, ResizeAndCrop
from cleanset.plumbing.validation import first_names, shown
from cleanset.scoring.checked_network import CheckedNetwork, kind_of
from cleanset.scoring.checkpoints import unusable_kind
from cleanset.scoring.fingerprints import module_fingerprint, sources_sha256
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.scoring.own_code import imported_callable

# the distance in nats that the logits of other classes are put below the smallest: their probability is 0
BELOW = 1000.0


class AmongClasses(nn.Module):
    """A network whose predictions are among some of the classes; the logits of the others are far below."""

    is_other: Tensor

    def __init__(self, network: nn.Module, shown: Sequence[int], classes: ClassTable) -> None:
        super().__init__()
        self.network = network
        is_other = torch.ones(len(classes), dtype=torch.bool)
        is_other[list(shown)] = False
        # a buffer, so that it moves to a device with the weights
        self.register_buffer("is_other", is_other, persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, classes)."""
        logits: Tensor = self.network(pixels)
        lowest = logits.amin(dim=1, keepdim=True) - BELOW
        return torch.where(self.is_other, lowest, logits)


PREPROCESSINGS = f"{', '.join(NAMED)} or timm-<bilinear or bicubic>-<resize>-<size>"
# pixels: the longest side of what a network gets
MAX_SIZE = 4096
_TIMM = re.compile(r"timm-(bilinear|bicubic)-([0-9]{1,4})-([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Returned:
    """What the callable of a custom model returns."""

    network: nn.Module
    preprocessing: Preprocessing
    order: object = None
    """The order of the outputs as stated; None: that of the class indices."""


class InOrder(nn.Module):
    """A network whose outputs are in another order, as logits in the order of the class indices."""

    places: Tensor

    def __init__(self, network: nn.Module, places: Sequence[int]) -> None:
        super().__init__()
        self.network = network
        # a buffer, so that it moves to a device with the weights, and is in their digest
        self.register_buffer("places", torch.tensor(places, dtype=torch.int64))

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, classes)."""
        logits: Tensor = self.network(pixels)
        return logits[:, self.places]


@dataclass(frozen=True, slots=True)
class CheckedPreprocessing:
    """A callable as a preprocessing; its exceptions, and results of another kind, become a CleansetError."""

    name: str
    function: Callable[[Image.Image], object]
    size: int

    def __call__(self, image: Image.Image) -> PixelPlanes:
        """The pixels, uint8 of shape (3, size, size), red first."""
        pixels = _preprocessed(self.name, self.function, image)
        if pixels.shape != (3, self.size, self.size):
            raise CleansetError(
                f"{self.name}: the preprocessing gives {pixels.shape} for an image of {image.width} x {image.height} "
                f"pixels, but {(3, self.size, self.size)} for others; expected one size"
            )
        return pixels


def load_module(spec: ModuleModel, classes: ClassTable) -> LoadedModel:
    """Load the result of a callable. Raises CleansetError as `returned_by` does.

    `weights_sha256` is a digest of the network's parameters and buffers.
    """
    arguments = () if spec.weights is None else (spec.weights, classes, spec.architecture)
    # the record says the network and the classes of the weights
    files = () if spec.weights is None else (spec.weights, spec.weights.with_name("record.json"))
    return loaded_model(spec.text, returned_by(spec, *arguments), classes, module=spec.module, files=files)


def loaded_model(
    name: str, returned: Returned, classes: ClassTable, *, module: str, files: Sequence[Path] = ()
) -> LoadedModel:
    """A network with its preprocessing as a model; `module` and `files`: where its code and its weights come from."""
    network = returned.network
    preprocessing = returned.preprocessing
    checked: nn.Module = CheckedNetwork(name, network, len(classes))
    digested = network
    if returned.order is not None:
        places = places_of(returned.order, classes, name)
        checked = InOrder(checked, places)
        digested = InOrder(network, places)
    # the engine only asks for the size and calls it
    named_preprocessing = cast(ResizeAndCrop, preprocessing)
    # its parts may be of other modules, as those of a trained network are
    parts = {type(part).__module__ for part in network.modules()}
    code = module_fingerprint(module, files, parts)
    return LoadedModel(
        network=checked.eval().requires_grad_(False),
        preprocessing=named_preprocessing,
        weights_sha256=tensors_sha256(digested),
        classes=len(classes),
        code=code,
        order_is_stated=returned.order is not None,
    )


def returned_by(spec: ModuleModel, *arguments: object) -> Returned:
    """What the callable returns for these arguments: a network, its preprocessing, and perhaps the order of outputs.

    Raises CleansetError for anything else.
    """
    expected = "expected a network and its preprocessing"
    make = callable_of(spec)
    try:
        returned = make(*arguments)
    except CleansetError:
        raise
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise CleansetError(f"{spec.text}: raises {raised(error)}; {expected}") from None
    if not isinstance(returned, tuple) or not 2 <= len(returned) <= 3:
        raise CleansetError(f"{spec.text}: returns {kind_of(returned)}; {expected}")
    network, preprocessing, *order = returned
    if not isinstance(network, nn.Module):
        raise CleansetError(f"{spec.text}: returns {kind_of(network)} as its network; expected a torch.nn.Module")
    for key, tensor in network.state_dict(keep_vars=True).items():
        if kind := unusable_kind(tensor):
            raise CleansetError(f"{spec.text}: {key} of its network is {kind}; expected a network with its weights")
    return Returned(network, named(preprocessing, spec.text), next(iter(order), None))


def load_member(model: Model, folder: Path, classes: ClassTable, name: str | None = None) -> LoadedModel:
    """Load a model of the edition in `folder`: from a zoo as `load_model` does, or from a module that is in it.

    `name` is in messages on its answers; None: the model's own. Raises CleansetError as these do, and for a
    preprocessing without a name, since the scores could not be repeated.
    """
    if model.source != "module":
        loaded = load_model(model, folder)
        # the networks of the zoos give ImageNet's 1,000 logits, which are refused for images of other classes
        network = CheckedNetwork(name or model.name, loaded.network, len(classes)).eval()
        return replace(loaded, network=network, classes=len(classes))
    check_code(model, folder)
    loaded = load_module(module_of_member(model, folder), classes)
    if not isinstance(loaded.preprocessing, ResizeAndCrop):
        raise CleansetError(f"{model.name}: a callable as preprocessing; expected in an edition {PREPROCESSINGS}")
    if model.sha256 not in (None, loaded.weights_sha256):
        raise CleansetError(
            f"{model.name}: parameters and buffers with SHA-256 {loaded.weights_sha256}, expected {model.sha256} as in "
            "params.yaml: restore the weights, or correct params.yaml if these are meant"
        )
    return loaded


def check_code(model: Model, folder: Path) -> None:
    """Raise CleansetError unless code and files of a custom model in an edition's folder are what params.yaml pins."""
    if changed := changed_files(model, folder):
        raise CleansetError(
            f"{model.name}: {first_names(changed, 3)} in {folder}, which it opens, with another SHA-256 than in "
            "params.yaml, or missing: restore it, or run cleanset models --pin if this file is meant"
        )
    if model.module is None or model.module_sha256 is None:
        return
    found = sources_sha256(model.module, folder)
    if found != model.module_sha256:
        raise CleansetError(
            f"{model.module}: {f'SHA-256 {found} of it and its imports' if found else 'no such module'} in {folder}, "
            f"expected {model.module_sha256} as in params.yaml: restore it, or run cleanset models --pin if this code "
            "is meant"
        )


def module_of_member(model: Model, folder: Path) -> ModuleModel:
    """The callable of a model of the edition in `folder` that comes from a module."""
    module, _, name = model.name.partition(":")
    return ModuleModel(model.name, module, name, folder)


def check_custom(spec: ModuleModel | CommandModel) -> None:
    """Raise CleansetError unless the callable of a module, or the program of a command, is there."""
    if isinstance(spec, ModuleModel):
        callable_of(spec)
    elif shutil.which(spec.command[0]) is None:
        raise CleansetError(f"--model {spec.text}: no program {shown(spec.command[0])} here or on the PATH")


def callable_of(spec: ModuleModel) -> Callable[..., object]:
    """The callable of a name in a module. Raises CleansetError if it is missing or cannot be imported."""
    # a file of weights is read by an installed module
    is_installed = spec.weights is not None
    return imported_callable(
        f"{spec.module}:{spec.name}", f"--model {spec.text}", spec.folder, is_installed=is_installed
    )


def named(preprocessing: object, name: str) -> Preprocessing:
    """The preprocessing of this project of a name, or a checked callable; `name` comes from the model. Raises
    CleansetError for another name, and unless it maps an image to square pixels.
    """
    if isinstance(preprocessing, str):
        match = _TIMM.fullmatch(preprocessing)
        resize, size = (int(match[2]), int(match[3])) if match else (0, 0)
        if match is not None and 1 <= size <= resize <= MAX_SIZE:
            return ResizeAndCrop(preprocessing, resize, size, "bicubic" if match[1] == "bicubic" else "bilinear")
        if preprocessing in NAMED:
            return NAMED[preprocessing]
    if not callable(preprocessing):
        found = f"preprocessing {shown(preprocessing)}"
        if not isinstance(preprocessing, str):
            found = f"{kind_of(preprocessing)} as preprocessing"
        raise CleansetError(f"{name}: {found}; expected {PREPROCESSINGS}, or a callable")
    pixels = _preprocessed(name, preprocessing, random_image())
    size = pixels.shape[-1] if pixels.ndim else 0
    if pixels.shape != (3, size, size) or not 1 <= size <= MAX_SIZE:
        raise CleansetError(
            f"{name}: the preprocessing gives uint8 {pixels.shape}; expected (3, size, size), red first"
        )
    return CheckedPreprocessing(name, preprocessing, size)


def random_image() -> Image.Image:
    """An image of random pixels, always the same one, to try a preprocessing with."""
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8))


def _preprocessed(name: str, function: Callable[[Image.Image], object], image: Image.Image) -> PixelPlanes:
    try:
        pixels = np.asarray(function(image.convert("RGB")))
    except CleansetError:
        raise
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise CleansetError(
            f"{name}: the preprocessing raises {raised(error)} for an image of {image.width} x {image.height} pixels"
        ) from None
    if pixels.dtype != np.uint8:
        # most often Compose with ToTensor and Normalize
        remedy = (
            ": end it with PILToTensor in place of ToTensor, and leave Normalize to the network"
            if pixels.dtype.kind == "f"
            else ""
        )
        raise CleansetError(
            f"{name}: the preprocessing gives {pixels.dtype} {pixels.shape}; expected uint8 pixels, 0 to 255{remedy}"
        )
    return np.ascontiguousarray(pixels)


def tensors_sha256(network: nn.Module) -> str:
    """SHA-256 of the parameters and buffers of a network, with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        # as bytes, because NumPy has no bfloat16
        value = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


class CommandNetwork(nn.Module):
    """The answers of a command to 8-bit copies of pixels: logits (n, classes), without a gradient."""

    def __init__(self, name: str, command: tuple[str, ...], classes: ClassTable) -> None:
        super().__init__()
        self._name = name
        self._command = command
        self._classes = classes

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, classes). Raises CleansetError, naming the model, for a command that does not answer."""
        levels = torch.round(pixels.detach().cpu().double() * 255).clamp(0, 255).to(torch.uint8)
        # numbers reveal nothing about the images to the command
        names = [f"{number:05d}.png" for number in range(len(levels))]
        with tempfile.TemporaryDirectory() as folder:
            for name, image in zip(names, levels.permute(0, 2, 3, 1).numpy(), strict=True):
                Path(folder, name).write_bytes(codec.png(Image.fromarray(np.ascontiguousarray(image))))
            text = self._output(folder)
        indices = self._classes.indices
        column = self._classes.key_column
        expected = f"a {column} such as {self._classes.example_key}"
        known = indices.__contains__
        answers = printed_answers(text, names, self._name, known, kind=f"a {column}", expected=expected)
        found = torch.tensor([indices[answers[name]] for name in names], dtype=torch.int64, device=pixels.device)
        return nn.functional.one_hot(found, len(self._classes)).to(pixels.dtype)

    def _output(self, folder: str) -> str:
        try:
            done = subprocess.run([*self._command, folder], capture_output=True, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise CleansetError(f"{self._name}: does not start ({reason(error)}); expected a program") from None
        if done.returncode != 0:
            said = done.stderr[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
            raise CleansetError(f"{self._name}: ends with exit code {done.returncode} ({shown(said)}); expected 0")
        return done.stdout.decode(errors="replace")
