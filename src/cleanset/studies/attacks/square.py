"""Square by the library pyautoattack: changes of random squares, kept where they make the margin smaller.

M. Andriushchenko, F. Croce, N. Flammarion, M. Hein, "Square Attack: a query-efficient black-box adversarial attack via
random search" (ECCV 2020). The library draws one square for all images of a group, so that an image's result depends
on which images are in its group. It computes in float32, whatever the network does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from cleanset.studies.attacks.base import (
    Ball,
    Fraction,
    Group,
    Known,
    Norm,
    Parameters,
    Result,
    Steps,
    Subject,
    group_seed,
    to_levels,
    to_unit,
)
from cleanset.studies.attacks.libraries import globally_seeded, results_of_group

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork

FIRST_SHARE = 0.8
"""Share of the pixels that the first square covers, as in AutoAttack."""


class SquareAttack(Parameters):
    """`queries`: the largest number for an image, over which the size of the squares falls."""

    libraries: ClassVar[tuple[str, ...]] = ("pyautoattack",)
    kind: Literal["square"] = "square"
    norm: Norm = "Linf"
    eps: Fraction = 4 / 255
    queries: Steps = 5000
    group: Group = 16

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def search(self, known: Known) -> "Square":
        """The search."""
        return Square(self.norm, self.eps, self.queries, known.seed, self.group)


@dataclass(frozen=True, slots=True)
class Square:
    """The library's random search, on those images of a group that the network classifies correctly."""

    norm: Norm
    eps: float
    queries: int
    seed: int
    group_size: int
    name: str = "square"

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image, the image itself where it failed; each with its share of the queries."""
        import torch
        from pyautoattack.square import SquareAttack as LibrarySquare

        from cleanset.scoring.differentiable import EightBit

        images = to_unit([subject.pixels for subject in group], network).float()
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        before, seed = network.queries, group_seed(self.seed, "square", group)
        # rescaled: the library's sizes of squares are those of 10,000 queries
        attack = LibrarySquare(
            EightBit(network), norm=self.norm, n_queries=self.queries, eps=self.eps, p_init=FIRST_SHARE, seed=seed,
            resc_schedule=True, device=network.device,
        )  # fmt: skip
        with torch.no_grad(), globally_seeded(seed, network.device):
            levels = to_levels(attack.perturb(images, label))
        return results_of_group(levels, group, self.ball, network.queries - before, seed)
