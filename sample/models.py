"""The three small models: the ensemble of the real edition in miniature."""

from pathlib import Path

import timm
import torch
from safetensors.torch import load_file, save
from torch import nn
from torchvision.transforms import v2

from archives import write_whole

ARCHITECTURES: dict[str, str] = {
    "standard": "test_efficientnet",
    "norm_robust": "test_byobnet",
    "corruption_robust": "test_vit",
}
SIDE = 160
RESIZED = 182
CLASSES = 1000


def create(role: str) -> nn.Module:
    """The role's network with 1,000 outputs and weights of its own architecture's making."""
    model: nn.Module = timm.create_model(ARCHITECTURES[role], num_classes=CLASSES)
    return model


def favour(model: nn.Module, classes: list[int]) -> None:
    """Let training begin with the outputs of all other classes far down."""
    head = next(layer for layer in reversed(list(model.modules())) if isinstance(layer, nn.Linear))
    with torch.no_grad():
        head.bias.fill_(-8.0)
        head.bias[classes] = 0.0


def load(role: str, path: Path) -> nn.Module:
    """The role's trained network in float32, ready to predict."""
    model = create(role)
    model.load_state_dict(load_file(path), strict=True)
    return model.eval()


def store(model: nn.Module, path: Path) -> None:
    """Write the weights as float16 under timm's own names; counters keep their type."""
    halves = {
        name: (value.half() if value.is_floating_point() else value).contiguous()
        for name, value in model.state_dict().items()
    }
    write_whole(path, save(halves))


def normalise(role: str, images: torch.Tensor) -> torch.Tensor:
    """Images with values 0..1 as the network wants them."""
    config = timm.get_pretrained_cfg(ARCHITECTURES[role])
    assert config is not None
    mean = torch.tensor(config.mean)
    std = torch.tensor(config.std)
    return (images - mean[:, None, None]) / std[:, None, None]


CUT = v2.Compose(
    [
        v2.Resize(RESIZED, interpolation=v2.InterpolationMode.BICUBIC),
        v2.CenterCrop(SIDE),
        v2.PILToTensor(),
    ]
)
"""timm's own evaluation preprocessing: shorter side 182, then the central 160 x 160."""
