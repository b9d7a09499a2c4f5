"""The boundary attack as foolbox makes it: it needs the predicted class only.

W. Brendel, J. Rauber, M. Bethge, "Decision-Based Adversarial Attacks" (ICLR 2018). Foolbox draws one direction for all
images of a group, so that an image's result depends on which images are in its group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import torch

from cleanset.errors import CleansetError
from cleanset.scoring.differentiable import EightBit, PixelNetwork
from cleanset.studies.attacks.base import (
    Ball,
    Pixels,
    Result,
    Subject,
    group_seed,
    rounded,
    to_levels,
    to_unit,
)
from cleanset.studies.attacks.libraries import globally_seeded
from cleanset.studies.attacks.spsa import Start


@dataclass(frozen=True, slots=True)
class Other:
    """An image that the model classifies correctly, from which the attack may come."""

    class_index: int
    pixels: Callable[[], Pixels]


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
        """Around the image, or the one that it begins with."""
        return Ball("L2", self.eps)

    def __call__(self, network: PixelNetwork, group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image.

        One that is misclassified at once stays as it is, and so does one whose start the network takes for its class.
        """
        centers = [subject.pixels if self.start is None else self.start(subject) for subject in group]
        starts = [chosen_start(self.seed, subject, self.others) for subject in group]
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        with torch.inference_mode():
            correct, other = (network(to_unit(each, network)).argmax(dim=1) == label for each in (centers, starts))
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
        self, network: PixelNetwork, asked: Sequence[tuple[Subject, Pixels, Pixels]], seed: int
    ) -> list[Pixels]:
        """The candidates of images, given with center and start."""
        from foolbox.attacks.boundary_attack import BoundaryAttack
        from foolbox.criteria import Misclassification
        from foolbox.models.pytorch import PyTorchModel

        group, centers, starts = zip(*asked, strict=True)
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
        model = PyTorchModel(EightBit(network), bounds=(0, 1), device=network.device)
        criterion = Misclassification(label)
        with torch.no_grad(), globally_seeded(seed, network.device):
            try:
                found = BoundaryAttack(steps=self.steps).run(
                    model, to_unit(centers, network), criterion, starting_points=to_unit(starts, network)
                )
            except ValueError as error:
                if "not adversarial" not in str(error):
                    raise
                return list(centers)  # the answers are random
        return [rounded(levels, center, self.ball) for levels, center in zip(to_levels(found), centers, strict=True)]
