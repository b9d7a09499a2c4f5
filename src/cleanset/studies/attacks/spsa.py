"""SPSA: an attack that estimates the gradient from the logits at mirrored random signs.

J. Uesato, B. O'Donoghue, P. Kohli, A. van den Oord, "Adversarial Risk and the Dangers of Evaluating Against Weak
Attacks" (ICML 2018), with the settings of source 004's warm-up: Adam on the margin, projected after each step onto an
Linf ball and 0..1, from a random start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cleanset.studies.attacks.base import (
    Ball,
    Fraction,
    Known,
    Parameters,
    Pixels,
    Positive,
    Result,
    Samples,
    Steps,
    Subject,
    margins,
    seed_for,
    to_levels,
    to_pixels,
    to_unit,
)
from cleanset.studies.attacks.spatial import RandomSpatialAttack

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Generator, Tensor

    from cleanset.scoring.differentiable import PixelNetwork

BETAS, ADAM_EPS = (0.9, 0.999), 1e-9
"""The constants of Adam, as in cleverhans."""
# 2**62 is the largest power of 2 that torch.randint takes as the upper end
BITS = 62
"""Number of random signs taken from one random number, an int64."""

Start = Callable[[Subject], Pixels]
"""Changes an image before an attack begins; what is then searched is the ball around the result."""


class SpsaAttack(Parameters):
    """`after`: the change that it begins with, or null for the image itself."""

    kind: Literal["spsa"] = "spsa"
    eps: Fraction = 16 / 255
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

    def search(self, known: Known) -> "Spsa":
        """The search."""
        return Spsa(
            self.eps, self.steps, self.samples, self.learning_rate, self.delta, self.stop_margin, known.seed,
            start_after(self.after, known),
        )  # fmt: skip


def start_after(change: RandomSpatialAttack | None, known: Known) -> Start | None:
    """The start of a search that begins with a change; None for the image itself."""
    return None if change is None else change.search(known).changed


@dataclass(frozen=True, slots=True)
class Spsa:
    """SPSA in an Linf ball.

    `samples` an even number of queries a step, half of them mirrored; `delta` the distance of the samples; the search
    ends when the mean margin of a step's samples reaches `stop_margin`. A generator of its own for each image.
    """

    eps: float
    steps: int
    samples: int
    learning_rate: float
    delta: float
    stop_margin: float
    seed: int
    start: Start | None = None
    name: str = "spsa"
    group_size: int = 1

    @property
    def ball(self) -> Ball:
        """The ball around the image, or the one that it begins with."""
        return Ball("Linf", self.eps)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image, searched for one after the other."""
        return [self._search(network, subject) for subject in group]

    def _search(self, network: "PixelNetwork", subject: Subject) -> Result:
        import torch

        center = subject.pixels if self.start is None else self.start(subject)
        queries = network.queries
        seed = seed_for(self.seed, "spsa", subject)
        generator = torch.Generator(network.device).manual_seed(seed)
        image = to_unit([center], network)[0]
        lowest, highest = (image - self.eps).clamp(min=0), (image + self.eps).clamp(max=1)
        drawn = torch.rand(image.shape, generator=generator, dtype=image.dtype, device=image.device)
        found = torch.clamp(image + self.eps * (2 * drawn - 1), lowest, highest)
        label = torch.full((self.samples,), subject.class_index, device=network.device)
        adam = Adam(self.learning_rate, found)
        with torch.inference_mode():
            for _ in range(self.steps):
                signs = random_signs(self.samples // 2, image, generator)
                far = self.delta * signs
                margin = margins(network(torch.cat((found + far, found - far))), label)
                if float(margin.mean()) >= self.stop_margin:
                    break
                # of both mirrored samples together: half the sum of signs times differences
                weights = (margin[: len(signs)] - margin[len(signs) :]) / (self.samples * self.delta)
                ascent = torch.einsum("n,nchw->chw", weights, signs)
                found = torch.clamp(found + adam.step(ascent), lowest, highest)
        return Result(to_pixels(to_levels(found), center, self.ball), network.queries - queries, center, seed)


class Adam:
    """The steps of Adam (D. P. Kingma and J. Ba, ICLR 2015) upwards along gradients of one shape."""

    def __init__(self, learning_rate: float, shape_of: "Tensor") -> None:
        self._rate, self._steps = learning_rate, 0
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
