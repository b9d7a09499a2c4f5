"""Other models as networks on the pixels that the attacked model sees, for images that are made on them.

Steps of a network that gradients pass straight through, for networks that hide theirs behind such steps.

Backward pass differentiable approximation, with the identity in place of the derivative: A. Athalye, N. Carlini, D.
Wagner, "Obfuscated Gradients Give a False Sense of Security" (ICML 2018).
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.measure.user_model import CheckedNetwork
from cleanset.scoring.differentiable import PixelNetwork, wrap_network
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Precision
from cleanset.validation import shown


class ResizedPixels(nn.Module):
    """Pixels of any side as square ones of another; those of that side stay as they are."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels of shape (n, 3, size, size), through which gradients flow."""
        if pixels.shape[-1] == self.size:
            return pixels
        # as Pillow and torchvision resize: without antialiasing a smaller image would be of other pixels
        size = (self.size, self.size)
        found: Tensor = nn.functional.interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
        return found


@dataclass(frozen=True, slots=True)
class Searching:
    """The device, the precision and the number of images at a time of a search."""

    device: torch.device
    precision: Precision
    batch_size: int


def source_networks(
    models: Mapping[str, LoadedModel], groups: Sequence[Sequence[int]] | None, how: Searching
) -> dict[str, PixelNetwork]:
    """The models, by name, on pixels of any side; with `groups` of class indices, one logit for each of them."""
    return {
        name: PixelNetwork(
            nn.Sequential(ResizedPixels(model.preprocessing.size), wrap_network(model.network, groups, False)),
            how.device,
            how.precision,
            how.batch_size,
        )
        for name, model in models.items()
    }


MAX_NAMED = 12
"""Steps that an error names at most."""


class StraightThrough(nn.Module):
    """A step of a network, computed as it is, with the derivative of the identity."""

    def __init__(self, name: str, step: nn.Module) -> None:
        super().__init__()
        self.name, self.step = name, step

    def forward(self, pixels: Tensor) -> Tensor:
        """The result of the step. Raises CleansetError if its shape is not that of what it is given."""
        with torch.no_grad():
            found: Tensor = self.step(pixels.detach())
        if found.shape != pixels.shape:
            raise CleansetError(
                f"straight through {self.name}: it makes {tuple(found.shape)} of {tuple(pixels.shape)}; expected a "
                "step that keeps the shape"
            )
        return pixels + (found - pixels.detach())


def with_straight_through(network: nn.Module, names: Sequence[str]) -> nn.Module:
    """A copy of a network whose named submodules gradients pass straight through; itself without names.

    A name is that of `named_modules()`, such as `quantize` or `steps.0`. Raises CleansetError for another.
    """
    if not names:
        return network
    found = copy.deepcopy(network)
    # a network of a module is in a wrapper, of which its author knows nothing
    inner = found.network if isinstance(found, CheckedNetwork) else found
    known = [name for name, _ in inner.named_modules() if name]
    for name in names:
        if name not in known:
            some = ", ".join(known[:MAX_NAMED]) + (", …" if len(known) > MAX_NAMED else "")
            raise CleansetError(f"straight through {shown(name)}: no such step of the network; expected some of {some}")
        parent, _, last = name.rpartition(".")
        setattr(inner.get_submodule(parent), last, StraightThrough(name, inner.get_submodule(name)))
    return found
