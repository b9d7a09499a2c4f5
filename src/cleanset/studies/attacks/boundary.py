"""The boundary attack as foolbox makes it: it needs the predicted class only.

W. Brendel, J. Rauber, M. Bethge, "Decision-Based Adversarial Attacks" (ICLR 2018). Foolbox draws one direction for all
images of a group, so that an image's result depends on which images are in its group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from cleanset.errors import CleansetError
from cleanset.studies.attacks.base import (
    Ball,
    Fraction,
    Group,
    Images,
    Known,
    Other,
    Parameters,
    Pixels,
    Result,
    Steps,
    Subject,
    Uses,
    globally_seeded,
    group_seed,
    to_levels,
    to_pixels,
    to_unit,
)
from cleanset.studies.attacks.spatial import RandomSpatialAttack
from cleanset.studies.attacks.spsa import Start, start_after

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


class BoundaryAttack(Parameters):
    """`starts`: the files of the study among which the start is chosen; null: all."""

    libraries: ClassVar[tuple[str, ...]] = ("foolbox",)
    uses: ClassVar[Uses] = "classes"
    kind: Literal["boundary"] = "boundary"
    images: Images | None = 100
    eps: Fraction = 10.0
    steps: Steps = 5000
    group: Group = 10
    starts: Annotated[list[str], Field(min_length=1)] | None = None
    after: RandomSpatialAttack | None = RandomSpatialAttack()

    @field_validator("starts")
    @classmethod
    def _each_once(cls, starts: list[str] | None) -> list[str] | None:
        if starts is not None and len(set(starts)) < len(starts):
            raise ValueError("a file twice; expected each once")
        return starts

    @property
    def ball(self) -> Ball:
        """The ball around the image, or the one that it begins with."""
        return Ball("L2", self.eps)

    def search(self, known: Known) -> "Boundary":
        """The search. Raises CleansetError for a start that is not among the others."""
        others = chosen_others(self.starts, known.others())
        return Boundary(self.eps, self.steps, known.seed, self.group, others, start_after(self.after, known))


def chosen_others(starts: list[str] | None, others: Mapping[str, Other]) -> Mapping[str, Other]:
    """The others that are named; all without names. Raises CleansetError for another name."""
    if starts is None:
        return others
    for name in starts:
        if name not in others:
            raise CleansetError(
                f"attack starts: {name} is not among the images that the model classifies correctly; "
                f"expected one of these {len(others)}: correct the name"
            )
    return {name: others[name] for name in starts}


def chosen_start(seed: int, subject: Subject, others: Mapping[str, Other]) -> Pixels:
    """The pixels of one of the others of another class: the one with the smallest SHA-256 of seed and both names.

    Raises CleansetError if there is none.
    """
    names = [name for name, other in others.items() if other.class_index != subject.class_index]
    if not names:
        raise CleansetError(
            f"{subject.name}: no image of another class that the model classifies correctly; expected one to start "
            "boundary from: name other images"
        )
    # by digest, so that the choice does not depend on the order of the images
    first = min(names, key=lambda name: sha256(f"{seed} {subject.name} {name}".encode()).digest())
    return others[first].pixels()


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """Foolbox's boundary attack in fixed groups; what stays outside the L2 ball is projected onto it."""

    eps: float
    steps: int
    seed: int
    group_size: int
    others: Mapping[str, Other]
    start: Start | None = None
    name: str = "boundary"

    @property
    def ball(self) -> Ball:
        """The ball around the image, or the one that it begins with."""
        return Ball("L2", self.eps)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image.

        One that is misclassified at once stays as it is, and so does one whose start the network takes for its class.
        """
        import torch

        centers = [subject.pixels if self.start is None else self.start(subject) for subject in group]
        starts = [chosen_start(self.seed, subject, self.others) for subject in group]
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        with torch.inference_mode():
            correct, other = (network(to_unit(each, network)).argmax(dim=1) == label for each in (centers, starts))
        # two queries each: center and start
        results = [Result(center, 2, center) for center in centers]
        places = [place for place in range(len(group)) if correct[place] and not other[place]]
        if places:
            before, seed = network.queries, group_seed(self.seed, "boundary", group)
            found = self._searched(network, [(group[place], centers[place], starts[place]) for place in places], seed)
            queries = 2 + (network.queries - before) // len(places)
            for place, candidate in zip(places, found, strict=True):
                results[place] = Result(candidate, queries, centers[place], seed)
        return results

    def _searched(
        self, network: "PixelNetwork", asked: Sequence[tuple[Subject, Pixels, Pixels]], seed: int
    ) -> list[Pixels]:
        """The candidates of images, given with center and start."""
        import torch
        from foolbox.attacks.boundary_attack import BoundaryAttack as FoolboxAttack
        from foolbox.criteria import Misclassification
        from foolbox.models.pytorch import PyTorchModel

        from cleanset.scoring.differentiable import EightBit

        group, centers, starts = zip(*asked, strict=True)
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        model = PyTorchModel(EightBit(network), bounds=(0, 1), device=network.device)
        criterion = Misclassification(label)
        with torch.no_grad(), globally_seeded(seed, network.device):
            try:
                found = FoolboxAttack(steps=self.steps).run(
                    model, to_unit(centers, network), criterion, starting_points=to_unit(starts, network)
                )
            except ValueError as error:
                if "not adversarial" not in str(error):
                    raise
                # a random model may classify a start correctly that it misclassified before
                return list(centers)
        return [to_pixels(levels, center, self.ball) for levels, center in zip(to_levels(found), centers, strict=True)]
