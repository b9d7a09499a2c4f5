"""Small networks whose best change is known, and images for them."""

import numpy as np
import torch
from torch import Tensor, nn

from cleanset.images.preprocessing import Pixels, ResizeAndCrop
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.base import Known, Subject

CPU = torch.device("cpu")
KNOWN = Known(3)
SIDE = 12
SMALL = ResizeAndCrop("small", SIDE, SIDE, "bilinear")


class Linear(nn.Module):
    """Logits linear in the pixels: `weight` of shape (classes, 3 * side * side), `bias` of shape (classes)."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(len(weight), dtype=weight.dtype) if bias is None else bias)

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.flatten(1) @ self.weight.T + self.bias


def random_linear(classes: int = 3, seed: int = 0, side: int = SIDE) -> Linear:
    generator = torch.Generator().manual_seed(seed)
    return Linear(torch.randn(classes, 3 * side * side, generator=generator, dtype=torch.float64) / side)


def random_network(classes: int = 5, seed: int = 0) -> nn.Module:
    """Two convolutions and a pool: not linear."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.Tanh(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(32, classes),
    )  # fmt: skip


def on_cpu(network: nn.Module, batch_size: int = 4) -> PixelNetwork:
    return PixelNetwork(network, CPU, "float64", batch_size)


def loaded(network: nn.Module) -> LoadedModel:
    return LoadedModel(network.eval().requires_grad_(False), SMALL, "0" * 64, classes=1000)


def drawn(seed: int, side: int = SIDE, least: int = 0, most: int = 255) -> Pixels:
    return np.random.default_rng(seed).integers(least, most + 1, (3, side, side), dtype=np.uint8)


def subject(number: int, class_index: int, pixels: Pixels | None = None) -> Subject:
    return Subject(
        f"n0/{number}.JPEG", f"ILSVRC2012_val_{number:08d}", class_index, drawn(number) if pixels is None else pixels
    )


def classified(network: nn.Module, pixels: Pixels) -> int:
    """The top-1 class, computed without the package."""
    with torch.no_grad():
        return int(network.double()(torch.tensor(pixels[None] / 255.0)).argmax())


def correct_subjects(network: nn.Module, count: int, **options: int) -> list[Subject]:
    """Images of the class that the network predicts."""
    images = [drawn(number, **options) for number in range(count)]
    return [subject(number, classified(network, image), image) for number, image in enumerate(images)]
