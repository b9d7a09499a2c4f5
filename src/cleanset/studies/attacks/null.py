"""The null attack: the image as it is, through the same loop as all attacks."""

from collections.abc import Sequence
from dataclasses import dataclass

from cleanset.scoring.differentiable import PixelNetwork
from cleanset.studies.attacks.base import Ball, Result, Subject


@dataclass(frozen=True, slots=True)
class Null:
    """Changes nothing and asks nothing."""

    name: str = "none"
    group_size: int = 1

    @property
    def ball(self) -> Ball:
        """Of radius 0."""
        return Ball("Linf", 0.0)

    def __call__(self, network: PixelNetwork, group: Sequence[Subject]) -> list[Result]:
        """The images."""
        return [Result(subject.pixels, 0) for subject in group]
