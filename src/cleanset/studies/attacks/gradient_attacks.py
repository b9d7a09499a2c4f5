"""Attacks in a ball that follow a gradient: the model's own (PGD), other models' (transfer), an estimate (SPSA).

PGD: A. Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks" (2018), with a step of eps / 4;
with foolbox's default step it fails where this succeeds.

Transfer: N. Papernot, P. McDaniel, I. Goodfellow, "Transferability in Machine Learning: from Phenomena to Black-Box
Attacks" (2016). Adversarial examples often transfer from one model to another, however its own gradients are hidden.

SPSA: J. Uesato, B. O'Donoghue, P. Kohli, A. van den Oord, "Adversarial Risk and the Dangers of Evaluating Against Weak
Attacks" (ICML 2018), with the settings of source 004's warm-up: Adam on the margin, projected after each step onto an
Linf ball and 0..1, from a random start.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.studies.attacks.base import (
    Ball,
    Fraction,
    Group,
    InBall,
    Known,
    LinfRadius,
    Norm,
    NumberOfDraws,
    OneByOne,
    Positive,
    Result,
    Samples,
    Steps,
    Subject,
    Uses,
    chosen,
    margins,
    seed_of,
    to_levels,
    to_pixels,
    to_unit,
)
from cleanset.studies.attacks.changes import RandomSpatialAttack, center_of
from cleanset.validation import EachOnce, Role, shown

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Generator, Tensor

    from cleanset.scoring.differentiable import EightBit, PixelNetwork


class PgdAttack(InBall):
    """Steps of length `step` along the gradient of the cross-entropy, in a ball, from a random place in it.

    `step`: null for eps / 4. The candidate is the place with the largest margin of another class, in 8 bits. The
    network always gets `group` images, so that an image's result does not depend on the others; each has a generator of
    its own. With `draws` above 1, margin and gradient are the means over that number of answers of a random model:
    expectation over transformation (A. Athalye, L. Engstrom, A. Ilyas, K. Kwok, "Synthesizing Robust Adversarial
    Examples", ICML 2018).
    """

    uses: ClassVar[Uses] = "gradients"
    kind: Literal["pgd"] = "pgd"
    steps: Steps = 20
    step: Fraction | None = None
    random_start: bool = True
    draws: NumberOfDraws = 1
    group: Group = 16

    @property
    def length(self) -> float:
        """The length of a step."""
        return self.eps / 4 if self.step is None else self.step

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image; `steps` + 1 queries each, with `draws` above 1 its share of all answers."""
        import torch

        from cleanset.scoring.devices import to_device
        from cleanset.scoring.differentiable import EightBit

        norm = self.norm
        eps = self.eps
        padded = [*group, *[group[-1]] * (self.group - len(group))]
        images = to_unit([subject.pixels for subject in padded], network)
        label = torch.tensor([subject.class_index for subject in padded], device=network.device)
        rounding = EightBit(network)
        found = images
        if self.random_start:
            drawn = np.stack([self._start(subject, known.seed) for subject in padded])
            found = projected(
                images + to_device(torch.from_numpy(drawn), network.device).to(images.dtype), images, norm, eps
            )
        best = found
        largest = torch.full((len(padded),), -torch.inf, device=network.device, dtype=images.dtype)
        for step in range(self.steps + 1):
            # the last place is only judged, so it needs no gradient
            found = found.detach().requires_grad_(step < self.steps)
            margin, ascent = self._means(rounding, found, label)
            better = margin > largest
            largest = torch.where(better, margin, largest)
            best = torch.where(better[:, None, None, None], found.detach(), best)
            if step < self.steps:
                ahead = found.detach() + self.length * steepest(ascent, norm)
                found = projected(ahead, images, norm, eps)
        return [
            Result(
                to_pixels(levels, subject.pixels, self.ball),
                queries,
                seed=self._seed(subject, known.seed) if self.random_start else None,
            )
            for subject, levels, queries in zip(group, to_levels(best), self._queries(len(group)), strict=False)
        ]

    def _queries(self, images: int) -> list[int]:
        """The queries of each image of a group; with several draws those of the padding are shared out."""
        asked = self.steps + 1
        if self.draws == 1:
            return [asked] * images
        # a random model draws for the padding, too: without it, it would answer otherwise
        share, rest = divmod(asked * self.draws * self.group, images)
        return [share + (place < rest) for place in range(images)]

    def _means(self, network: "EightBit", found: "Tensor", label: "Tensor") -> tuple["Tensor", "Tensor"]:
        """The margins, and the gradient of the cross-entropy if it is asked for: means over the draws."""
        import torch

        margin = torch.zeros((), device=found.device)
        ascent = torch.zeros((), device=found.device)
        for _ in range(self.draws):
            logits = network(found)
            margin = margin + margins(logits.detach(), label) / self.draws
            if found.requires_grad:
                loss = torch.nn.functional.cross_entropy(logits, label, reduction="sum")
                ascent = ascent + gradient(loss, found) / self.draws
        return margin, ascent

    def _seed(self, subject: Subject, seed: int) -> int:
        return seed_of(seed, "attack", self.kind, subject.image_id)

    def _start(self, subject: Subject, seed: int) -> np.ndarray:
        """A place in the ball around 0: uniform in Linf; in L2 of uniform direction and uniform volume."""
        generator = np.random.default_rng(self._seed(subject, seed))
        if self.norm == "Linf":
            return generator.uniform(-self.eps, self.eps, subject.pixels.shape)
        direction = generator.standard_normal(subject.pixels.shape)
        # the volume of a ball grows with its radius to the power of the dimension
        radius = self.eps * generator.uniform() ** (1 / direction.size)
        return np.asarray(direction * (radius / np.linalg.norm(direction)))


def steepest(ascent: "Tensor", norm: Norm) -> "Tensor":
    """The change of length 1 in a norm along which a loss with gradients `ascent` rises most, for each image."""
    import torch

    if norm == "Linf":
        return ascent.sign()
    # a gradient of 0 stays 0 instead of becoming NaN
    return ascent / lengths(ascent).clamp(min=torch.finfo(ascent.dtype).tiny)


def projected(found: "Tensor", images: "Tensor", norm: Norm, eps: float) -> "Tensor":
    """The nearest places in the ball of radius `eps` around each image, then in 0..1."""
    difference = found - images
    if norm == "Linf":
        difference = difference.clamp(-eps, eps)
    else:
        difference = difference * (eps / lengths(difference).clamp(min=eps))
    return (images + difference).clamp(0, 1)


def lengths(images: "Tensor") -> "Tensor":
    """The L2 norm of each image, of shape (n, 1, 1, 1)."""
    import torch

    found: Tensor = torch.linalg.vector_norm(images, dim=(1, 2, 3), keepdim=True)
    return found


def gradient(loss: "Tensor", pixels: "Tensor") -> "Tensor":
    """The gradient of a loss by the pixels; 0 if no gradient flows back."""
    import torch

    if not loss.requires_grad:
        return torch.zeros_like(pixels)
    (found,) = torch.autograd.grad(loss, pixels, allow_unused=True)
    return torch.zeros_like(pixels) if found is None else found


class TransferAttack(InBall):
    """PGD on each source; of an image's candidates the one with the largest margin of another class is kept.

    `sources`: the models that images are made on; null: all others. `steps` of PGD, each of eps / 4.
    """

    uses: ClassVar[Uses] = "classes"
    kind: Literal["transfer"] = "transfer"
    steps: Steps = 20
    sources: Annotated[list[Role], EachOnce, Field(min_length=1)] | None = None
    group: Group = 16

    def prepare(self, known: Known) -> "Mapping[str, PixelNetwork]":
        """The named models; all without names. Raises CleansetError for an unknown name, and without models."""
        others = known.sources()
        if not others:
            raise CleansetError(
                "transfer: no other model to make images on; expected at least one beside the model that is attacked"
            )
        listed = ", ".join(others)
        return chosen(
            self.sources, others, lambda name: f"transfer: no other model {shown(name)}; expected some of {listed}"
        )

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image; a query for each source."""
        import torch

        pgd = PgdAttack(norm=self.norm, eps=self.eps, steps=self.steps, group=self.group)
        label = torch.tensor([subject.class_index for subject in group], device=network.device)
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

    `samples` an even number of queries a step, half of them mirrored, beside one of the place itself; `delta` the
    distance of the samples; the search ends with the step whose place has a margin above `stop_margin`. A generator of
    its own for each image.
    """

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

    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The candidate for an image."""
        import torch

        center = center_of(subject, self.after, known)
        queries = network.queries
        seed = seed_of(known.seed, "attack", self.kind, subject.image_id)
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
