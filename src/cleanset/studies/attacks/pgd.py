"""Projected gradient descent: A. Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks" (2018).

With a step of eps / 4; with foolbox's default step it fails where this succeeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from cleanset.studies.attacks.base import (
    Ball,
    Draws,
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
    seed_for,
    to_levels,
    to_pixels,
    to_unit,
)

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Tensor

    from cleanset.scoring.differentiable import EightBit, PixelNetwork


class PgdAttack(Parameters):
    """`step`: null for eps / 4. `group`: images at a time, which changes no result.

    `draws`: the answers of a random model that each step takes the mean gradient of.
    """

    uses: ClassVar[Uses] = "gradients"
    kind: Literal["pgd"] = "pgd"
    norm: Norm = "Linf"
    eps: Fraction = 4 / 255
    steps: Steps = 20
    step: Fraction | None = None
    random_start: bool = True
    draws: Draws = 1
    group: Group = 16

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def search(self, known: Known) -> "Pgd":
        """The search."""
        step = self.eps / 4 if self.step is None else self.step
        return Pgd(self.norm, self.eps, self.steps, step, self.random_start, known.seed, self.group, draws=self.draws)


@dataclass(frozen=True, slots=True)
class Pgd:
    """Steps of length `step` along the gradient of the cross-entropy, in a ball, from a random place in it.

    The candidate is the place with the largest margin of another class, in 8 bits. The network always gets `group_size`
    images, so that an image's result does not depend on the others; each has a generator of its own. With `draws` above
    1, margin and gradient are the means over that number of answers: expectation over transformation (A. Athalye, L.
    Engstrom, A. Ilyas, K. Kwok, "Synthesizing Robust Adversarial Examples", ICML 2018).
    """

    norm: Norm
    eps: float
    steps: int
    step: float
    random_start: bool
    seed: int
    group_size: int
    name: str = "pgd"
    draws: int = 1

    @property
    def ball(self) -> Ball:
        """The ball around the image."""
        return Ball(self.norm, self.eps)

    def __call__(self, network: "PixelNetwork", group: Sequence[Subject]) -> list[Result]:
        """A candidate for each image; `steps` + 1 queries each, times `draws`."""
        import torch

        from cleanset.scoring.differentiable import EightBit

        padded = [*group, *[group[-1]] * (self.group_size - len(group))]
        images = to_unit([subject.pixels for subject in padded], network)
        label = torch.tensor([subject.class_index for subject in padded], device=network.device)
        rounding = EightBit(network)
        found = images
        if self.random_start:
            drawn = np.stack([self._start(subject) for subject in padded])
            found = projected(images + torch.from_numpy(drawn).to(images), images, self.norm, self.eps)
        best, largest = found, torch.full((len(padded),), -torch.inf, device=network.device, dtype=images.dtype)
        for step in range(self.steps + 1):
            # the last place is only judged, so it needs no gradient
            found = found.detach().requires_grad_(step < self.steps)
            margin, ascent = self._means(rounding, found, label)
            better = margin > largest
            largest = torch.where(better, margin, largest)
            best = torch.where(better[:, None, None, None], found.detach(), best)
            if step < self.steps:
                ahead = found.detach() + self.step * steepest(ascent, self.norm)
                found = projected(ahead, images, self.norm, self.eps)
        levels = to_levels(best)
        return [
            Result(
                to_pixels(levels[place], subject.pixels, self.ball),
                (self.steps + 1) * self.draws,
                seed=seed_for(self.seed, "pgd", subject) if self.random_start else None,
            )
            for place, subject in enumerate(group)
        ]

    def _means(self, network: "EightBit", found: "Tensor", label: "Tensor") -> tuple["Tensor", "Tensor"]:
        """The margins, and the gradient of the cross-entropy if it is asked for: means over the draws."""
        import torch

        margin, ascent = torch.zeros((), device=found.device), torch.zeros((), device=found.device)
        for _ in range(self.draws):
            logits = network(found)
            margin = margin + margins(logits.detach(), label) / self.draws
            if found.requires_grad:
                loss = torch.nn.functional.cross_entropy(logits, label, reduction="sum")
                ascent = ascent + gradient(loss, found) / self.draws
        return margin, ascent

    def _start(self, subject: Subject) -> np.ndarray:
        """A place in the ball around 0: uniform in Linf; in L2 of uniform direction and uniform volume."""
        generator = np.random.default_rng(seed_for(self.seed, "pgd", subject))
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
    """The gradient of a loss by the pixels; 0 where none flows back."""
    import torch

    if not loss.requires_grad:
        return torch.zeros_like(pixels)
    (found,) = torch.autograd.grad(loss, pixels, allow_unused=True)
    return torch.zeros_like(pixels) if found is None else found
