"""An attack as a stranger would write it: one module."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cleanset.planning.work import Passes
from cleanset.studies.attacks.base import (
    AttackPasses,
    Ball,
    Family,
    Known,
    Parameters,
    Result,
    Subject,
    Uses,
    margins,
    to_unit,
)

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


class ToyAttack(Parameters):
    """Darker by `levels` of 255."""

    effect: ClassVar[str] = "darker"
    family: ClassVar[Family] = "ball"
    uses: ClassVar[Uses] = "logits"
    in_defaults: ClassVar[bool] = False
    small: ClassVar[Mapping[str, object]] = {}
    libraries: ClassVar[tuple[str, ...]] = ("pillow",)
    kind: Literal["toy"] = "toy"
    levels: Annotated[int, Field(ge=1, le=255)] = 9

    @property
    def ball(self) -> Ball:
        return Ball("Linf", self.levels / 255)

    def passes(self, sources: int, classes: int) -> AttackPasses:
        return AttackPasses(own=Passes(forward=1))

    @property
    def group_size(self) -> int:
        return 2

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        import torch

        found = [subject.pixels - subject.pixels.clip(max=self.levels) for subject in group]
        with torch.inference_mode():
            margins(network(to_unit(found, network)), torch.zeros(len(found), dtype=torch.int64))
        return [Result(each, 1) for each in found]
