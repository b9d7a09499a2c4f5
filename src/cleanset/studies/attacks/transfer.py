"""Images that PGD makes on other models, tried on the attacked one, which is asked for its answers alone.

N. Papernot, P. McDaniel, I. Goodfellow, "Transferability in Machine Learning: from Phenomena to Black-Box Attacks"
(2016). What misleads one model often misleads another, and does so however its own gradients are hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from cleanset.errors import CleansetError
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
    Uses,
    margins,
    to_unit,
)
from cleanset.studies.attacks.pgd import Pgd
from cleanset.validation import Role, shown

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


class TransferAttack(Parameters):
    """`sources`: the models that images are made on; null: all others. `steps` of PGD, each of eps / 4."""

    uses: ClassVar[Uses] = "classes"
    kind: Literal["transfer"] = "transfer"
    norm: Norm = "Linf"
    eps: Fraction = 4 / 255
    steps: Steps = 20
    sources: Annotated[list[Role], Field(min_length=1)] | None = None
    group: Group = 16

    @field_validator("sources")
    @classmethod
    def _each_once(cls, sources: list[str] | None) -> list[str] | None:
        if sources is not None and len(set(sources)) < len(sources):
            raise ValueError("a model twice; expected each once")
        return sources

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def search(self, known: Known) -> "Transfer":
        """The search. Raises CleansetError where there is no other model, or none of a name."""
        found = chosen_sources(self.sources, known.sources())
        return Transfer(Pgd(self.norm, self.eps, self.steps, self.eps / 4, True, known.seed, self.group), found)


def chosen_sources(wanted: list[str] | None, known: "Mapping[str, PixelNetwork]") -> "Mapping[str, PixelNetwork]":
    """The models that are named; all without names. Raises CleansetError for another name, and if there is none."""
    if not known:
        raise CleansetError(
            "transfer: no other model to make images on; expected at least one beside the model that is attacked"
        )
    if wanted is None:
        return known
    for name in wanted:
        if name not in known:
            raise CleansetError(f"transfer: no other model {shown(name)}; expected some of {', '.join(known)}")
    return {name: known[name] for name in wanted}


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """PGD on each source; of an image's candidates the one with the largest margin of another class is kept."""

    pgd: Pgd
    sources: "Mapping[str, PixelNetwork]"
    name: str = "transfer"

    @property
    def group_size(self) -> int:
        """Number of images that are searched for together."""
        return self.pgd.group_size

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return self.pgd.ball

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image; a query for each source."""
        import torch

        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        found, reached = [], []
        for source in self.sources.values():
            results = self.pgd(source, group)
            with torch.inference_mode():
                logits = network(to_unit([result.candidate for result in results], network))
            found.append(results)
            reached.append(margins(logits, label).tolist())
        best = [max(range(len(found)), key=lambda source: reached[source][place]) for place in range(len(group))]
        return [
            Result(found[source][place].candidate, len(found), seed=found[source][place].seed)
            for place, source in enumerate(best)
        ]
