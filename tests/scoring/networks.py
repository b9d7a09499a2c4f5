"""A network that costs nothing, with images for it; and a ResNet-50 that nobody trained."""

from pathlib import Path
from typing import Any

import timm
import torch
from safetensors.torch import save_file
from timm.models.resnet import ResNet
from torch import Tensor, nn

from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.plumbing.files import sha256
from cleanset.scoring.devices import device_of
from cleanset.scoring.models import LoadedModel
from tests.ten_images import drawn_image, id_of, jpeg

CPU = device_of(torch.device("cpu"))
SMALL = ResizeAndCrop("small", 36, 32, "bilinear")
ENSEMBLE = {
    "standard": {"source": "timm", "name": "resnet50.a1_in1k"},
    "norm_robust": {"source": "robustbench", "name": "Salman2020Do_R50", "threat_model": "Linf"},
    "corruption_robust": {"source": "robustbench", "name": "Erichson2022NoisyMix_new", "threat_model": "corruptions"},
}


class Linear(nn.Module):
    """A thousand logits, linear in the mean colours of a grid; raises when it gets more than `most` images."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.weight = nn.Parameter(torch.randn(1000, 48, generator=generator))
        self.most = most
        self.seen: list[int] = []

    def forward(self, pixels: Tensor) -> Tensor:
        self.seen.append(len(pixels))
        if self.most is not None and len(pixels) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate a lot")
        return nn.functional.adaptive_avg_pool2d(pixels, 4).flatten(1) @ self.weight.T


def linear(most: int | None = None) -> LoadedModel:
    return LoadedModel(Linear(most).requires_grad_(False), SMALL, "0" * 64, classes=1000)


def many(count: int) -> dict[str, bytes]:
    """Small drawn images by image id."""
    return {id_of(number): jpeg(drawn_image(38 + number % 7, 40, seed=number)) for number in range(1, count + 1)}


def random_resnet50(seed: int) -> ResNet:
    """With random weights and statistics, as no untrained batch normalisation has them."""
    torch.manual_seed(seed)
    network: ResNet = timm.create_model("resnet50")
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and module.running_var is not None:
            nn.init.uniform_(module.weight, 0.5, 1)
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return network


def saved(path: Path, content: Any) -> dict[str, Any]:
    """Save weights; where they are and their SHA-256, for params."""
    if path.suffix == ".safetensors":
        save_file(content, path)
    else:
        torch.save(content, path)
    return {"weights": path.name, "sha256": sha256(path.read_bytes())}


def settle(network: nn.Module, seed: int) -> nn.Module:
    """Weights and statistics unlike those of a fresh network, so that nothing left out goes unseen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.is_floating_point() and "normalize" not in name:
                noise = torch.rand(value.shape, generator=generator)
                value.copy_(noise + 0.5 if name.endswith("running_var") else (noise - 0.5) / 8)
    return network.eval()
