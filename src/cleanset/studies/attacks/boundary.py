"""The boundary attack as the library foolbox computes it, in fixed groups: it needs a model's predicted class only.

W. Brendel, J. Rauber, M. Bethge, "Decision-Based Adversarial Attacks" (ICLR 2018). Foolbox draws one change for all
images of a group, so that an image's result depends on which images are in its group.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import PixelPlanes
from cleanset.planning.work import Passes
from cleanset.plumbing.validation import EachOnce
from cleanset.studies.attacks.base import (
    AttackPasses,
    Ball,
    Group,
    Images,
    Known,
    L2Radius,
    Other,
    Parameters,
    Result,
    Steps,
    Subject,
    chosen,
    classes_of,
    globally_seeded,
    to_levels,
    to_pixels,
    to_unit,
)
from cleanset.studies.attacks.changes import RandomSpatialAttack, center_of

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Tensor

    from cleanset.scoring.differentiable import PixelNetwork

from cleanset.studies.attacks.base import group_seed


class BoundaryAttack(Parameters):
    """Foolbox's boundary attack in fixed groups; candidates outside the L2 ball are projected onto it.

    `queries`: the largest number for an image, which is done with its first candidate in the ball. The warm-up has
    5,000 steps of foolbox 1.5, which asks up to 25 a step, 21 on average; today's foolbox asks 1.1.

    `starts`: the files of the study among which the start is chosen; null: all. `after`: the change that the image
    begins with; null: the image itself.
    """

    effect = "from an image of another class towards the image, in an L2 ball (foolbox)"
    family = "nearest"
    uses = "classes"
    in_defaults = True
    small: ClassVar = {"queries": 14, "eps": 3, "group": 4, "after": None}
    libraries = ("foolbox",)
    reads_other_images = True
    kind: Literal["boundary"] = "boundary"
    images: Images | None = 100
    eps: L2Radius = 10.0
    queries: Steps = 105_000
    group: Group = 10
    starts: Annotated[list[str], EachOnce, Field(min_length=1)] | None = None
    after: RandomSpatialAttack | None = RandomSpatialAttack()

    @property
    def ball(self) -> Ball:
        """The ball around the image, or the one that it begins with."""
        return Ball("L2", self.eps)

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """The queries."""
        return AttackPasses(own=Passes(forward=self.queries))

    def prepare(self, known: Known) -> Mapping[str, Other]:
        """The start images with the given names, or all if there are no names. Raises CleansetError for an unknown
        name."""
        others = known.others()
        return chosen(
            self.starts,
            others,
            lambda name: (
                f"attack starts: {name} is not among the images that the model classifies correctly; "
                f"expected one of these {len(others)}: correct the name"
            ),
        )

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image.

        One that is misclassified at once stays unchanged, and so does one whose start the network takes for its class.
        """
        import torch

        centers = [center_of(subject, self.after, known) for subject in group]
        others = self.prepare(known)
        starts = [chosen_start(known.seed, subject, others) for subject in group]
        label = classes_of(group, network)
        with torch.inference_mode():
            correct, other = (network(to_unit(each, network)).argmax(dim=1) == label for each in (centers, starts))
        results = [Result(center, ASKED_BEFORE, center) for center in centers]
        places = [place for place in range(len(group)) if correct[place] and not other[place]]
        if places:
            seed = group_seed(self, group, known)
            found = self._searched(network, [(group[place], centers[place], starts[place]) for place in places], seed)
            for place, (candidate, queries) in zip(places, found, strict=True):
                results[place] = Result(candidate, queries, centers[place], seed)
        return results

    def _searched(
        self, network: "PixelNetwork", asked: Sequence[tuple[Subject, PixelPlanes, PixelPlanes]], seed: int
    ) -> list[tuple[PixelPlanes, int]]:
        """The candidates of images, given with center and start, and the queries of each."""
        import torch
        from foolbox.attacks.boundary_attack import BoundaryAttack as FoolboxAttack
        from foolbox.criteria import Misclassification
        from foolbox.models.pytorch import PyTorchModel

        group, centers, starts = zip(*asked, strict=True)
        images = to_unit(centers, network)
        label = classes_of(group, network)
        nearest = keep_nearest(network, images, label, self.ball, self.queries)
        model = PyTorchModel(nearest, bounds=(0, 1), device=network.device)
        with torch.no_grad(), globally_seeded(seed, network.device):
            try:
                FoolboxAttack(steps=self.queries).run(
                    model, images, Misclassification(label), starting_points=to_unit(starts, network)
                )
            except _AllDoneError:
                pass
            except ValueError as error:
                # a random model may classify a start correctly that it misclassified before
                if "not adversarial" not in str(error):
                    raise
        found = zip(to_levels(nearest.found), centers, nearest.queries.tolist(), strict=True)
        return [(to_pixels(levels, center, self.ball), queries) for levels, center, queries in found]


ASKED_BEFORE = 2
"""Queries of boundary before it searches: center and start."""


class _AllDoneError(Exception):
    """Every image of a group has a candidate in the ball, or has asked all its queries."""


def keep_nearest(network: "PixelNetwork", images: "Tensor", label: "Tensor", ball: Ball, most: int) -> Any:
    """The network, which keeps the nearest misclassified candidate of each of the `images`.

    `found`: these, by default the images themselves; `queries`: of each so far. An image with a candidate in the ball
    that is misclassified in 8 bits, too, or with `most` queries, asks nothing more; `_AllDoneError` is raised once no
    image does. The search is not in 8 bits: rounding would hide its small steps.
    """
    import torch

    centers = to_levels(images).round().astype(np.uint8)

    class KeepNearest(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.found = images.clone()
            self.queries = torch.full((len(images),), ASKED_BEFORE, device=images.device)
            self.distances = images.new_full((len(images),), torch.inf)
            self.is_done = torch.zeros_like(label).bool()

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            left = (~self.is_done & (self.queries < most)).nonzero()[:, 0]
            if not len(left):
                raise _AllDoneError
            asks_all = len(left) == len(pixels)
            logits: torch.Tensor = network(pixels if asks_all else pixels[left])
            self.queries[left] += 1
            if len(wrong := left[logits.argmax(dim=1) != label[left]]):
                self._keep(wrong, pixels[wrong])
            # what foolbox does with those that are done does not count
            return logits if asks_all else logits.new_zeros((len(pixels), logits.shape[1])).index_copy(0, left, logits)

        def _keep(self, wrong: torch.Tensor, pixels: torch.Tensor) -> None:
            """Keep misclassified candidates of some images that are nearer than those before."""
            distances = (pixels - images[wrong]).flatten(1).norm(dim=1)
            nearer = distances < self.distances[wrong]
            self.found[wrong[nearer]], self.distances[wrong[nearer]] = pixels[nearer], distances[nearer]
            if len(inside := wrong[nearer & (distances <= ball.eps)]):
                self._judge(inside)

        def _judge(self, inside: torch.Tensor) -> None:
            """Ask for candidates in the ball as stored."""
            levels = zip(to_levels(self.found[inside]), centers[inside.cpu().numpy()], strict=True)
            stored = to_unit([to_pixels(each, center, ball) for each, center in levels], network)
            self.queries[inside] += 1
            done = network(stored).argmax(dim=1) != label[inside]
            self.found[inside[done]], self.is_done[inside[done]] = stored[done], True

    return KeepNearest().eval()


def chosen_start(seed: int, subject: Subject, others: Mapping[str, Other]) -> PixelPlanes:
    """The pixels of one of the others of another class: the one with the smallest SHA-256 of seed and both names.

    Raises CleansetError if it is missing.
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
