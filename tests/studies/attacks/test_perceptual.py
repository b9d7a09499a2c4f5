"""LPIPS against the formula of its paper, written out; AlexNet with random weights in place of a download."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch.nn import functional
from torchvision.models import alexnet

from cleanset.errors import CleansetError
from cleanset.studies.attacks.judged import CPU, Lpips, distances

pytestmark = pytest.mark.slow

Tensors = dict[str, torch.Tensor]
LAYERS = {0: (4, 2), 3: (1, 2), 6: (1, 1), 8: (1, 1), 10: (1, 1)}
"""Of AlexNet's convolutions, by their places: stride and padding; a pooling comes before the second and the third."""


@pytest.fixture(scope="module")
def weights() -> Tensors:
    generator = torch.Generator().manual_seed(0)
    shapes = {name: value.shape for name, value in alexnet(weights=None).state_dict().items()}
    return {name: torch.randn(shape, generator=generator) / shape[-1] ** 2 for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def measure(weights: Tensors, tmp_path_factory: pytest.TempPathFactory) -> Lpips:
    path = tmp_path_factory.mktemp("weights") / "alexnet.safetensors"
    save_file(weights, path)
    return Lpips(path, CPU)


def drawn(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (3, 64, 64), np.uint8)


def by_the_formula(weights: Tensors, image: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Zhang and others 2018, equation 1: squared differences of unit features, weighted by channel, averaged, added."""
    package = find_spec("lpips")
    assert package is not None
    assert package.origin is not None
    linear = torch.load(
        Path(package.origin).parent / "weights" / "v0.1" / "alex.pth", map_location="cpu", weights_only=True
    )
    shift = torch.tensor([-0.030, -0.088, -0.188]).double()[:, None, None]
    scale = torch.tensor([0.458, 0.448, 0.450]).double()[:, None, None]
    features = [((torch.from_numpy(each) / 127.5 - 1).double() - shift) / scale for each in (image, other)]
    total = 0.0
    for number, (layer, (stride, padding)) in enumerate(LAYERS.items()):
        unit = []
        for place in (0, 1):
            if layer in (3, 6):
                features[place] = functional.max_pool2d(features[place], 3, 2)
            kernel, bias = weights[f"features.{layer}.weight"].double(), weights[f"features.{layer}.bias"].double()
            features[place] = functional.conv2d(features[place][None], kernel, bias, stride, padding)[0].clamp(min=0)
            unit.append(features[place] / features[place].pow(2).sum(dim=0, keepdim=True).sqrt())
        by_channel = linear[f"lin{number}.model.1.weight"].double()[0]
        total += float(((unit[0] - unit[1]).pow(2) * by_channel).sum(dim=0).mean())
    return total


def test_it_is_the_published_formula(measure: Lpips, weights: Tensors) -> None:
    image = drawn(0)
    near = np.clip(image.astype(int) + np.random.default_rng(1).integers(-3, 4, image.shape), 0, 255).astype(np.uint8)
    for other in (drawn(2), near):
        # the library's pixels are float32 constants at some places
        assert measure(image, other) == pytest.approx(by_the_formula(weights, image, other), rel=1e-6)
    assert 0 < measure(image, near) < measure(image, drawn(2))


def test_of_equal_images_and_in_either_order(measure: Lpips) -> None:
    image, other = drawn(0), drawn(1)
    assert measure(image, image) == 0
    assert measure(image, other) == pytest.approx(measure(other, image), rel=1e-12)


def test_it_is_one_of_the_distances(measure: Lpips) -> None:
    image, other = drawn(0), drawn(1)
    assert distances(image, other, measure).lpips == measure(image, other)
    assert distances(image, other).lpips is None


def test_the_digest_is_that_of_the_file(weights: Tensors, tmp_path: Path) -> None:
    torch.save(weights, tmp_path / "alexnet.pth")
    found = Lpips(tmp_path / "alexnet.pth", CPU)
    assert len(found.weights_sha256) == 64
    assert found(drawn(0), drawn(1)) > 0


def test_no_file_and_weights_of_another_network(weights: Tensors, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"lpips: .*missing\.pth not found; expected AlexNet's weights"):
        Lpips(tmp_path / "missing.pth", CPU)
    features = {name: value for name, value in weights.items() if "classifier" not in name}
    save_file(features, tmp_path / "part.safetensors")
    with pytest.raises(CleansetError, match=r"part\.safetensors: does not fit the model"):
        Lpips(tmp_path / "part.safetensors", CPU)


def test_images_that_are_too_small(measure: Lpips) -> None:
    image, other = drawn(0), drawn(1)
    assert measure(image[:, :31, :31], other[:, :31, :31]) > 0
    with pytest.raises(CleansetError, match=r"lpips: an image of 31 x 30 pixels; expected at least 31 a side"):
        measure(image[:, :30, :31], other[:, :30, :31])
