"""Seven defences that hide gradients, and three honest models, for `cleanset attacks evaluate`: docs/attacks.md.

Each function is a custom model, as described in docs/own_model.md. The defences wrap the sample's `standard`,
which is trained on clean images alone and protects nothing; the weights are in sample/weights.
"""

import hashlib
from pathlib import Path

import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

WEIGHTS = Path(__file__).parent.parent / "sample" / "weights"
ARCHITECTURES = {"standard": "test_efficientnet", "norm_robust": "test_byobnet", "corruption_robust": "test_vit"}
PREPROCESSING = "timm-bicubic-182-160"
Model = tuple[nn.Module, str]
"""A network from pixels in 0..1 to logits, and the name of its preprocessing."""


class Normalised(nn.Module):
    """timm's network behind its normalisation."""

    mean: Tensor
    std: Tensor

    def __init__(self, role: str) -> None:
        super().__init__()
        self.network = timm.create_model(ARCHITECTURES[role], pretrained=False)
        self.network.load_state_dict(load_file(WEIGHTS / f"{role}.safetensors"))
        config = self.network.pretrained_cfg
        self.register_buffer("mean", torch.tensor(config["mean"], dtype=torch.float64).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(config["std"], dtype=torch.float64).view(1, -1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network((pixels - self.mean.to(pixels)) / self.std.to(pixels))
        return logits


class Defended(nn.Module):
    """A step before a network, by the name `step`."""

    def __init__(self, step: nn.Module) -> None:
        super().__init__()
        self.step = step
        self.network = Normalised("standard")

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(self.step(pixels))
        return logits


class Rounding(nn.Module):
    """Pixels in 16 levels: the gradient is 0 everywhere."""

    def forward(self, pixels: Tensor) -> Tensor:
        """The nearest levels."""
        return torch.round(pixels * 15) / 15


class Shattering(Rounding):
    """Pixels in 16 levels, through which 1e-9 of a gradient leaks that has nothing to do with the class."""

    def forward(self, pixels: Tensor) -> Tensor:
        """The nearest levels, and nearly nothing of a wave through the pixels."""
        return super().forward(pixels) + 1e-9 * torch.sin(1000 * pixels)


class Noise(nn.Module):
    """Noise on the pixels, another one whenever the model is asked."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Noisy pixels."""
        return pixels + 0.05 * torch.randn_like(pixels)


class HashedNoise(nn.Module):
    """Faint noise on the pixels, drawn from a hash of the image, by which the gradient is multiplied, too.

    It is the same whenever the model is asked, and another for an image that differs in one pixel.
    """

    def forward(self, pixels: Tensor) -> Tensor:
        """Noisy pixels."""
        noise = torch.stack([self._noise(image) for image in pixels])
        # nothing is added by the difference but its gradient
        return (pixels + 0.02 * noise).detach() + noise * (pixels - pixels.detach())

    @staticmethod
    def _noise(image: Tensor) -> Tensor:
        levels = torch.round(image.detach().cpu() * 255).to(torch.uint8).numpy()
        digest = hashlib.sha256(levels.tobytes()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        return torch.randn(image.shape, generator=generator, dtype=torch.float64).to(image)


class Scaled(nn.Module):
    """Logits times 1,000: the softmax is 0 and 1, and the cross-entropy has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Normalised("standard")

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(pixels)
        return 1000 * logits


class OneHot(Scaled):
    """1 for the top-1 class and 0 for the others."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Answers in place of logits."""
        logits = self.network(pixels)
        return nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits)


class TurnedAround(torch.autograd.Function):
    """The identity with a gradient that leads back to where the model is correct."""

    @staticmethod
    def forward(ctx: object, pixels: Tensor) -> Tensor:
        """The pixels."""
        return pixels.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        """The gradient, turned around."""
        return -gradient


class TurningAround(nn.Module):
    """Unchanged pixels; their gradient is reversed."""

    def forward(self, pixels: Tensor) -> Tensor:
        """The pixels."""
        found: Tensor = TurnedAround.apply(pixels)  # type: ignore[no-untyped-call]
        return found


def rounded() -> Model:
    """16 levels."""
    return Defended(Rounding()), PREPROCESSING


def shattered() -> Model:
    """16 levels, and a gradient that leads nowhere."""
    return Defended(Shattering()), PREPROCESSING


def noisy() -> Model:
    """Random noise."""
    return Defended(Noise()), PREPROCESSING


def hashed_noise() -> Model:
    """Noise from a hash of the image."""
    return Defended(HashedNoise()), PREPROCESSING


def turned_around() -> Model:
    """A gradient that leads back."""
    return Defended(TurningAround()), PREPROCESSING


def scaled() -> Model:
    """Saturated answers."""
    return Scaled(), PREPROCESSING


def one_hot() -> Model:
    """Answers without a gradient."""
    return OneHot(), PREPROCESSING


def standard() -> Model:
    """The network behind all these defences, without any."""
    return Normalised("standard"), PREPROCESSING


def norm_robust() -> Model:
    """Trained against small changes."""
    return Normalised("norm_robust"), PREPROCESSING


def corruption_robust() -> Model:
    """Trained on corrupted images."""
    return Normalised("corruption_robust"), PREPROCESSING
