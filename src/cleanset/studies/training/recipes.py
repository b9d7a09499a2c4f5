"""Training recipes: standard, Gaussian noise, adversarial training, AugMix.

A recipe makes views of an image while it is read, and has the loss that is learned from them. Gaussian noise is of
random strength.

Adversarial training: A. Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks" (2018). It
minimises over the weights the expected maximum of the loss within a ball. The maximum is searched for as in
studies/attacks, without its 8 bits: adversarial training images are never stored.

AugMix: D. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty" (2020).
Operations, magnitudes and mixtures are those in its authors' code; with consistency, the divergence between the
predictions on an image and on two mixtures of it is learned, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor, nn
from torch.nn import functional

from cleanset.studies.attacks.gradient_attacks import gradient, lengths, projected, steepest
from cleanset.studies.training.params import ALL_AUGMIX_OPERATIONS, AUGMIX_OPERATIONS, Adversarial, Augmix


class Learnt(NamedTuple):
    """A loss, a scalar with its graph, and the logits whose accuracy is shown, (n, classes)."""

    loss: Tensor
    logits: Tensor


class Standard:
    """Cross-entropy on the images as they are; a base of the recipes."""

    def views(self, images: Tensor) -> Tensor:
        """The views of images, uint8 (n, 3, size, size), of shape (n, views, 3, size, size), in 0..255.

        Here the images alone. Mixtures are float32, other views uint8. It draws from torch's global generator, which is
        seeded for each batch.
        """
        return images[:, None]

    def __call__(self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Learnt:
        """The mean cross-entropy of `images`, views in 0..1 of shape (n, views, 3, size, size), with labels (n)."""
        logits = network(self.learnt_from(network, images[:, 0], labels, generator))
        return Learnt(functional.cross_entropy(logits, labels), logits)

    def learnt_from(self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        """The images, in 0..1, as the network is given them."""
        return images


@dataclass(frozen=True)
class GaussianNoise(Standard):
    """Cross-entropy on images with noise, whose standard deviation is uniform from 0 to `largest`, of each image."""

    largest: float = 0.2

    def learnt_from(self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        """The images, in 0..1 with any number of dimensions, with noise; pixels stay in 0..1."""
        device = generator.device
        strengths = torch.rand(len(images), *[1] * (images.ndim - 1), generator=generator, device=device) * self.largest
        noise = torch.randn(images.shape, generator=generator, device=device) * strengths
        return (images + noise.to(images)).clamp(0, 1)


@dataclass(frozen=True)
class AdversarialTraining(Standard):
    """Cross-entropy on the images that projected gradient ascent finds."""

    how: Adversarial

    def learnt_from(self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Images in the ball around each image and in 0..1, the last or the best of `steps` steps up the loss."""
        # DDP would wait for gradients of weights, which nothing asks for here
        inner = network.module if isinstance(network, nn.parallel.DistributedDataParallel) else network
        found, norm, eps = images, self.how.norm, self.how.eps
        if self.how.random_start:
            found = projected(images + self._start(images, generator), images, norm, eps)
        best, largest = found, torch.full_like(labels, -torch.inf, dtype=torch.float32)
        with _searching(inner, evaluation=self.how.evaluation_mode):
            for step in range(self.how.steps + self.how.best_iterate):
                found = found.detach().requires_grad_()
                losses = functional.cross_entropy(inner(found), labels, reduction="none")
                if self.how.best_iterate:
                    best = torch.where((losses > largest)[:, None, None, None], found, best)
                    largest = torch.maximum(losses, largest)
                if step < self.how.steps:
                    change = self.how.length * steepest(gradient(losses.sum(), found), norm)
                    found = projected(found.detach() + change, images, norm, eps)
        return (best if self.how.best_iterate else found).detach()

    def _start(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """A place in the ball around 0: uniform in Linf; in L2 of uniform direction and uniform volume."""
        device = generator.device
        if self.how.norm == "Linf":
            drawn = torch.rand(images.shape, generator=generator, device=device)
            return ((2 * drawn - 1) * self.how.eps).to(images)
        direction = torch.randn(images.shape, generator=generator, device=device)
        # the volume of a ball grows with its radius to the power of the dimension
        volumes = torch.rand(len(images), 1, 1, 1, generator=generator, device=device)
        radii = self.how.eps * volumes ** (1 / images[0].numel())
        return (direction * radii / lengths(direction)).to(images)


@contextmanager
def _searching(network: nn.Module, *, evaluation: bool) -> Iterator[None]:
    """Take no gradients of the weights, in evaluation mode if asked for; at the end all is the same as before.

    In training mode, the running means of batch norm follow the images that are sought, too.
    """
    parameters = [each for each in network.parameters() if each.requires_grad]
    was_training = network.training
    network.train(was_training and not evaluation)
    for each in parameters:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in parameters:
            each.requires_grad_(True)
        network.train(was_training)


MIXTURES = 2
"""Mixtures of an image whose predictions are compared with the image's."""


@dataclass(frozen=True)
class AugmixTraining(Standard):
    """Cross-entropy and consistency. With `mixes_only`, cross-entropy on one mixture."""

    how: Augmix
    mixes_only: bool = False

    def views(self, images: Tensor) -> Tensor:
        """The image and two mixtures of it, or one mixture alone, float32."""
        generator = np.random.default_rng(int(torch.randint(2**62, ())))
        found = []
        for image in images:
            mixtures = [self.mixture(image, generator) for _ in range(1 if self.mixes_only else MIXTURES)]
            found.append(torch.stack(mixtures if self.mixes_only else [image.float(), *mixtures]))
        return torch.stack(found)

    def mixture(self, image: Tensor, generator: Generator) -> Tensor:
        """A mixture of an image, uint8 (3, size, size), with `width` chains of operations: float32 in 0..255."""
        how = self.how
        shares = generator.dirichlet([how.alpha] * how.width).astype(np.float32)
        share = np.float32(generator.beta(how.alpha, how.alpha))
        names = ALL_AUGMIX_OPERATIONS if how.all_ops else AUGMIX_OPERATIONS
        original, magnitudes = image.permute(1, 2, 0).numpy(), Magnitudes(how.severity, generator)
        mixed = np.zeros(original.shape, np.float32)
        for each in shares:
            changed = Image.fromarray(original)
            for _ in range(how.depth or generator.integers(1, 4)):
                changed = OPERATIONS[generator.choice(names)](changed, magnitudes)
            mixed += each * np.asarray(changed, np.float32)
        return torch.from_numpy((1 - share) * original.astype(np.float32) + share * mixed).permute(2, 0, 1)

    def __call__(self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Learnt:
        """The mean cross-entropy of the first view, and `consistency` times the mean divergence of all of them."""
        # all views in one pass, as published: batch norm sees them together
        logits = network(images.transpose(0, 1).flatten(0, 1)).view(images.shape[1], len(images), -1)
        loss = functional.cross_entropy(logits[0], labels)
        if not self.mixes_only:
            loss = loss + self.how.consistency * jensen_shannon(logits.softmax(dim=-1).unbind())
        return Learnt(loss, logits[0])


class Magnitudes(NamedTuple):
    """The severity, up to 10, and the generator that draws the magnitudes of AugMix's operations."""

    severity: int
    generator: Generator

    def drawn(self, largest: float) -> float:
        """A magnitude up to `largest` times the severity's share."""
        return float(self.generator.uniform(0.1, self.severity)) * largest / 10

    def signed(self, value: float) -> float:
        """The value, or as likely its negative."""
        return -value if self.generator.uniform() > 0.5 else value


def moved(image: Image.Image, *matrix: float) -> Image.Image:
    """The image under an affine map of its pixels; pixels from beyond its edges are black."""
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


OPERATIONS: Mapping[str, Callable[[Image.Image, Magnitudes], Image.Image]] = {
    "AutoContrast": lambda image, _: ImageOps.autocontrast(image),
    "Equalize": lambda image, _: ImageOps.equalize(image),
    "Posterize": lambda image, given: ImageOps.posterize(image, 4 - int(given.drawn(4))),
    "Solarize": lambda image, given: ImageOps.solarize(image, 256 - int(given.drawn(256))),
    "Rotate": lambda image, given: image.rotate(given.signed(int(given.drawn(30))), Image.Resampling.BILINEAR),
    "ShearX": lambda image, given: moved(image, 1, given.signed(given.drawn(0.3)), 0, 0, 1, 0),
    "ShearY": lambda image, given: moved(image, 1, 0, 0, given.signed(given.drawn(0.3)), 1, 0),
    "TranslateX": lambda image, given: moved(image, 1, 0, given.signed(int(given.drawn(image.width / 3))), 0, 1, 0),
    "TranslateY": lambda image, given: moved(image, 1, 0, 0, 0, 1, given.signed(int(given.drawn(image.height / 3)))),
    "Brightness": lambda image, given: ImageEnhance.Brightness(image).enhance(given.drawn(1.8) + 0.1),
    "Color": lambda image, given: ImageEnhance.Color(image).enhance(given.drawn(1.8) + 0.1),
    "Contrast": lambda image, given: ImageEnhance.Contrast(image).enhance(given.drawn(1.8) + 0.1),
    "Sharpness": lambda image, given: ImageEnhance.Sharpness(image).enhance(given.drawn(1.8) + 0.1),
}
"""AugMix's operations with the magnitudes of its authors' code."""


def jensen_shannon(distributions: Sequence[Tensor]) -> Tensor:
    """The Jensen-Shannon divergence, in nats, of distributions of shape (n, classes): the mean over n.

    The mean of their Kullback-Leibler divergences from their mean: 0 for equal ones, at most the logarithm of their
    number.
    """
    stacked = torch.stack(list(distributions))
    # as the authors do: a share that rounds to 0 has no logarithm
    middle = stacked.mean(dim=0).clamp(1e-7, 1).log()
    found = [functional.kl_div(middle, each, reduction="batchmean") for each in stacked]
    return torch.stack(found).mean()
