"""The null attack: the unchanged image goes through the same loop as all attacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from cleanset.studies.attacks.base import Ball, Known, Parameters, Result, Subject

if TYPE_CHECKING:  # torch is imported when an attack searches, not when its parameters are read
    from cleanset.scoring.differentiable import PixelNetwork


class NoAttack(Parameters):
    """The null attack, which changes nothing."""

    changes_images: ClassVar[bool] = False
    kind: Literal["none"] = "none"

    def search(self, known: Known) -> "Null":
        """The search."""
        return Null()


@dataclass(frozen=True, slots=True)
class Null:
    """A search that changes nothing and makes no query."""

    name: str = "none"
    group_size: int = 1

    @property
    def ball(self) -> Ball:
        """The image alone."""
        return Ball("Linf", 0.0)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """The images."""
        return [Result(subject.pixels, 0) for subject in group]
