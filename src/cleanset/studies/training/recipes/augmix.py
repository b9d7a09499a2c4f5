"""AugMix: D. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty" (2020).

The mixtures are torchvision's; with consistency, the divergence between the predictions of an image and two mixtures
of it is learnt, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2

from cleanset.studies.training.recipes.base import Learnt

MIXTURES = 2
"""Mixtures of an image whose predictions are compared with that of the image."""


@dataclass(frozen=True)
class AugmixTraining:
    """Cross-entropy and consistency; see params.Augmix. Without `consistency`, cross-entropy on one mixture."""

    width: int = 3
    depth: int | None = None
    alpha: float = 1.0
    severity: int = 3
    consistency: float | None = 12.0
    all_ops: bool = False
    group: int = 1

    def views(self, images: Tensor) -> Tensor:
        """The image and two mixtures of it, or one mixture alone; images of a group share their operations."""
        augmix = v2.AugMix(self.severity, self.width, self.depth or -1, self.alpha, self.all_ops)

        def mixed() -> Tensor:
            return torch.cat([augmix(group) for group in torch.split(images, self.group)])

        if self.consistency is None:
            return mixed()[:, None]
        return torch.stack([images, *(mixed() for _ in range(MIXTURES))], dim=1)

    def __call__(
        self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator, epoch: int = 1
    ) -> Learnt:
        """The mean cross-entropy of the first view, and `consistency` times the mean divergence of all of them."""
        # all views in one pass, as published: batch norm sees them together
        logits = network(images.transpose(0, 1).flatten(0, 1)).view(images.shape[1], len(images), -1)
        loss = functional.cross_entropy(logits[0], labels)
        if self.consistency is not None:
            loss = loss + self.consistency * jensen_shannon(logits.softmax(dim=-1).unbind())
        return Learnt(loss, logits[0])


def jensen_shannon(distributions: Sequence[Tensor]) -> Tensor:
    """The Jensen-Shannon divergence, in nats, of distributions of shape (n, classes): the mean over n.

    The mean of their Kullback-Leibler divergences from their mean: 0 for equal ones, at most the logarithm of their
    number.
    """
    stacked = torch.stack(list(distributions))
    # as the authors do: a share that rounds to 0 has no logarithm
    middle = stacked.mean(dim=0).clamp(1e-7, 1).log()
    found = [functional.kl_div(middle, each, reduction="batchmean") for each in stacked]
    return torch.stack(found).mean()
