"""Attacks in a ball that follow a gradient: the model's own (PGD), other models' (transfer), an estimate (SPSA).

PGD: A. Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks" (2018), with a step of eps / 4;
with foolbox's default step it fails where this succeeds.

Transfer: N. Papernot, P. McDaniel, I. Goodfellow, "Transferability in Machine Learning: from Phenomena to Black-Box
Attacks" (2016). Adversarial examples often transfer from one model to another, however its own gradients are hidden.

SPSA: J. Uesato, B. O'Donoghue, P. Kohli, A. van den Oord, "Adversarial Risk and the Dangers of Evaluating Against Weak
Attacks" (ICML 2018), with the settings of the warm-up of Unrestricted Adversarial Examples: Adam on the margin,
projected after each step onto an Linf ball and 0..1, from a random start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.planning.work import Passes
from cleanset.plumbing.validation import EachOnce, Role, shown
from cleanset.studies.attacks.ascent import (
    FINISHING_FILES,
    Answers,
    Loss,
    finished,
    projected,
    steepest,
)
from cleanset.studies.attacks.base import (
    AttackPasses,
    Ball,
    Fraction,
    Group,
    InBall,
    Known,
    LinfRadius,
    NumberOfDraws,
    OneByOne,
    Positive,
    Restarts,
    Result,
    Samples,
    Steps,
    Subject,
    chosen,
    classes_of,
    margins,
    seed_of,
    to_levels,
    to_pixels,
    to_unit,
)
from cleanset.studies.attacks.changes import RandomSpatialAttack, center_of

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Generator, Tensor

    from cleanset.scoring.differentiable import PixelNetwork


STANDARD_LOSSES: tuple[Loss, ...] = ("cross_entropy", "margin")
"""The losses that PGD starts with, one after the other."""

UNCHANGED_STEPS = 10
"""Steps in which nothing may change before a search counts as converged."""

MIN_RISE = 0.01
"""Smallest rise of the largest margin that counts as a change, relative to its rise since the start."""

MAX_STEPS_FACTOR = 10
"""Largest number of steps of a start, relative to those asked for, where `max_steps` is null."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The end of a search from one start, for each image of a group."""

    places: "Tensor"
    """The places with the largest margins, as pixels in 0..1."""

    ascent: "Tensor"
    """The gradients of the loss there."""

    steps: "Tensor"
    """The steps that were taken."""

    first_success: "Tensor"
    """The step after which the image was first misclassified; -1 for none."""

    is_settled: "Tensor"
    """Whether the image is misclassified, or its margin had stopped rising."""


class PgdAttack(InBall):
    """Steps of length `step` along the gradient of a loss, in a ball, from random places in it.

    `step`: null for eps / 4. `losses`: cross_entropy, and margin or dlr, which do not depend on the logits' scale
    (`ascent.losses`). Each has `restarts` starts; an image that one of them breaks is left out of the next ones.

    A start has `steps`, and then more of them, up to `max_steps` (null: ten times `steps`), until the image is
    misclassified or its largest margin has not risen for ten steps. The search is among real numbers; the candidate is
    the file in the ball with the largest margin that it ends with: the nearest one, and `files` that fill the ball, at
    most one for each step (`ascent.finished`).

    The network always gets `group` images, so that an image's result does not depend on the others; each has generators
    of its own. With `draws` above 1, margin and gradient are the means over that number of answers of a random model:
    expectation over transformation (A. Athalye, L. Engstrom, A. Ilyas, K. Kwok, "Synthesizing Robust Adversarial
    Examples", ICML 2018).
    """

    effect = "steps along the gradient, in an Linf or L2 ball"
    uses = "gradients"
    in_defaults = True
    small: ClassVar = {"steps": 3, "max_steps": 3, "group": 4}
    kind: Literal["pgd"] = "pgd"
    steps: Steps = 20
    max_steps: Steps | None = None
    step: Fraction | None = None
    random_start: bool = True
    losses: Annotated[list[Loss], EachOnce, Field(min_length=1)] = Field(default_factory=lambda: list(STANDARD_LOSSES))
    restarts: Restarts = 1
    files: Annotated[int, Field(ge=0, le=1000)] = FINISHING_FILES
    draws: NumberOfDraws = 1
    group: Group = 16

    @property
    def length(self) -> float:
        """The length of a step."""
        return self.eps / 4 if self.step is None else self.step

    @property
    def most_steps(self) -> int:
        """The largest number of steps of a start."""
        return max(self.steps, MAX_STEPS_FACTOR * self.steps if self.max_steps is None else self.max_steps)

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """Each start asks about its first place, after each step, and about the files that it ends with.

        The nearest of these needs no gradient.
        """
        answers = len(self.losses) * self.restarts * self.draws
        gradients = self.most_steps + 1 + min(self.files, self.steps)
        return AttackPasses(own=Passes(forward=answers * (gradients + 1), backward=answers * gradients))

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image; its queries are the answers to it, with `draws` above 1 its share of all."""
        import torch

        padded = [*group, *[group[-1]] * (self.group - len(group))]
        pixels = [subject.pixels for subject in padded]
        images = to_unit(pixels, network)
        label = torch.tensor([subject.class_index for subject in padded], device=network.device)
        finishing = min(self.files, self.steps)
        files = images
        largest = torch.full((len(padded),), -torch.inf, device=network.device, dtype=images.dtype)
        start_of, taken, queries, broken_at = torch.zeros((4, len(padded)), dtype=torch.int64, device=network.device)
        is_settled = torch.ones(len(padded), dtype=torch.bool, device=network.device)
        asked = network.queries
        for start, loss in enumerate(loss for loss in self.losses for _ in range(self.restarts)):
            is_open = ~(largest > 0)
            if not is_open.any():
                break
            answers = Answers(network=network, label=label, loss=loss, draws=self.draws)
            walk = self._walk(answers, images, self._starts(padded, images, known, start), is_open)
            found, margin = finished(answers, pixels, walk.places, walk.ascent, self.ball, finishing)
            better = is_open & (margin > largest)
            files = torch.where(better[:, None, None, None], found, files)
            largest = torch.where(better, margin, largest)
            start_of = torch.where(better, start, start_of)
            # a file may be broken that the walk did not find
            first = torch.where(walk.first_success < 0, walk.steps, walk.first_success)
            broken_at = torch.where(better, taken + first, broken_at)
            taken = taken + torch.where(is_open, walk.steps, 0)
            queries = queries + torch.where(is_open, walk.steps + 2 + finishing, 0)
            is_settled = is_settled & (walk.is_settled | ~is_open)
        is_broken = largest > 0
        shares = self._shares(network.queries - asked, queries[: len(group)].tolist())
        return [
            Result(
                to_pixels(levels),
                shares[place],
                seed=self._seed(subject, known, int(start_of[place])) if self.random_start else None,
                broken_at=int(broken_at[place]) if is_broken[place] else None,
                is_converged=bool(is_settled[place] | is_broken[place]),
            )
            for place, (subject, levels) in enumerate(zip(group, to_levels(files), strict=False))
        ]

    def _shares(self, total: int, asked: list[int]) -> list[int]:
        """The queries of each image of a group; with several draws those of the padding are shared out."""
        if self.draws == 1:
            return asked
        # a random model draws for the padding, too: without it, it would answer otherwise
        share, rest = divmod(total, len(asked))
        return [share + (place < rest) for place in range(len(asked))]

    def _walk(self, answers: Answers, images: "Tensor", places: "Tensor", is_open: "Tensor") -> Walk:
        """Search from some places; images that are not open stay there."""
        import torch

        count = len(images)
        best = places
        best_ascent = torch.zeros_like(places)
        largest = torch.full((count,), -torch.inf, device=images.device, dtype=images.dtype)
        steps, changed = torch.zeros((2, count), dtype=torch.int64, device=images.device)
        first_success = torch.full_like(steps, -1)
        is_settled = torch.zeros_like(is_open)
        moving = is_open
        beginning = mark = largest
        for step in range(self.most_steps + 1):
            margin, ascent = answers(places)
            better = moving & (margin > largest)
            largest = torch.where(better, margin, largest)
            best, best_ascent = _replaced(better, (best, best_ascent), (places, ascent))
            first_success = torch.where(moving & (first_success < 0) & (margin > 0), step, first_success)
            if step == 0:
                beginning = mark = largest
            has_risen = largest > mark + MIN_RISE * (largest - beginning)
            mark = torch.where(has_risen, largest, mark)
            changed = torch.where(has_risen, step, changed)
            if step >= self.steps:
                is_settled = torch.where(moving, (largest > 0) | (step - changed >= UNCHANGED_STEPS), is_settled)
                moving = moving & ~is_settled
            if step == self.most_steps or not moving.any():
                break
            ahead = projected(places + self.length * steepest(ascent, self.norm), images, self.norm, self.eps)
            (places,) = _replaced(moving, (places,), (ahead,))
            steps = steps + moving.long()
        return Walk(places=best, ascent=best_ascent, steps=steps, first_success=first_success, is_settled=is_settled)

    def _seed(self, subject: Subject, known: Known, start: int) -> int:
        further = [str(start)] if start else []
        return seed_of(known.seed, "attack", known.name or self.kind, subject.image_id, *further)

    def _starts(self, subjects: Sequence[Subject], images: "Tensor", known: Known, start: int) -> "Tensor":
        """The places that a start begins at."""
        import torch

        from cleanset.scoring.devices import to_device

        if not self.random_start:
            return images
        drawn = np.stack([self._drawn(subject, self._seed(subject, known, start)) for subject in subjects])
        there = to_device(torch.from_numpy(drawn), images.device).to(images.dtype)
        return projected(images + there, images, self.norm, self.eps)

    def _drawn(self, subject: Subject, seed: int) -> np.ndarray:
        """A place in the ball around 0: uniform in Linf; in L2 of uniform direction and uniform volume."""
        generator = np.random.default_rng(seed)
        if self.norm == "Linf":
            return generator.uniform(-self.eps, self.eps, subject.pixels.shape)
        direction = generator.standard_normal(subject.pixels.shape)
        # the volume of a ball grows with its radius to the power of the dimension
        radius = self.eps * generator.uniform() ** (1 / direction.size)
        return np.asarray(direction * (radius / np.linalg.norm(direction)))


def _replaced(rows: "Tensor", before: "Sequence[Tensor]", after: "Sequence[Tensor]") -> "list[Tensor]":
    """The images before, or after in those rows: copied where it is in some of them only."""
    import torch

    count = int(rows.sum())
    if count == len(rows):
        return [*after]
    if not count:
        return [*before]
    return [torch.where(rows[:, None, None, None], new, old) for old, new in zip(before, after, strict=True)]


class TransferAttack(InBall):
    """PGD on each source; an image's candidate with the largest margin of another class is kept.

    `sources`: the models that images are made on; null: all others. `steps` of PGD, each of eps / 4.
    """

    effect = "PGD on the other models of the edition; the model itself is only asked for its answers"
    uses = "classes"
    in_defaults = True
    small: ClassVar = {"steps": 3, "group": 4}
    reads_other_models = True
    kind: Literal["transfer"] = "transfer"
    steps: Steps = 20
    sources: Annotated[list[Role], EachOnce, Field(min_length=1)] | None = None
    group: Group = 16

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """PGD on each source, and a pass for each candidate."""
        return AttackPasses(own=Passes(forward=sources), others=self._pgd().passes(0, classes).own)

    def _pgd(self) -> PgdAttack:
        return PgdAttack(norm=self.norm, eps=self.eps, steps=self.steps, max_steps=self.steps, group=self.group)

    def prepare(self, known: Known) -> "Mapping[str, PixelNetwork]":
        """The named models; all without names. Raises CleansetError for an unknown name, and without models."""
        others = known.sources()
        if not others:
            raise CleansetError("transfer: no source model; expected at least one besides the attacked model")
        listed = ", ".join(others)
        return chosen(
            self.sources, others, lambda name: f"transfer: no other model {shown(name)}; expected some of {listed}"
        )

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image; a query for each source."""
        import torch

        pgd = self._pgd()
        label = classes_of(group, network)
        found = []
        reached = []
        for source in self.prepare(known).values():
            results = pgd.results(source, group, known)
            with torch.inference_mode():
                logits = network(to_unit([result.candidate for result in results], network))
            found.append(results)
            reached.append(margins(logits, label).tolist())
        best = [max(range(len(found)), key=lambda source: reached[source][place]) for place in range(len(group))]
        return [
            Result(found[source][place].candidate, len(found), seed=found[source][place].seed)
            for place, source in enumerate(best)
        ]


BETAS = (0.9, 0.999)
"""Decay rates of Adam's two means, as in cleverhans."""

ADAM_EPS = 1e-9
"""The constant in Adam's denominator, as in cleverhans."""

# 2**62 is the largest power of 2 that torch.randint takes as the upper end
BITS = 62
"""Number of random signs taken from one random number, an int64."""


class SpsaAttack(OneByOne):
    """SPSA in an Linf ball, around the image or around the result of `after`; null: the image itself.

    `samples` an even number of queries a step, half of them mirrored, and one of the place itself; `delta` the
    distance of the samples; the search ends with the step whose place has a margin above `stop_margin`. A generator of
    its own for each image.
    """

    effect = "a gradient estimated from queries alone, in an Linf ball of 16/255"
    family = "ball"
    uses = "logits"
    in_defaults = True
    small: ClassVar = {"steps": 3, "samples": 4, "stop_margin": 5, "after": None}
    kind: Literal["spsa"] = "spsa"
    eps: LinfRadius = 16 / 255
    steps: Steps = 200
    samples: Samples = 64
    learning_rate: Positive = 0.01
    delta: Positive = 0.01
    stop_margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    after: RandomSpatialAttack | None = RandomSpatialAttack()

    @property
    def ball(self) -> Ball:
        """The ball around the image, or the one that it begins with."""
        return Ball("Linf", self.eps)

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """The samples of each step, and its place."""
        return AttackPasses(own=Passes(forward=self.steps * (self.samples + 1)))

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The candidate for an image."""
        import torch

        center = center_of(subject, self.after, known)
        queries = network.queries
        seed = seed_of(known.seed, "attack", known.name or self.kind, subject.image_id)
        generator = torch.Generator(network.device).manual_seed(seed)
        image = to_unit([center], network)[0]
        lowest = (image - self.eps).clamp(min=0)
        highest = (image + self.eps).clamp(max=1)
        drawn = torch.rand(image.shape, generator=generator, dtype=image.dtype, device=image.device)
        found = torch.clamp(image + self.eps * (2 * drawn - 1), lowest, highest)
        label = torch.full((self.samples + 1,), subject.class_index, device=network.device)
        adam = Adam(self.learning_rate, found)
        with torch.inference_mode():
            for _ in range(self.steps):
                signs = random_signs(self.samples // 2, image, generator)
                far = self.delta * signs
                margin = margins(network(torch.cat((found + far, found - far, found[None]))), label)
                # of both mirrored samples together: half the sum of signs times differences
                weights = (margin[: len(signs)] - margin[len(signs) : -1]) / (self.samples * self.delta)
                ascent = torch.einsum("n,nchw->chw", weights, signs)
                found = torch.clamp(found + adam.step(ascent), lowest, highest)
                # after the step, as in cleverhans
                if float(margin[-1]) > self.stop_margin:
                    break
        return Result(to_pixels(to_levels(found), center, self.ball), network.queries - queries, center, seed)


class Adam:
    """The steps of Adam (D. P. Kingma and J. Ba, ICLR 2015) upwards along gradients of one shape."""

    def __init__(self, learning_rate: float, shape_of: "Tensor") -> None:
        self._rate = learning_rate
        self._steps = 0
        self._first, self._second = (shape_of.new_zeros(shape_of.shape) for _ in range(2))

    def step(self, gradient: "Tensor") -> "Tensor":
        """The change that the next step adds."""
        self._steps += 1
        self._first = BETAS[0] * self._first + (1 - BETAS[0]) * gradient
        self._second = BETAS[1] * self._second + (1 - BETAS[1]) * gradient**2
        first = self._first / (1 - BETAS[0] ** self._steps)
        second = self._second / (1 - BETAS[1] ** self._steps)
        return self._rate * first / (second.sqrt() + ADAM_EPS)


def random_signs(count: int, image: "Tensor", generator: "Generator") -> "Tensor":
    """-1 and 1, equally likely, of shape (count, *image.shape)."""
    import torch

    size = count * image.numel()
    numbers = torch.randint(0, 2**BITS, (-(-size // BITS),), generator=generator, device=image.device)
    bits = (numbers[:, None] >> torch.arange(BITS, device=image.device)) & 1
    return (bits.ravel()[:size] * 2 - 1).to(image.dtype).view(count, *image.shape)
