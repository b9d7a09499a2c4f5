"""Predictions among the classes of the images alone, for sets of natural shifts that have fewer than 1,000.

ImageNet-R and ImageNet-A have images of 200 classes, and are measured so: D. Hendrycks and others, "The Many Faces of
Robustness" (ICCV 2021) and "Natural Adversarial Examples" (CVPR 2021).
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.shards import fingerprint

BELOW = 1000.0
"""The distance in nats that the logits of other classes are put below the smallest: their probability is 0."""


class AmongClasses(nn.Module):
    """A network whose predictions are among some classes; the logits of the others are far below."""

    is_other: Tensor

    def __init__(self, network: nn.Module, classes: Sequence[int]) -> None:
        super().__init__()
        self.network = network
        is_other = torch.ones(CLASSES, dtype=torch.bool)
        is_other[list(classes)] = False
        # a buffer, so that it moves to a device with the weights
        self.register_buffer("is_other", is_other, persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, 1000)."""
        logits: Tensor = self.network(pixels)
        lowest = logits.amin(dim=1, keepdim=True) - BELOW
        return torch.where(self.is_other, lowest, logits)


def among_classes(model: LoadedModel, classes: Sequence[int]) -> LoadedModel:
    """The model with predictions among some class indices."""
    return replace(model, network=AmongClasses(model.network, classes).eval())


def classes_digest(classes: Sequence[int]) -> str:
    """A short digest of class indices."""
    return fingerprint(" ".join(map(str, sorted(classes))))
