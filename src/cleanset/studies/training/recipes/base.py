"""The parts of every recipe: views of an image, made while it is read, and the loss that is learnt from them."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional


class Learnt(NamedTuple):
    """A loss, a scalar with its graph, and the logits whose accuracy is shown, (n, classes)."""

    loss: Tensor
    logits: Tensor


class Recipe(Protocol):
    """A way of learning classes from a batch."""

    def views(self, images: Tensor) -> Tensor:
        """The views of images, uint8 (n, 3, size, size), as uint8 of shape (n, views, 3, size, size).

        It draws from torch's global generator, which is seeded for each batch.
        """

    def __call__(
        self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator, epoch: int = 1
    ) -> Learnt:
        """The loss of `images`, views in 0..1 of shape (n, views, 3, size, size), with labels of shape (n)."""


class Standard:
    """Cross-entropy on the images as they are."""

    def views(self, images: Tensor) -> Tensor:
        """The images alone."""
        return images[:, None]

    def __call__(
        self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator, epoch: int = 1
    ) -> Learnt:
        """The mean cross-entropy."""
        logits = network(images[:, 0])
        return Learnt(functional.cross_entropy(logits, labels), logits)
