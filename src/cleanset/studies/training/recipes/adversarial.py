"""Adversarial training: A. Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks" (2018).

The minimum over the weights of the expectation of the maximum of the loss over all images of a ball. The maximum is
sought as studies/attacks does, without its 8 bits: what is trained on is never stored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from cleanset.studies.attacks.base import Norm
from cleanset.studies.attacks.pgd import gradient, lengths, projected, steepest
from cleanset.studies.training.recipes.base import Learnt, Standard


@dataclass(frozen=True)
class AdversarialTraining(Standard):
    """Cross-entropy on the images that projected gradient ascent finds; see params.Adversarial."""

    norm: Norm
    eps: float
    steps: int
    step: float
    random_start: bool = True
    warm_up_epochs: int = 0
    evaluation_mode: bool = False

    def __call__(
        self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator, epoch: int = 1
    ) -> Learnt:
        """The mean cross-entropy at the images that are found, or at the images in a warm-up epoch."""
        if epoch > self.warm_up_epochs:
            images = self.ascent(network, images[:, 0], labels, generator)[:, None]
        return super().__call__(network, images, labels, generator, epoch)

    def ascent(self, network: nn.Module, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Images in the ball around each image and in 0..1 after `steps` steps up the loss; of images in 0..1."""
        # DDP would wait for gradients of weights, which nothing asks for here
        inner = network.module if isinstance(network, nn.parallel.DistributedDataParallel) else network
        found = images
        if self.random_start:
            found = projected(images + self._start(images, generator), images, self.norm, self.eps)
        with _searching(inner, evaluation=self.evaluation_mode):
            for _ in range(self.steps):
                found = found.detach().requires_grad_()
                loss = functional.cross_entropy(inner(found), labels, reduction="sum")
                step = self.step * steepest(gradient(loss, found), self.norm)
                found = projected(found.detach() + step, images, self.norm, self.eps)
        return found.detach()

    def _start(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """A place in the ball around 0: uniform in Linf; in L2 of uniform direction and uniform volume."""
        device = generator.device
        if self.norm == "Linf":
            drawn = torch.rand(images.shape, generator=generator, device=device)
            return ((2 * drawn - 1) * self.eps).to(images)
        direction = torch.randn(images.shape, generator=generator, device=device)
        # the volume of a ball grows with its radius to the power of the dimension
        volumes = torch.rand(len(images), 1, 1, 1, generator=generator, device=device)
        radii = self.eps * volumes ** (1 / images[0].numel())
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
