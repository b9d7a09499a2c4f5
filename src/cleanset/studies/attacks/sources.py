"""Other models as networks on the pixels that the attacked model sees, for images that are made on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cleanset.scoring.differentiable import PixelNetwork, wrap_network
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Precision


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
