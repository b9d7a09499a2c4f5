"""Gaussian noise of random strength."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cleanset.studies.training.recipes.base import Learnt, Standard


@dataclass(frozen=True)
class GaussianNoise(Standard):
    """Cross-entropy on images with noise, whose standard deviation is uniform from 0 to `largest`, of each image."""

    largest: float = 0.2

    def __call__(
        self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator, epoch: int = 1
    ) -> Learnt:
        """The mean cross-entropy; pixels stay in 0..1."""
        return super().__call__(network, self.noisy(images, generator), labels, generator, epoch)

    def noisy(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """The images, in 0..1 with any number of dimensions, with noise."""
        device = generator.device
        strengths = torch.rand(len(images), *[1] * (images.ndim - 1), generator=generator, device=device) * self.largest
        noise = torch.randn(images.shape, generator=generator, device=device) * strengths
        return (images + noise.to(images)).clamp(0, 1)
