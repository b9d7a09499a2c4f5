"""SPSA: an attack that estimates the gradient from the logits at mirrored random signs.

J. Uesato, B. O'Donoghue, P. Kohli, A. van den Oord, "Adversarial Risk and the Dangers of Evaluating Against Weak
Attacks" (ICML 2018), with the settings of source 004's warm-up: Adam on the margin, projected after each step onto an
Linf ball and 0..1, from a random start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cleanset.scoring.differentiable import PixelNetwork
from cleanset.studies.attacks.base import (
    Ball,
    Pixels,
    Result,
    Subject,
    margins,
    rounded,
    seed_for,
    to_levels,
    to_unit,
)

BETAS, ADAM_EPS = (0.9, 0.999), 1e-9
"""Of Adam, as in cleverhans."""
BITS = 62
"""Random signs that are taken from one number."""

Start = Callable[[Subject], Pixels]
"""Changes an image before an attack begins; what is then searched is the ball around the result."""


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
        """Around the image, or the image that it begins with."""
        return Ball("Linf", self.eps)

    def __call__(self, network: PixelNetwork, group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image, searched for one after the other."""
        return [self._search(network, subject) for subject in group]

    def _search(self, network: PixelNetwork, subject: Subject) -> Result:
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
        return Result(rounded(to_levels(found), center, self.ball), network.queries - queries, center, seed)


class Adam:
    """The steps of Adam (D. P. Kingma and J. Ba, ICLR 2015) upwards along gradients of one shape."""

    def __init__(self, learning_rate: float, like: Tensor) -> None:
        self._rate, self._steps = learning_rate, 0
        self._first, self._second = torch.zeros_like(like), torch.zeros_like(like)

    def step(self, gradient: Tensor) -> Tensor:
        """What to add."""
        self._steps += 1
        self._first = BETAS[0] * self._first + (1 - BETAS[0]) * gradient
        self._second = BETAS[1] * self._second + (1 - BETAS[1]) * gradient**2
        first = self._first / (1 - BETAS[0] ** self._steps)
        second = self._second / (1 - BETAS[1] ** self._steps)
        return self._rate * first / (second.sqrt() + ADAM_EPS)


def random_signs(count: int, image: Tensor, generator: torch.Generator) -> Tensor:
    """-1 and 1, as likely, of shape (count, *image.shape)."""
    size = count * image.numel()
    numbers = torch.randint(0, 2**BITS, (-(-size // BITS),), generator=generator, device=image.device)
    bits = (numbers[:, None] >> torch.arange(BITS, device=image.device)) & 1
    return (bits.ravel()[:size] * 2 - 1).to(image.dtype).view(count, *image.shape)
