"""Square and AutoAttack as the library pyautoattack computes them, group by group.

It always computes in float32, and draws one change for all images of a group, or continues with the ones
that withstood, so that an image's result depends on which images are in its group.

Square: M. Andriushchenko, F. Croce, N. Flammarion, M. Hein, "Square Attack: a query-efficient black-box adversarial
attack via random search" (ECCV 2020). AutoAttack: F. Croce and M. Hein, "Reliable Evaluation of Adversarial Robustness"
(2020).
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from cleanset.images.preprocessing import PixelPlanes
from cleanset.planning.work import NO_PASSES, Passes
from cleanset.plumbing.validation import EachOnce
from cleanset.studies.attacks.ascent import FINISHING_FILES, Answers, filled, finished, nearest_files
from cleanset.studies.attacks.base import (
    LEVELS,
    AttackPasses,
    Ball,
    Group,
    InBall,
    Known,
    NumberOfDraws,
    Result,
    Steps,
    Subject,
    classes_of,
    globally_seeded,
    group_seed,
    margins,
    to_levels,
    to_pixels,
    to_unit,
)

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from cleanset.scoring.differentiable import PixelNetwork


FIRST_SHARE = 0.8
"""Share of the pixels that the first square covers, as in AutoAttack."""


Search = Callable[["Tensor", "Tensor"], "Tensor"]
"""A library's attack, which makes candidates of images and their classes."""


class PyAutoAttack(InBall):
    """Attacks of pyautoattack on those images of a group that the network classifies correctly, in float32.

    Each continues with the files that withstood the ones before. The candidate is the file in the ball that is
    nearest to what an attack leads to, if it is misclassified; otherwise the one with the largest margin of that and
    some files that fill the ball.
    """

    libraries = ("pyautoattack",)

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image, the image itself if it is misclassified; each with its share of the queries."""
        import torch

        pixels = [subject.pixels for subject in group]
        images = to_unit(pixels, network).float()
        label = classes_of(group, network)
        seed = group_seed(self, group, known)
        before = network.queries
        with torch.no_grad():
            logits = network(images)
        files = images.clone()
        clean = margins(logits, label)
        # a failure shows how far was searched: it counts above the image itself
        largest = torch.where(clean > 0, clean, -torch.inf)
        shares = {"clean": float((clean <= 0).double().mean())}
        with (
            globally_seeded(seed, network.device),
            collect_warnings("auto-attack") as notices,
            redirect_stdout(StringIO()),
        ):
            for part in self._parts(logits.shape[1]):
                left = (largest <= 0).nonzero()[:, 0]
                if not len(left):
                    break
                subset = [pixels[place] for place in left.tolist()]
                found, margin = self._found(part, network, subset, label[left], seed)
                better = margin > largest[left]
                files[left[better]] = found[better]
                largest[left[better]] = margin[better]
                shares[part] = float((largest <= 0).double().mean())
            _check_square(shares)
        asked = -(-(network.queries - before) // len(group))
        return [Result(to_pixels(levels), asked, seed=seed, notices=tuple(notices)) for levels in to_levels(files)]

    @abstractmethod
    def _parts(self, classes: int) -> "Sequence[Part]":
        """The attacks of the library that are run, for a model of a number of classes."""

    @abstractmethod
    def _library(self, part: "Part", network: "nn.Module", classes: int, device: "torch.device", seed: int) -> Search:
        """One of these attacks."""

    def _found(
        self, part: "Part", network: "PixelNetwork", pixels: Sequence[PixelPlanes], label: "Tensor", seed: int
    ) -> "tuple[Tensor, Tensor]":
        """The files that an attack leads to, as pixels in 0..1, and their margins."""
        import torch

        images = to_unit(pixels, network).float()
        with torch.no_grad():
            classes = network(images[:1]).shape[1]
        if part == "square":
            # it ends with its first success, which would seldom be one of a file
            asked = on_files(network, images, label, self.ball)
            torch.no_grad()(self._library(part, asked, classes, network.device, seed))(images, label)
            return asked.files, asked.margins
        search = self._library(part, with_gradient(network), classes, network.device, seed)
        places = search(images, label).detach()
        draws = int(getattr(self, "draws", 1))
        files = nearest_files(pixels, places, self.ball)
        margin = Answers(network=network, label=label, draws=draws).margins(files)
        left = (margin <= 0).nonzero()[:, 0]
        if len(left):
            answers = Answers(network=network, label=label[left], draws=draws)
            _, ascent = answers(places[left])
            withstood = [pixels[place] for place in left.tolist()]
            files[left], margin[left] = finished(answers, withstood, places[left], ascent, self.ball, FINISHING_FILES)
        return files, margin


def _check_square(shares: Mapping[str, float]) -> None:
    from pyautoattack import checks

    checks.check_square_sr(dict(shares), logger=logging.getLogger("auto-attack"))


class SquareAttack(PyAutoAttack):
    """The library's random search, which is given the answers to files.

    `queries`: the largest number for an image, over which the size of the squares falls.
    """

    effect = "random squares that make the margin smaller, in an Linf or L2 ball (pyautoattack)"
    uses = "logits"
    in_defaults = True
    small: ClassVar = {"queries": 60, "group": 4}
    kind: Literal["square"] = "square"
    queries: Steps = 5000
    group: Group = 16

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """The queries, and a few passes next to them."""
        return AttackPasses(own=Passes(forward=self.queries + SQUARE_ALONE))

    def _parts(self, classes: int) -> "Sequence[Part]":
        return ("square",)

    def _library(self, part: "Part", network: "nn.Module", classes: int, device: "torch.device", seed: int) -> Search:
        from pyautoattack.square import SquareAttack as LibrarySquare

        # rescaled: the library's sizes of squares are those of 10,000 queries
        attack = LibrarySquare(
            network, norm=self.norm, n_queries=self.queries, eps=self.eps, p_init=FIRST_SHARE,
            seed=seed, resc_schedule=True, device=device,
        )  # fmt: skip
        found: Search = attack.perturb
        return found


Part = Literal["apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square"]
STANDARD: tuple[Part, ...] = ("apgd-ce", "apgd-t", "fab-t", "square")
"""The attacks of AutoAttack's standard version."""
TWO_CLASSES: tuple[Part, ...] = ("apgd-ce", "fab", "square")
"""The attacks that two classes are enough for."""
MIN_DLR_CLASSES = 4
"""Classes that the DLR loss and targeted attacks need: they compare with the second and third of the other classes."""
TARGETS = 9
"""Classes that a targeted attack aims at, in the standard version."""
FAB_FORWARD = 2
"""Passes of a step of FAB forward: one with a gradient, and one that looks whether the step is a success."""
FAB_LAST_SEARCH = 3
"""Bisections at the end of FAB, a pass each."""
CHECKED = Passes(forward=13, backward=1)
"""Passes of pyautoattack's checks before each of its attacks, with the image before and after: counted on a network
that nothing breaks."""
SQUARE_CHECKED = Passes(forward=14)
"""The same of square, which needs no gradient."""
SQUARE_ALONE = 5
"""Passes of the attack square next to its queries."""


class AutoAttackAttack(PyAutoAttack):
    """The library's attacks one after the other.

    With fewer steps (of APGD and FAB) and queries than the standard version it is a weaker attack. With fewer than four
    classes TWO_CLASSES replace `attacks`. `draws`: the answers of a random model that each step of APGD takes the mean
    gradient of; the library's version for random models has 20.
    """

    effect = "four attacks one after the other, in an Linf or L2 ball (pyautoattack)"
    uses = "gradients"
    in_defaults = True
    small: ClassVar = {"steps": 30, "square_queries": 60, "group": 4}
    kind: Literal["autoattack"] = "autoattack"
    attacks: Annotated[list[Part], EachOnce, Field(min_length=1)] = Field(default_factory=lambda: list(STANDARD))
    steps: Steps = 100
    square_queries: Steps = 5000
    draws: NumberOfDraws = 1
    group: Group = 16

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """The passes of its parts."""
        return AttackPasses(own=sum((self._of_part(part, classes) for part in self._parts(classes)), NO_PASSES))

    def _of_part(self, part: Part, classes: int) -> Passes:
        """The passes of one of the library's attacks, with its checks, and its last files."""
        if part == "square":
            return Passes(forward=self.square_queries) + SQUARE_CHECKED
        # the place that was found, with its gradient, and the nearest file twice
        gradients = (1 + FINISHING_FILES) * self.draws
        ending = Passes(forward=gradients + 2 * self.draws, backward=gradients)
        targets = min(TARGETS, classes - 1) if part in ("apgd-t", "fab-t") else 1
        if part.startswith("apgd"):
            asked = (self.steps + 1) * self.draws * targets
            # each target is read off an answer
            return Passes(forward=asked + targets, backward=asked) + ending + CHECKED
        # without targets FAB asks for a gradient by each class
        of_classes = classes if part == "fab" else 1
        searched = Passes(
            forward=targets * (FAB_FORWARD * self.steps + FAB_LAST_SEARCH),
            backward=targets * of_classes * self.steps,
        )
        return searched + ending + CHECKED

    def _parts(self, classes: int) -> Sequence[Part]:
        return self.attacks if classes >= MIN_DLR_CLASSES else TWO_CLASSES

    def _library(self, part: Part, network: "nn.Module", classes: int, device: "torch.device", seed: int) -> Search:
        import pyautoattack

        # custom: the library's own versions would replace attacks, steps and restarts
        adversary = pyautoattack.AutoAttack(
            network, attacks=[part], version="custom", device=device, eps=self.eps, norm=self.norm, seed=seed
        )
        adversary.verbose = False
        for each in (adversary.apgd, adversary.apgd_targeted, adversary.fab):
            each.n_restarts = 1
            each.n_iter = self.steps
        adversary.apgd.eot_iter = adversary.apgd_targeted.eot_iter = self.draws
        for targeted in (adversary.apgd_targeted, adversary.fab):
            targeted.n_target_classes = min(TARGETS, classes - 1)
        adversary.square.n_queries = self.square_queries
        return lambda images, label: adversary.run_standard_evaluation(images, label, batch_size=len(images))[0]


def on_files(network: "PixelNetwork", images: "Tensor", label: "Tensor", ball: Ball) -> Any:
    """The network on the files in the balls around `images` that are nearest to what it is asked about.

    In L2 they fill the ball along the change that was asked for. The library asks about all images, or about those that
    are not misclassified yet, in their order. `files`, as pixels in 0..1, and `margins`: the file of each image with
    the largest margin so far.
    """
    import torch

    levels = (images * LEVELS).round()
    radius = ball.levels() if ball.norm == "L2" else int(ball.levels())

    class OnFiles(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.files = images.clone()
            self._largest = [-inf] * len(images)

        @property
        def margins(self) -> torch.Tensor:
            return torch.tensor(self._largest, dtype=images.dtype, device=images.device)

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            asked = pixels.detach() * LEVELS
            of = self._images_of(asked)
            places = torch.tensor(of, device=levels.device)
            center = levels if len(of) == len(levels) else levels[places]
            change = asked.sub_(center)
            if ball.norm == "L2":
                files = filled(change, center, ball)
            else:
                files = change.round_().clamp_(-radius, radius).add_(center).clamp_(0, LEVELS)
            files = files / LEVELS
            logits: torch.Tensor = network(files)
            found = margins(logits.detach(), label[places]).tolist()
            for row, image in enumerate(of):
                if found[row] > self._largest[image]:
                    self._largest[image] = found[row]
                    self.files[image] = files[row]
            return logits

        def _images_of(self, asked: torch.Tensor) -> list[int]:
            """The image that each row is a change of."""
            every = [*range(len(levels))]
            if len(asked) == len(every):
                return every
            left = [image for image in every if self._largest[image] < 0]
            return left if len(left) == len(asked) else _nearest(asked, levels)

    return OnFiles().eval()


def _nearest(images: "Tensor", others: "Tensor") -> list[int]:
    """The place of the nearest of some others, in L2, for each image."""
    import torch

    distances = torch.stack([(images - each).flatten(1).norm(dim=1) for each in others], dim=1)
    found: list[int] = distances.argmin(dim=1).tolist()
    return found


@contextmanager
def collect_warnings(name: str) -> Iterator[list[str]]:
    """Collect the warnings that a logger gives in the block, each once, and print nothing of them."""
    found: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if (text := record.getMessage()) not in found:
                found.append(text)

    logger = logging.getLogger(name)
    handler = Collecting(logging.WARNING)
    propagates = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates


def with_gradient(network: "nn.Module") -> "nn.Module":
    """The network with a gradient of 0 in place of a missing one, at which pyautoattack would stop."""
    import torch

    class WithGradient(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = network(pixels)
            if pixels.requires_grad and not logits.requires_grad:
                logits = logits + 0 * pixels.flatten(1).sum(dim=1, keepdim=True)
            return logits

    return WithGradient().eval()
