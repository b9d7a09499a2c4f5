"""The worst of the common corruptions at severity 1, by the largest logit of another class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from cleanset.statistics.seeds import image_seed
from cleanset.studies.attacks.base import Ball, Known, Parameters, Pixels, Result, Subject, Uses, to_unit
from cleanset.studies.robustness.corruptions.params import ALL_CORRUPTIONS

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork

NOT_PUBLISHED = ("snow", "frost")
"""The published kit leaves these out."""
PUBLISHED = tuple(name for name in ALL_CORRUPTIONS if name not in NOT_PUBLISHED)


class CommonCorruptionsAttack(Parameters):
    """`corruptions`: 17, those of the published kit, without snow and frost; or all 19."""

    libraries: ClassVar[tuple[str, ...]] = ("imagecorruptions-imaug",)
    uses: ClassVar[Uses] = "classes"
    kind: Literal["common_corruptions"] = "common_corruptions"
    corruptions: Literal[17, 19] = 17
    severity: Annotated[int, Field(ge=1, le=5)] = 1

    def search(self, known: Known) -> "CommonCorruptions":
        """The search."""
        names = PUBLISHED if self.corruptions == len(PUBLISHED) else ALL_CORRUPTIONS
        return CommonCorruptions(names, known.seed, self.severity)


@dataclass(frozen=True, slots=True)
class CommonCorruptions:
    """One corruption of what the model sees; which one, the network decides."""

    corruptions: tuple[str, ...]
    seed: int
    severity: int = 1
    name: str = "common_corruptions"
    group_size: int = 1
    ball: Ball | None = None

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """The worst corruption of each image; of equally bad ones the first."""
        return [self._worst(network, subject) for subject in group]

    def _worst(self, network: "PixelNetwork", subject: Subject) -> Result:
        import torch

        corrupted = [self._corrupted(subject, name) for name in self.corruptions]
        with torch.inference_mode():
            logits = network(to_unit(corrupted, network))
            logits[:, subject.class_index] = -torch.inf
            worst = int(logits.max(dim=1).values.argmax())
        return Result(corrupted[worst], len(corrupted))

    def _corrupted(self, subject: Subject, name: str) -> Pixels:
        from cleanset.studies.robustness.corruptions.changes import corrupted_images

        image = np.ascontiguousarray(subject.pixels.transpose(1, 2, 0))
        (changed,) = corrupted_images(image, name, [self.severity], image_seed(self.seed, subject.image_id))
        return np.ascontiguousarray(changed.transpose(2, 0, 1))
