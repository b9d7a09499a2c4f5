"""Models that Python hands over as objects: a network or a callable, and the transform of its images.

A network of pixels in 0..1 with its normalisation inside needs nothing more. A transform of torchvision or timm that
ends in ToTensor and Normalize is taken apart: the pixels stay whole numbers, as corruptions, attacks and stored files
need them, and the normalisation becomes the first step of the network.
"""

import copy
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from PIL import Image
from torch import Tensor, nn

from cleanset.classes import ClassTable
from cleanset.errors import InputError, raised
from cleanset.evaluation.specs import GivenModel
from cleanset.evaluation.user_model import PREPROCESSINGS, Returned, loaded_model, named, random_image
from cleanset.images.preprocessing import PixelPlanes
from cleanset.scoring.models import LoadedModel, Normalise

MAX_ROUNDING = 1e-3
"""Levels of 8 bits that pixels in 0..1 may be off whole ones: float16 is not exact."""
EXPECTED = (
    f"expected {PREPROCESSINGS}, or a callable from a PIL image to pixels of shape (3, size, size): uint8, or floating "
    "point from 0 to 1, perhaps followed by torchvision's Normalize as the last step of its Compose"
)


def load_given(spec: GivenModel, classes: ClassTable) -> LoadedModel:
    """Load a model that was given as objects, as a copy: the given network stays unchanged.

    Raises CleansetError for a transform that gives no pixels.
    """
    network, normalized = _network_of(spec), spec.transform
    if callable(spec.transform):
        transform, normalize = split(cast(Callable[..., object], spec.transform))
        normalized = _as_pixels(spec.text, transform)
        if normalize is not None:
            network = nn.Sequential(normalize, network)
    elif not isinstance(spec.transform, str):
        raise InputError(f"{spec.text}: no transform; {EXPECTED}")
    returned = Returned(network, named(normalized, spec.text))
    return loaded_model(spec.text, returned, classes, module=type(spec.network).__module__)


def _network_of(spec: GivenModel) -> nn.Module:
    network = spec.network
    if isinstance(network, nn.Module):
        return copy.deepcopy(network)
    if not callable(network):
        raise InputError(f"{spec.text}: a value of type {type(network).__name__}; expected a network or a callable")
    # foolbox's models know the range that they take pixels in
    low, high = getattr(network, "bounds", (0, 1))
    return copy.deepcopy(CalledNetwork(network, float(low), float(high)))


def can_be_sent(work: object) -> bool:
    """Whether another process can be sent an object: not what a notebook or a script has defined itself."""
    try:
        return b"__main__" not in pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


class CalledNetwork(nn.Module):
    """A callable as a network, such as a model of foolbox: pixels in 0..1 are scaled into the range that it takes."""

    def __init__(self, function: Callable[[Tensor], Tensor], low: float, high: float) -> None:
        super().__init__()
        self.function = function
        self.low = low
        self.high = high
        # its weights are digested, and move to a device
        self.inside = next((each for each in vars(function).values() if isinstance(each, nn.Module)), None)

    def forward(self, pixels: Tensor) -> Tensor:
        """What the callable gives."""
        return self.function(pixels * (self.high - self.low) + self.low)


def split(transform: Callable[..., object]) -> tuple[Callable[..., object], nn.Module | None]:
    """A transform without the Normalize that its Compose ends in, and that step for the network; None if it has none.

    The presets of torchvision's weights are taken apart, too.
    """
    steps: Any = getattr(transform, "transforms", None)
    last = steps[-1] if isinstance(steps, list | tuple | nn.ModuleList) and len(steps) else None
    if type(last).__name__ == "Normalize" and hasattr(last, "mean") and hasattr(last, "std"):
        before = copy.copy(transform)
        cast(Any, before).transforms = steps[:-1]
        return before, Normalise(cast(Any, last).mean, cast(Any, last).std)
    if type(transform).__name__ == "ImageClassification" and hasattr(transform, "mean"):
        before = copy.deepcopy(transform)
        found: Any = transform
        # of three colors, as the preset has them
        cast(Any, before).mean = [0.0] * len(found.mean)
        cast(Any, before).std = [1.0] * len(found.std)
        return before, Normalise(found.mean, found.std)
    return transform, None


class WholePixels:
    """A transform whose pixels from 0 to 1 become uint8 again, from which its own step had made them."""

    def __init__(self, name: str, transform: Callable[..., object]) -> None:
        self.name = name
        self.transform = transform

    def __call__(self, image: Image.Image) -> PixelPlanes:
        """The pixels. Raises InputError for values that are not multiples of 1/255 from 0 to 1."""
        found = _array(self.transform(image))
        if found.dtype == np.uint8:
            return cast(PixelPlanes, found)
        levels = found.astype(np.float64) * 255
        whole = np.rint(levels)
        # not `>`, which is false for NaN
        if found.dtype.kind != "f" or not (np.abs(levels - whole) <= MAX_ROUNDING * 255).all():
            raise InputError(
                f"{self.name}: the transform gives {found.dtype} {found.shape}, {found.min():g} to {found.max():g}; "
                f"{EXPECTED}"
            )
        if not (whole.min() >= 0 and whole.max() <= 255):
            raise InputError(
                f"{self.name}: the transform gives {found.dtype} pixels, {found.min():g} to {found.max():g}; {EXPECTED}"
            )
        return cast(PixelPlanes, whole.astype(np.uint8))


def _as_pixels(name: str, transform: Callable[..., object]) -> WholePixels:
    try:
        transform(random_image())
    except (Exception, SystemExit) as error:  # whatever its code raises
        raise InputError(f"{name}: the transform raises {raised(error)}; {EXPECTED}") from None
    return WholePixels(name, transform)


def _array(pixels: object) -> Any:
    if isinstance(pixels, Image.Image):
        raise InputError(f"a transform that gives a PIL image; {EXPECTED}: end it with torchvision's PILToTensor")
    return np.asarray(pixels.detach().cpu() if isinstance(pixels, Tensor) else pixels)
