"""Training recipes: what each does to training images, the loss that is learned, and its settings.

A recipe is a class in this file: its fields are its settings in params.yaml, its methods what it does, and `RECIPES`
finds it. Torch is imported when a recipe trains, so that params.yaml can be read without it.

Adversarial training: A. Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks" (2018). It
minimises over the weights the expected maximum of the loss within a ball. The maximum is searched for as in
studies/attacks, without its 8 bits: adversarial training images are never stored.

AugMix: D. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty" (2020).
Operations, magnitudes and mixtures are those in its authors' code.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np
from PIL import Image
from pydantic import Field, model_validator

from cleanset.planning.work import NO_PASSES, Passes
from cleanset.plumbing.validation import Section
from cleanset.studies.attacks.base import Fraction, Norm, Positive
from cleanset.studies.training.augmix_operations import OPERATIONS, Magnitudes

if TYPE_CHECKING:
    import torch
    from numpy.random import Generator
    from torch import Tensor, nn

Epochs = Annotated[int, Field(ge=0, le=100_000)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PIXEL_RANGE = 255
"""Distances in an image's values are shown as fractions of this."""


class Learnt(NamedTuple):
    """What is learned from a batch."""

    loss: "Tensor"
    """A scalar with its graph."""
    logits: "Tensor"
    """The logits whose accuracy is shown, of shape (n, classes)."""


class Recipe(Section):
    """A training recipe: cross-entropy on the unchanged images, unless a subclass says otherwise."""

    name: ClassVar[str]
    """The value of `recipe` in a run of params.yaml."""
    section: ClassVar[str] = ""
    """The key of its settings in a run, which several recipes may share; empty: it has none."""
    run_defaults: ClassVar[Mapping[str, object]] = {}
    """The keys that it gives to runs that leave them out."""
    is_attacked: ClassVar[bool] = False
    """Whether images under attack are trained on; a run's epoch is then chosen by its loss under attack."""
    distances: ClassVar[frozenset[str]] = frozenset()
    """The settings that are distances of pixels in 0..1."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """The settings of its section that it does not use."""

    @property
    def operations(self) -> dict[str, Sequence[str]]:
        """What is done to training images: the corruptions of ImageNet-C that each operation amounts to, by name."""
        return {}

    @property
    def clean_epochs(self) -> int:
        """Number of epochs on unchanged images, before the recipe begins."""
        return 0

    @property
    def searched(self) -> Passes:
        """The passes with which an image is made that the network learns from."""
        return NO_PASSES

    @property
    def passes(self) -> Passes:
        """The passes in which the network learns from an image, without `searched`: one for each view."""
        return Passes(forward=1, backward=1)

    def check(self, size: int) -> None:
        """Raise ValueError for settings that do not fit images of `size` x `size` pixels."""

    def views(self, images: "Tensor") -> "Tensor":
        """The views of images, uint8 (n, 3, size, size), of shape (n, views, 3, size, size), in 0..255.

        Here the images alone. Mixtures are float32, other views uint8. It draws from torch's global generator, which is
        seeded for each batch.
        """
        return images[:, None]

    def learn(self, network: "nn.Module", images: "Tensor", labels: "Tensor", generator: "torch.Generator") -> Learnt:
        """The mean cross-entropy of `images`, views in 0..1 of shape (n, views, 3, size, size), with labels (n)."""
        from torch.nn import functional

        logits = network(self.learnt_from(network, images[:, 0], labels, generator))
        return Learnt(functional.cross_entropy(logits, labels), logits)

    def learnt_from(
        self, network: "nn.Module", images: "Tensor", labels: "Tensor", generator: "torch.Generator"
    ) -> "Tensor":
        """The images, in 0..1, as the network is given them."""
        return images

    def settings_text(self) -> str:
        """Its settings as text; distances as fractions of 255, settings that are null not at all."""
        found = []
        for key, value in self.model_dump(exclude_none=True, exclude=set(self.unused)).items():
            if key in self.distances:
                text = f"{value * PIXEL_RANGE:.4g}/{PIXEL_RANGE}"
            elif isinstance(value, bool):
                text = "yes" if value else "no"
            else:
                text = str(value)
            found.append(f"{key.replace('_', ' ')} {text}")
        return ", ".join(found)


class Standard(Recipe):
    """Cross-entropy on the unchanged images."""

    name = "standard"


class Adversarial(Recipe):
    """Cross-entropy on the images of the ball S around each image at which the loss is largest.

    S: the images at a distance of at most `eps` in `norm`. The largest loss is sought by projected gradient ascent.
    """

    name = "adversarial"
    section = "adversarial"
    is_attacked = True
    distances = frozenset({"eps", "step"})

    norm: Norm = "Linf"
    """Norm of distances, Linf or L2."""
    eps: Fraction = 4 / 255
    """Radius of S, of pixels in 0..1."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 3
    """Steps of the ascent."""
    step: Fraction | None = None
    """Length of a step, at most `eps`; null: 2.5 eps / steps, at most eps."""
    random_start: bool = True
    """Whether the ascent begins at a random place in S, or at the image."""
    warm_up_epochs: Epochs = 0
    """Epochs on unchanged images, first."""
    evaluation_mode: bool = False
    """Whether batch norm uses its running means while the loss is raised."""
    best_iterate: bool = False
    """Whether the image with the largest loss of all steps is taken, or the one of the last step."""

    @model_validator(mode="after")
    def _step_within(self) -> "Adversarial":
        if self.step is not None and self.step > self.eps:
            raise ValueError(f"step {self.step:.6g} is larger than eps {self.eps:.6g}; expected at most eps")
        return self

    @property
    def length(self) -> float:
        """The length of a step."""
        return min(self.eps, 2.5 * self.eps / self.steps) if self.step is None else self.step

    @property
    def operations(self) -> dict[str, Sequence[str]]:
        """The ascent, which amounts to no corruption."""
        return {"projected gradient ascent": ()}

    @property
    def clean_epochs(self) -> int:
        """The epochs of the warm-up."""
        return self.warm_up_epochs

    @property
    def searched(self) -> Passes:
        """A gradient for each step; the best of all iterates needs an answer to the last one, too."""
        return Passes(forward=self.steps + self.best_iterate, backward=self.steps)

    def check(self, size: int) -> None:
        """Raise ValueError for a ball in which every image may become the same."""
        # nothing can be learnt from an attack that makes every image the same
        grey = 0.5 if self.norm == "Linf" else 0.5 * (3 * size**2) ** 0.5
        if self.eps >= grey:
            raise ValueError(
                f"adversarial.eps {self.eps:g} in {self.norm}; expected less than {grey:.4g}, where every image may "
                "become the same grey one: pixels are in 0..1, so write 4/255 for 4 of 255 levels"
            )

    def learnt_from(
        self, network: "nn.Module", images: "Tensor", labels: "Tensor", generator: "torch.Generator"
    ) -> "Tensor":
        """Images in the ball around each image and in 0..1, the last or the best of `steps` steps up the loss."""
        import torch
        from torch import nn
        from torch.nn import functional

        from cleanset.studies.attacks.ascent import gradient, projected, steepest

        # DDP would wait for gradients of weights, which nothing asks for here
        inner = network.module if isinstance(network, nn.parallel.DistributedDataParallel) else network
        found = images
        if self.random_start:
            found = projected(images + self._start(images, generator), images, self.norm, self.eps)
        best = found
        largest = torch.full_like(labels, -torch.inf, dtype=torch.float32)
        with _searching(inner, evaluation=self.evaluation_mode):
            for step in range(self.steps + self.best_iterate):
                found = found.detach().requires_grad_()
                losses = functional.cross_entropy(inner(found), labels, reduction="none")
                if self.best_iterate:
                    best = torch.where((losses > largest)[:, None, None, None], found, best)
                    largest = torch.maximum(losses, largest)
                if step < self.steps:
                    change = self.length * steepest(gradient(losses.sum(), found), self.norm)
                    found = projected(found.detach() + change, images, self.norm, self.eps)
        return (best if self.best_iterate else found).detach()

    def _start(self, images: "Tensor", generator: "torch.Generator") -> "Tensor":
        """A place in the ball around 0: uniform in Linf; in L2 of uniform direction and uniform volume."""
        import torch

        from cleanset.studies.attacks.ascent import lengths

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
def _searching(network: "nn.Module", *, evaluation: bool) -> Iterator[None]:
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


class Madry(Adversarial):
    """Adversarial training with the defaults of MadryLab's package robustness for ImageNet."""

    name = "madry"
    run_defaults: ClassVar = {
        "optimizer": "sgd",
        "rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 0.0001,
        "schedule": "step",
        "decay_epochs": 50,
        "epochs": 200,
        "batch": 256,
        "augmentation": "crop_and_jitter",
        "incomplete_batch": True,
    }

    steps: Annotated[int, Field(ge=1, le=1000)] = 7
    random_start: bool = False
    evaluation_mode: bool = True
    best_iterate: bool = True


MIXTURES = 2
"""Mixtures of an image whose predictions are compared with the image's."""


class Augmix(Recipe):
    """Cross-entropy, and the divergence between the predictions on an image and on two mixtures of it.

    A mixture has `width` chains of operations, mixed with weights of Dirichlet and Beta distributions.
    """

    name = "augmix"
    section = "augmix"
    mixes_only: ClassVar[bool] = False
    """Whether one mixture takes the place of the image and its mixtures."""

    width: Annotated[int, Field(ge=1, le=10)] = 3
    """Chains of a mixture."""
    depth: Annotated[int, Field(ge=1, le=10)] | None = None
    """Operations of a chain; null: 1 to 3, drawn."""
    alpha: Positive = 1.0
    """Parameter of the Dirichlet and Beta distributions."""
    severity: Annotated[int, Field(ge=1, le=10)] = 3
    """10 draws from all magnitudes; its authors' scripts have 3 for CIFAR and 1 for ImageNet."""
    consistency: NotNegative = 12.0
    """Weight of the Jensen-Shannon divergence."""
    all_ops: bool = False
    """Whether operations that amount to test corruptions are drawn, too."""

    @property
    def operations(self) -> dict[str, Sequence[str]]:
        """The operations that are drawn from, in their order."""
        # those of the default overlap with no test corruption
        return {name: each.amounts_to for name, each in OPERATIONS.items() if self.all_ops or not each.amounts_to}

    @property
    def passes(self) -> Passes:
        """One for each view: the image and its mixtures, or one mixture alone."""
        views = 1 if self.mixes_only else 1 + MIXTURES
        return Passes(forward=views, backward=views)

    def views(self, images: "Tensor") -> "Tensor":
        """The image and two mixtures of it, or one mixture alone, float32."""
        import torch

        generator = np.random.default_rng(int(torch.randint(2**62, ())))
        found = []
        for image in images:
            mixtures = [self.mixture(image, generator) for _ in range(1 if self.mixes_only else MIXTURES)]
            found.append(torch.stack(mixtures if self.mixes_only else [image.float(), *mixtures]))
        return torch.stack(found)

    def mixture(self, image: "Tensor", generator: "Generator") -> "Tensor":
        """A mixture of an image, uint8 (3, size, size), with `width` chains of operations: float32 in 0..255."""
        import torch

        shares = generator.dirichlet([self.alpha] * self.width).astype(np.float32)
        share = np.float32(generator.beta(self.alpha, self.alpha))
        names = list(self.operations)
        magnitudes = Magnitudes(self.severity, generator)
        original = image.permute(1, 2, 0).numpy()
        mixed = np.zeros(original.shape, np.float32)
        for each in shares:
            changed = Image.fromarray(original)
            for _ in range(self.depth or generator.integers(1, 4)):
                changed = OPERATIONS[generator.choice(names)].change(changed, magnitudes)
            mixed += each * np.asarray(changed, np.float32)
        return torch.from_numpy((1 - share) * original.astype(np.float32) + share * mixed).permute(2, 0, 1)

    def learn(self, network: "nn.Module", images: "Tensor", labels: "Tensor", generator: "torch.Generator") -> Learnt:
        """The mean cross-entropy of the first view, and `consistency` times the mean divergence of all of them."""
        from torch.nn import functional

        # all views in one pass, as published: batch norm sees them together
        logits = network(images.transpose(0, 1).flatten(0, 1)).view(images.shape[1], len(images), -1)
        loss = functional.cross_entropy(logits[0], labels)
        if not self.mixes_only:
            loss = loss + self.consistency * jensen_shannon(logits.softmax(dim=-1).unbind())
        return Learnt(loss, logits[0])


class AugmixMixing(Augmix):
    """Cross-entropy on one mixture of AugMix."""

    name = "augmix_mixing"
    mixes_only = True
    unused = frozenset({"consistency"})


def jensen_shannon(distributions: Sequence["Tensor"]) -> "Tensor":
    """The Jensen-Shannon divergence, in nats, of distributions of shape (n, classes): the mean over n.

    The mean of their Kullback-Leibler divergences from their mean: 0 for equal ones, at most the logarithm of their
    number.
    """
    import torch
    from torch.nn import functional

    stacked = torch.stack(list(distributions))
    # as the authors do: a share that rounds to 0 has no logarithm
    middle = stacked.mean(dim=0).clamp(1e-7, 1).log()
    found = [functional.kl_div(middle, each, reduction="batchmean") for each in stacked]
    return torch.stack(found).mean()


class Noise(Recipe):
    """Cross-entropy on images with Gaussian noise, whose strength is drawn for each image."""

    name = "noise"
    section = "noise"

    largest: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Largest standard deviation of the noise, of pixels in 0..1; it is drawn uniformly from 0 onwards."""

    @property
    def operations(self) -> dict[str, Sequence[str]]:
        """The noise, which amounts to the corruptions of noise."""
        return {"gaussian noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise")}

    def learnt_from(
        self, network: "nn.Module", images: "Tensor", labels: "Tensor", generator: "torch.Generator"
    ) -> "Tensor":
        """The images, in 0..1 with any number of dimensions, with noise; pixels stay in 0..1."""
        import torch

        device = generator.device
        strengths = torch.rand(len(images), *[1] * (images.ndim - 1), generator=generator, device=device) * self.largest
        noise = torch.randn(images.shape, generator=generator, device=device) * strengths
        return (images + noise.to(images)).clamp(0, 1)


def _recipes(kind: type[Recipe]) -> Iterator[type[Recipe]]:
    """The recipes that derive from a class."""
    for each in kind.__subclasses__():
        yield each
        yield from _recipes(each)


RECIPES: Mapping[str, type[Recipe]] = {each.name: each for each in _recipes(Recipe)}
"""Every recipe of this file by its name."""
SECTIONS: Mapping[str, type[Recipe]] = {each.section: each for each in Recipe.__subclasses__() if each.section}
"""The sections of settings in a run, by key, each with the recipe of its name."""


def recipes_of_section(section: str) -> list[str]:
    """The names of the recipes whose settings a section has."""
    return [name for name, each in RECIPES.items() if each.section == section]
