"""AugMix compared with the formulas of its authors' code, written again here, with the same draws in the same order."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

from cleanset.studies.training.augmix_operations import OPERATIONS, Magnitudes
from cleanset.studies.training.recipes import Augmix

pytestmark = pytest.mark.slow
SIDE = 32
AUGMIX_OPERATIONS = [
    "AutoContrast", "Equalize", "Posterize", "Rotate", "Solarize", "ShearX", "ShearY", "TranslateX", "TranslateY",
]  # fmt: skip
ALL_AUGMIX_OPERATIONS = [*AUGMIX_OPERATIONS, "Color", "Contrast", "Brightness", "Sharpness"]
"""The operations in the order of the authors' lists, which decides what is drawn."""
LARGEST = {
    "Posterize": 4, "Rotate": 30, "Solarize": 256, "ShearX": 0.3, "ShearY": 0.3, "TranslateX": SIDE / 3,
    "TranslateY": SIDE / 3, "Color": 1.8, "Contrast": 1.8, "Brightness": 1.8, "Sharpness": 1.8,
}  # fmt: skip
"""The largest magnitude of each operation that has one, at level 10."""


def enhanced(kind: Callable[[Image.Image], ImageEnhance._Enhance], image: Image.Image, strength: float) -> Image.Image:
    return kind(image).enhance(strength + 0.1)


def reference(name: str, image: Image.Image, severity: int, draws: Generator) -> Image.Image:
    """An operation: a level uniform from .1 to the severity, of 10, times the largest magnitude; a sign after it."""
    if name not in LARGEST:
        return {"AutoContrast": ImageOps.autocontrast, "Equalize": ImageOps.equalize}[name](image)  # type: ignore[operator,no-any-return]
    strength = draws.uniform(low=0.1, high=severity) * LARGEST[name] / 10
    if name in ("Posterize", "Rotate", "Solarize", "TranslateX", "TranslateY"):
        strength = int(strength)
    if name == "Posterize":
        return ImageOps.posterize(image, 4 - int(strength))
    if name == "Solarize":
        return ImageOps.solarize(image, 256 - int(strength))
    if name in ("Color", "Contrast", "Brightness", "Sharpness"):
        return enhanced(getattr(ImageEnhance, name), image, strength)
    if draws.uniform() > 0.5:
        strength = -strength
    if name == "Rotate":
        return image.rotate(strength, resample=Image.Resampling.BILINEAR)
    map_ = {
        "ShearX": (1, strength, 0, 0, 1, 0), "ShearY": (1, 0, 0, strength, 1, 0),
        "TranslateX": (1, 0, strength, 0, 1, 0), "TranslateY": (1, 0, 0, 0, 1, strength),
    }[name]  # fmt: skip
    return image.transform((SIDE, SIDE), Image.Transform.AFFINE, map_, resample=Image.Resampling.BILINEAR)


def reference_mixture(
    image: NDArray[np.uint8], names: Sequence[str], severity: int, draws: Generator
) -> NDArray[np.float64]:
    """(1 - m) x + m (w1 chain1(x) + w2 chain2(x) + w3 chain3(x)), with chains of one to three operations."""
    weights, share = draws.dirichlet([1.0] * 3), draws.beta(1.0, 1.0)
    mixed = np.zeros(image.shape)
    for weight in weights:
        changed = Image.fromarray(image)
        for _ in range(draws.integers(1, 4)):
            changed = reference(names[draws.choice(len(names))], changed, severity, draws)
        mixed += weight * np.asarray(changed)
    return (1 - share) * image + share * mixed


def photograph(number: int) -> NDArray[np.uint8]:
    """An image with edges, gradients and noise."""
    draws = np.random.default_rng([9, number])
    rows, columns = np.mgrid[:SIDE, :SIDE]
    ramp = np.stack([rows * 5 + 40, columns * 6 + 10, (rows + columns) * 3], axis=-1)
    ramp[8:20, 4:28] = draws.integers(0, 256, 3)
    return np.clip(ramp + draws.normal(0, 12, ramp.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("all_ops", [False, True])
def test_two_hundred_mixtures_are_those_of_the_authors_formulas(all_ops: bool) -> None:
    recipe = Augmix(severity=3, all_ops=all_ops)
    names = ALL_AUGMIX_OPERATIONS if all_ops else AUGMIX_OPERATIONS
    for number in range(200):
        image = photograph(number)
        found = recipe.mixture(torch.from_numpy(image).permute(2, 0, 1), np.random.default_rng(number))
        wanted = reference_mixture(image, names, 3, np.random.default_rng(number))
        assert np.abs(found.permute(1, 2, 0).numpy() - wanted).max() < 1e-3, number


@pytest.mark.parametrize("name", ALL_AUGMIX_OPERATIONS)
@pytest.mark.parametrize("severity", [1, 3, 10])
def test_an_operation_is_that_of_the_authors(name: str, severity: int) -> None:
    for seed in range(20):
        image = Image.fromarray(photograph(seed))
        found = OPERATIONS[name].change(image, Magnitudes(severity, np.random.default_rng(seed)))
        assert found.tobytes() == reference(name, image, severity, np.random.default_rng(seed)).tobytes()


def test_magnitudes_are_not_discrete() -> None:
    """As many shears as draws; torchvision has two at severity 3."""
    magnitudes = Magnitudes(3, np.random.default_rng(0))
    assert len({magnitudes.drawn(0.3) for _ in range(100)}) == 100
    assert max(magnitudes.drawn(0.3) for _ in range(1000)) == pytest.approx(0.09, abs=1e-3)


def test_every_operation_is_there() -> None:
    assert list(Augmix(all_ops=True).operations) == ALL_AUGMIX_OPERATIONS
    assert list(Augmix().operations) == AUGMIX_OPERATIONS
