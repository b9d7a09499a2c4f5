"""Square by the library pyautoattack: changes of random squares, kept where they make the margin smaller.

M. Andriushchenko, F. Croce, N. Flammarion, M. Hein, "Square Attack: a query-efficient black-box adversarial attack via
random search" (ECCV 2020). The library draws one square for all images of a group, so that an image's result depends
on which images are in its group. It computes in float32, whatever the network does.

AutoAttack by the library pyautoattack: F. Croce and M. Hein, "Reliable Evaluation of Adversarial Robustness" (2020).

It draws from global generators and goes on with those images of a group that withstood, so that an image's result
depends on which images are in its group. It computes in float32, whatever the network does.
"""

from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from cleanset.studies.attacks.base import (
    Ball,
    Draws,
    Fraction,
    Group,
    Known,
    Norm,
    Parameters,
    Result,
    Steps,
    Subject,
    Uses,
    collect_warnings,
    globally_seeded,
    group_seed,
    results_of_group,
    to_levels,
    to_unit,
    with_gradient,
)

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


# torch is imported when an attack searches, not when its parameters are read

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


# torch is imported when an attack searches, not when its parameters are read

Part = Literal["apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square"]
STANDARD: tuple[Part, ...] = ("apgd-ce", "apgd-t", "fab-t", "square")
"""The attacks of AutoAttack's standard version."""
TWO_CLASSES = ("apgd-ce", "fab", "square")
"""The attacks that two classes are enough for."""
MIN_CLASSES = 4
"""Classes that the DLR loss and targeted attacks need: they compare with the second and third of the other classes."""
TARGETS = 9
"""Classes that a targeted attack aims at, in the standard version."""


class AutoAttackAttack(Parameters):
    """The library's standard version; with fewer steps and queries it is a weaker attack.

    `draws`: the answers of a random model that each step of APGD takes the mean gradient of; the library's version for
    random models has 20.
    """

    uses: ClassVar[Uses] = "gradients"
    libraries: ClassVar[tuple[str, ...]] = ("pyautoattack",)
    kind: Literal["autoattack"] = "autoattack"
    norm: Norm = "Linf"
    eps: Fraction = 4 / 255
    attacks: Annotated[list[Part], Field(min_length=1, default_factory=lambda: list(STANDARD))]
    steps: Steps = 100
    square_queries: Steps = 5000
    draws: Draws = 1
    group: Group = 16

    @field_validator("attacks")
    @classmethod
    def _each_once(cls, attacks: list[Part]) -> list[Part]:
        if len(set(attacks)) != len(attacks):
            raise ValueError("expected each attack once")
        return attacks

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def search(self, known: Known) -> "AutoAttack":
        """The search."""
        return AutoAttack(
            self.norm, self.eps, tuple(self.attacks), self.steps, self.square_queries, known.seed, self.group,
            draws=self.draws,
        )  # fmt: skip


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
    draws: int = 1

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image, the image itself where all attacks failed; each with its share of the queries."""
        import torch

        images = to_unit([subject.pixels for subject in group], network).float()
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        with torch.no_grad():
            classes = network(images[:1]).shape[1]
        before, seed = network.queries, group_seed(self.seed, "autoattack", group)
        with (
            globally_seeded(seed, network.device),
            collect_warnings("auto-attack") as notices,
            redirect_stdout(StringIO()),
        ):
            adversary = self._adversary(network, classes, seed)
            found, _ = adversary.run_standard_evaluation(images, label, batch_size=len(group))
        queries = network.queries - before
        return results_of_group(to_levels(found), group, self.ball, queries, seed, notices)

    def _adversary(self, network: "PixelNetwork", classes: int, seed: int) -> Any:
        import pyautoattack

        from cleanset.scoring.differentiable import EightBit

        attacks = self.attacks if classes >= MIN_CLASSES else TWO_CLASSES
        # custom: the library's own versions would replace attacks, steps and restarts
        adversary = pyautoattack.AutoAttack(
            with_gradient(EightBit(network)), attacks=list(attacks), version="custom", device=network.device,
            eps=self.eps, norm=self.norm, seed=seed,
        )  # fmt: skip
        adversary.verbose = False
        for each in (adversary.apgd, adversary.apgd_targeted, adversary.fab):
            each.n_restarts, each.n_iter = 1, self.steps
        adversary.apgd.eot_iter = adversary.apgd_targeted.eot_iter = self.draws
        for targeted in (adversary.apgd_targeted, adversary.fab):
            targeted.n_target_classes = min(TARGETS, classes - 1)
        adversary.square.n_queries = self.square_queries
        return adversary
