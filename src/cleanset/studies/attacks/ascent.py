"""Gradients by pixels, and the files of 8 bits that they lead to.

Attacks search among real numbers. A file has whole levels, and a small L2 ball has room for few of them: the nearest
levels of a place at its edge may be far inside. So a search ends with files that fill the ball. For a linear network,
the best change of whole levels takes the one-level steps with the largest gain per added squared distance, which is 2 n
- 1 for the n-th step of a value. For other networks, the gradient is computed again at each such file and added up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from cleanset.images.preprocessing import PixelPlanes
from cleanset.studies.attacks.base import LEVELS, Ball, Norm, margins, to_levels, to_pixels

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Tensor

    from cleanset.scoring.differentiable import PixelNetwork

FINISHING_FILES = 5
"""Files that fill the ball, at the end of a search; further ones changed margins by less than .01."""

DOUBLINGS = 12
"""Doublings of a scale, until the changes leave the ball or have no room left."""

BISECTIONS = 26
"""Bisections of a scale: then only values that are equal in float32 are left to choose from."""


def gradient(loss: "Tensor", pixels: "Tensor") -> "Tensor":
    """The gradient of a loss by the pixels; 0 if no gradient flows back."""
    import torch

    if not loss.requires_grad:
        return torch.zeros_like(pixels)
    (found,) = torch.autograd.grad(loss, pixels, allow_unused=True)
    return torch.zeros_like(pixels) if found is None else found


def lengths(images: "Tensor") -> "Tensor":
    """The L2 norm of each image, of shape (n, 1, 1, 1)."""
    import torch

    found: Tensor = torch.linalg.vector_norm(images, dim=(1, 2, 3), keepdim=True)
    return found


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


def filled(direction: "Tensor", levels: "Tensor", ball: Ball) -> "Tensor":
    """The files, in whole levels, that are farthest along a direction in the ball around each image.

    `levels`: the images, 0 to 255. Linf: all values at the edge. L2: the direction times a scale, rounded, with the
    largest scale that stays in the ball; what is left of the ball goes to single values, the first of equal ones.
    """
    import torch

    if ball.norm == "Linf":
        return (levels + int(ball.levels()) * direction.sign()).clamp(0, LEVELS)
    wanted = direction.flatten(1)
    size = wanted.abs()
    center = levels.flatten(1)
    room = torch.where(wanted > 0, LEVELS - center, center)
    budget = torch.full((len(size),), ball.levels() ** 2, dtype=torch.float64, device=size.device).floor()

    def steps(scale: "Tensor") -> "Tensor":
        return torch.minimum(torch.floor(size * scale[:, None].to(size.dtype) + 0.5), room)

    def cost(of: "Tensor") -> "Tensor":
        # whole numbers, whose sum is exact in any order
        return (of * of).sum(dim=1, dtype=torch.float64)

    low = torch.zeros_like(budget)
    # here the largest value alone leaves the ball, if it has room
    high = (budget.sqrt() + 1.5) / size.amax(dim=1).double().clamp(min=torch.finfo(size.dtype).tiny)
    for _ in range(DOUBLINGS):
        inside = cost(steps(high)) <= budget
        if not inside.any():
            break
        low = torch.where(inside, high, low)
        high = torch.where(inside, 2 * high, high)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        inside = cost(steps(middle)) <= budget
        low = torch.where(inside, middle, low)
        high = torch.where(inside, high, middle)
    found = steps(low)
    farther = steps(high)
    left = budget - cost(found)
    for place in range(len(found)):
        others = (farther[place] > found[place]).nonzero()[:, 0]
        price = 2 * found[place, others] + 1
        order = torch.argsort(size[place, others] / price, descending=True, stable=True)
        affordable = torch.cumsum(price[order].double(), dim=0) <= left[place]
        found[place, others[order[affordable]]] += 1
        # a further level of a changed value costs three units or more, the first of another one
        rest = int(left[place] - price[order[affordable]].sum())
        unchanged = ((found[place] == 0) & (room[place] > 0) & (size[place] > 0)).nonzero()[:, 0]
        order = torch.argsort(size[place, unchanged], descending=True, stable=True)
        found[place, unchanged[order[:rest]]] += 1
    return levels + (found * wanted.sign()).reshape(levels.shape)


def finished(
    answers: "Answers", images: Sequence[PixelPlanes], places: "Tensor", ascent: "Tensor", ball: Ball, files: int
) -> "tuple[Tensor, Tensor]":
    """End a search with files in the ball: those with the largest margins, as pixels in 0..1, and these margins.

    For each of the `images`, `places` is what was found among real numbers, with its gradient. The nearest file in the
    ball is asked for, then `files` that fill the ball, each along the sum of the gradients so far.
    """
    import torch

    levels = _levels(images, places)
    best = nearest_files(images, places, ball)
    largest = answers.margins(best)
    direction = torch.zeros_like(places)
    for _ in range(files):
        direction = direction + steepest(torch.nan_to_num(ascent), "L2")
        file = filled(direction, levels, ball) / LEVELS
        margin, ascent = answers(file)
        better = margin > largest
        largest = torch.where(better, margin, largest)
        best = torch.where(better[:, None, None, None], file, best)
    return best, largest


def nearest_files(images: Sequence[PixelPlanes], places: "Tensor", ball: Ball) -> "Tensor":
    """The files in the balls around `images` that are nearest to `places`, as pixels in 0..1."""
    near = [to_pixels(found, image, ball) for found, image in zip(to_levels(places), images, strict=True)]
    return _levels(near, places) / LEVELS


def _levels(images: Sequence[PixelPlanes], places: "Tensor") -> "Tensor":
    """The pixels, 0 to 255, on the device of `places` and in its dtype: shape (n, 3, size, size)."""
    import torch

    from cleanset.scoring.devices import to_device

    return to_device(torch.from_numpy(np.stack(images)), places.device).to(places.dtype)


Loss = Literal["cross_entropy", "margin", "dlr"]


def losses(loss: Loss, logits: "Tensor", label: "Tensor") -> "Tensor":
    """The loss of each image, which rises towards a misclassification.

    margin: the largest other logit minus that of the class. dlr: the same relative to the largest logit less the third
    largest (F. Croce and M. Hein, "Reliable Evaluation of Adversarial Robustness", ICML 2020); with two classes to the
    difference of both, which is then constant. Neither depends on the logits' scale as cross_entropy does.
    """
    import torch

    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(logits, label, reduction="none")
    found = margins(logits, label)
    if loss == "margin":
        return found
    largest = logits.topk(min(3, logits.shape[1]), dim=1).values
    return found / (largest[:, 0] - largest[:, -1]).clamp(min=torch.finfo(logits.dtype).tiny)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """The answers of a network to the images of a group, whose classes are `label`.

    With several `draws` of a random network they are the means over that many.
    """

    network: "PixelNetwork"
    label: "Tensor"
    loss: Loss = "margin"
    draws: int = 1

    def __call__(self, pixels: "Tensor") -> "tuple[Tensor, Tensor]":
        """Margins and gradients of the loss, of shapes (n,) and (n, 3, size, size), at some pixels in 0..1."""
        asked = pixels.detach().requires_grad_()
        margin, ascent = self._with_gradient(asked)
        if self.draws == 1:
            return margin, ascent
        margin, ascent = margin / self.draws, ascent / self.draws
        for _ in range(self.draws - 1):
            more_margin, more_ascent = self._with_gradient(asked)
            margin = margin + more_margin / self.draws
            ascent = ascent + more_ascent / self.draws
        return margin, ascent

    def margins(self, pixels: "Tensor") -> "Tensor":
        """The margins alone, which take a third of the time."""
        import torch

        found = torch.zeros((), device=pixels.device)
        with torch.no_grad():
            for _ in range(self.draws):
                found = found + margins(self.network(pixels), self.label) / self.draws
        return found

    def _with_gradient(self, asked: "Tensor") -> "tuple[Tensor, Tensor]":
        logits = self.network(asked)
        ascent = gradient(losses(self.loss, logits, self.label).sum(), asked)
        return margins(logits.detach(), self.label), ascent
