"""The worst of the common corruptions at severity 1, by the largest logit of another class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cleanset.scoring.differentiable import PixelNetwork
from cleanset.statistics.seeds import image_seed
from cleanset.studies.attacks.base import Ball, Pixels, Result, Subject, to_unit
from cleanset.studies.robustness.names import ALL_CORRUPTIONS

NOT_PUBLISHED = ("snow", "frost")
"""The published kit leaves these out."""
PUBLISHED = tuple(name for name in ALL_CORRUPTIONS if name not in NOT_PUBLISHED)


@dataclass(frozen=True, slots=True)
class CommonCorruptions:
    """One corruption of what the model sees; which one, the network decides."""

    corruptions: tuple[str, ...]
    seed: int
    severity: int = 1
    name: str = "common_corruptions"
    group_size: int = 1
    ball: Ball | None = None

    def __call__(self, network: PixelNetwork, group: Sequence[Subject]) -> list[Result]:
        """The worst corruption of each image; of equally bad ones the first."""
        return [self._worst(network, subject) for subject in group]

    def _worst(self, network: PixelNetwork, subject: Subject) -> Result:
        corrupted = [self._corrupted(subject, name) for name in self.corruptions]
        with torch.inference_mode():
            logits = network(to_unit(corrupted, network))
            logits[:, subject.class_index] = -torch.inf
            worst = int(logits.max(dim=1).values.argmax())
        return Result(corrupted[worst], len(corrupted))

    def _corrupted(self, subject: Subject, name: str) -> Pixels:
        from cleanset.studies.robustness.corruptions.changes import corrupted

        image = np.ascontiguousarray(subject.pixels.transpose(1, 2, 0))
        (changed,) = corrupted(image, name, [self.severity], image_seed(self.seed, subject.image_id))
        return np.ascontiguousarray(changed.transpose(2, 0, 1))
