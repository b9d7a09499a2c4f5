"""AutoAttack by the library pyautoattack: F. Croce and M. Hein, "Reliable Evaluation of Adversarial Robustness" (2020).

It draws from global generators and goes on with those images of a group that withstood, so that an image's result
depends on which images are in its group. It computes in float32, whatever the network does.
"""

from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import torch
from torch import Tensor, nn

from cleanset.scoring.differentiable import EightBit, PixelNetwork
from cleanset.studies.attacks.base import (
    Ball,
    Norm,
    Result,
    Subject,
    group_seed,
    rounded,
    to_levels,
    to_unit,
)
from cleanset.studies.attacks.libraries import globally_seeded, heard

TWO_CLASSES = ("apgd-ce", "fab", "square")
"""Those that need no third class."""
FEWEST_CLASSES = 4
"""Of the DLR loss and of targeted attacks, which compare with the second and third of the other classes."""
TARGETS = 9
"""Classes that a targeted attack aims at, in the standard version."""


@dataclass(frozen=True, slots=True)
class AutoAttack:
    """The library's attacks one after the other, each on what withstood the ones before.

    `steps` of APGD and FAB, `square_queries` of Square; the standard version has 100 and 5,000. With fewer than four
    classes TWO_CLASSES replace `attacks`.
    """

    norm: Norm
    eps: float
    attacks: tuple[str, ...]
    steps: int
    square_queries: int
    seed: int
    group_size: int
    name: str = "autoattack"

    @property
    def ball(self) -> Ball:
        """Around the image."""
        return Ball(self.norm, self.eps)

    def __call__(self, network: PixelNetwork, group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image, the image itself where all attacks failed; each with its share of the queries."""
        images = to_unit([subject.pixels for subject in group], network).float()
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        with torch.no_grad():
            classes = network(images[:1]).shape[1]
        before, seed = network.queries, group_seed(self.seed, "autoattack", group)
        with globally_seeded(seed, network.device), heard("auto-attack") as notices, redirect_stdout(StringIO()):
            adversary = self._adversary(network, classes, seed)
            found, _ = adversary.run_standard_evaluation(images, label, batch_size=len(group))
        queries = -(-(network.queries - before) // len(group))
        levels = to_levels(found)
        return [
            Result(rounded(levels[place], subject.pixels, self.ball), queries, seed=seed, notices=tuple(notices))
            for place, subject in enumerate(group)
        ]

    def _adversary(self, network: PixelNetwork, classes: int, seed: int) -> Any:
        import pyautoattack

        attacks = self.attacks if classes >= FEWEST_CLASSES else TWO_CLASSES
        adversary = pyautoattack.AutoAttack(
            WithGradient(EightBit(network)), attacks=list(attacks), version="custom", device=network.device,
            eps=self.eps, norm=self.norm, seed=seed,
        )  # fmt: skip
        adversary.verbose = False
        for each in (adversary.apgd, adversary.apgd_targeted, adversary.fab):
            each.n_restarts, each.n_iter = 1, self.steps
        for targeted in (adversary.apgd_targeted, adversary.fab):
            targeted.n_target_classes = min(TARGETS, classes - 1)
        adversary.square.n_queries = self.square_queries
        return adversary


class WithGradient(nn.Module):
    """A network whose logits have a gradient, 0 where none flows: the library stops where there is none at all."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._network = network
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self._network(pixels)
        if pixels.requires_grad and not logits.requires_grad:
            logits = logits + 0 * pixels.flatten(1).sum(dim=1, keepdim=True)
        return logits
