"""Two checks of an attack as a whole: PGD in balls that grow up to all images, and random points of the ball.

N. Carlini et al., "On Evaluating Adversarial Robustness" (2019): an attack that is not bound must break everything, and
one that follows a gradient must find more than noise.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from cleanset.images.preprocessing import PixelPlanes
from cleanset.statistics.basics import Flags
from cleanset.studies.attacks.base import LEVELS, Ball, Known, Subject, seed_of
from cleanset.studies.attacks.gradient_attacks import STANDARD_LOSSES, PgdAttack
from cleanset.studies.attacks.threats import radius_text
from cleanset.studies.attacks.tries import Tries, errors, tries

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork

FACTORS = (0.5, 1, 2, 4)
"""The radii of the growing balls, relative to the probe's; the last ball has every image."""

GROWING_STEPS = 10
"""Largest number of steps in each of the growing balls, with each loss."""

NOISE_POINTS = 100
"""Random points of the ball for each image."""

RANDOM_POINTS = "random points"
"""Their name among the searches."""

WHOLE_CUBE = 1.0
"""The Linf radius with which every pixel may take any value."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AtRadius:
    """The images that PGD breaks in the Linf ball of a radius."""

    eps: float
    """The radius, of pixels in 0..1; 1: every pixel may take any value."""

    broken: int
    """How many of the correctly classified images."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class BySearch:
    """The images that one of the probe's searches breaks in its ball."""

    search: str
    broken: int
    """How many of the correctly classified images."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Baselines:
    """What PGD achieves in growing balls, and what each search, and random points, do in the probe's ball."""

    images: int
    """The number of correctly classified images; the other numbers count some of these."""

    by_radius: tuple[AtRadius, ...]
    """By radius, from the smallest."""

    by_search: tuple[BySearch, ...]
    """By search, from PGD of the most steps to that of one; then the others."""

    noise_points: int
    """Random points for each image."""

    noise_broken: int
    """The images that one of them breaks."""

    def texts(self) -> tuple[str, str]:
        """Both as sentences without a period."""
        found = [f"{each.broken} {_place(each.eps)}" for each in self.by_radius]
        return (
            f"of {self.images} correctly classified images, PGD of a few steps breaks {', '.join(found)}",
            f"{self.noise_points} random points of the probe's ball break {self.noise_broken} of {self.images}",
        )


def _place(eps: float) -> str:
    return "where every pixel is free" if eps == WHOLE_CUBE else f"in Linf {radius_text(eps)}"


def in_growing_balls(
    network: "PixelNetwork", subjects: Sequence[Subject], known: Known, pgd: PgdAttack
) -> dict[Ball, Tries]:
    """What PGD finds in each ball, from the smallest to the one of all images.

    It starts at the images, since a random place in a large ball would be noise, and ends with the first success.
    """
    found = {}
    for eps in radii(pgd.eps):
        attack = PgdAttack(
            eps=eps,
            steps=1,
            max_steps=GROWING_STEPS,
            random_start=False,
            losses=[*STANDARD_LOSSES],
            files=0,
            draws=pgd.draws,
            group=pgd.group,
        )
        found[attack.ball] = tries(network, subjects, known, attack)
    return found


def radii(eps: float) -> list[float]:
    """The radii of the growing balls around an image, in whole levels, of pixels in 0..1: the probe's among them."""
    levels = {round(factor * eps * LEVELS) for factor in FACTORS}
    return [each / LEVELS for each in sorted(levels | {LEVELS}) if 1 <= each <= LEVELS]


def random_points(network: "PixelNetwork", subjects: Sequence[Subject], known: Known, eps: float) -> Tries:
    """What random points of an Linf ball do: as many of its corners as other places, in whole levels.

    The candidate of an image is the first point that the network misclassifies, or else the first one.
    """
    success = []
    candidates = list[PixelPlanes]()
    for subject in subjects:
        points = drawn_points(subject, round(eps * LEVELS), seed_of(known.seed, "attack", "noise", subject.image_id))
        is_broken = np.flatnonzero(errors(network, [subject] * len(points), points))
        candidates.append(points[is_broken[0] if len(is_broken) else 0])
        success.append(len(is_broken) > 0 and not errors(network, [subject], [subject.pixels])[0])
    return Tries(np.array(success, bool), candidates, [NOISE_POINTS] * len(subjects))


def drawn_points(subject: Subject, radius: int, seed: int) -> list[PixelPlanes]:
    """NOISE_POINTS random images in the Linf ball of `radius` levels around an image."""
    generator = np.random.default_rng(seed)
    found = []
    for place in range(NOISE_POINTS):
        # a corner is farther in L2 than other places by a factor of the root of 3
        values = (-radius, radius) if place % 2 else np.arange(-radius, radius + 1)
        change = generator.choice(np.asarray(values), subject.pixels.shape)
        found.append((subject.pixels + change).clip(0, LEVELS).astype(np.uint8))
    return found


def baselines(success: Mapping[float, Flags], searches: Mapping[str, Flags], correct: Flags) -> Baselines:
    """All in numbers; `success` by radius, `searches` by name."""
    return Baselines(
        images=int(correct.sum()),
        by_radius=tuple(AtRadius(eps=eps, broken=int(success[eps].sum())) for eps in sorted(success)),
        by_search=tuple(BySearch(search=name, broken=int(flags.sum())) for name, flags in searches.items()),
        noise_points=NOISE_POINTS,
        noise_broken=int(searches[RANDOM_POINTS].sum()),
    )
