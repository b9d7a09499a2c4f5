"""Image changes on arrays: the kinds of images, the pixels of the studies, draws, and what is refused."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2

import cleanset
from cleanset.errors import InputError
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.perturbations.changes import frames_of
from cleanset.studies.robustness.watermarks.changes import watermarked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def image() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (64, 48, 3), np.uint8)


@pytest.fixture(scope="module")
def square() -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (224, 224, 3), np.uint8)


def test_every_kind_of_image_has_the_pixels_of_a_study(image: NDArray[np.uint8]) -> None:
    (expected,) = corrupted_images(image, "shot_noise", [2], seed=5)
    change = partial(cleanset.corrupt, name="shot_noise", severity=2, seed=5)
    tensor = torch.from_numpy(image).permute(2, 0, 1)
    assert np.array_equal(change(image), expected)
    assert np.array_equal(np.asarray(change(Image.fromarray(image))), expected)
    assert np.array_equal(change(tensor).permute(1, 2, 0).numpy(), expected)
    as_float = change(tensor.float() / 255)
    assert as_float.dtype == torch.float32
    assert np.array_equal((as_float * 255).round().byte().permute(1, 2, 0).numpy(), expected)
    assert change(tensor.half() / 255).dtype == torch.float16


def test_a_batch(image: NDArray[np.uint8]) -> None:
    """The first image of a batch is changed as if alone, the second by its own draws; ids make it a study's."""
    batch = np.stack([image, image])
    found = cleanset.corrupt(batch, "gaussian_noise", seed=3)
    assert found.shape == batch.shape
    assert np.array_equal(found[0], cleanset.corrupt(image, "gaussian_noise", seed=3))
    assert np.array_equal(found[1], corrupted_images(image, "gaussian_noise", [3], image_seed(3, "1"))[0])
    assert not np.array_equal(found[0], found[1])
    named = cleanset.corrupt([image, image], "gaussian_noise", seed=3, image_id=["a", "b"])
    for each, image_id in zip(named, ("a", "b"), strict=True):
        assert np.array_equal(each, corrupted_images(image, "gaussian_noise", [3], image_seed(3, image_id))[0])
    numbered = cleanset.corrupt([Image.fromarray(image)] * 2, "gaussian_noise", seed=[7, 7])
    assert numbered[0].tobytes() == numbered[1].tobytes()
    assert batch[0].tobytes() == image.tobytes()


def test_draws_that_differ_follow_torch(image: NDArray[np.uint8]) -> None:
    change = partial(cleanset.corrupt, name="gaussian_noise", severity=1, seed=None)
    torch.manual_seed(0)
    first, second = change(image), change(image)
    torch.manual_seed(0)
    assert np.array_equal(change(image), first)
    assert not np.array_equal(first, second)


def test_a_transform_of_torchvision(image: NDArray[np.uint8]) -> None:
    change = partial(cleanset.corrupt, name="contrast", severity=1)
    steps = [v2.ToImage(), change, v2.ToDtype(torch.float32, scale=True)]
    found = v2.Compose(steps)(Image.fromarray(image))
    assert isinstance(found, tv_tensors.Image)
    (expected,) = corrupted_images(image, "contrast", [1])
    assert np.array_equal((found * 255).round().byte().permute(1, 2, 0).numpy(), expected)


def test_a_custom_corruption(image: NDArray[np.uint8], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rains.py").write_text(
        "def rain(image, severity, generator):\n    image[generator.randint(len(image))] = severity\n    return image\n"
        "def small(image, severity, generator):\n    return image[:8]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = cleanset.corrupt(image, "rains:rain", severity=4)
    changed = np.flatnonzero((found != image).any(axis=(1, 2)))
    assert len(changed) == 1
    assert (found[changed] == 4).all()
    assert np.array_equal(found, cleanset.corrupt(image, "rains:rain", severity=4))
    with pytest.raises(cleanset.CleansetError, match=r"rains:small: gives uint8 \(8, 48, 3\); expected uint8"):
        cleanset.corrupt(image, "rains:small")
    with pytest.raises(cleanset.CleansetError, match="rains has no snow; expected a callable"):
        cleanset.corrupt(image, "rains:snow")


def test_perturbations(square: NDArray[np.uint8]) -> None:
    expected = frames_of(square, "tilt", size=224)(7)
    assert np.array_equal(cleanset.perturb(square, "tilt", frame=7), expected)
    small = cleanset.perturb(square, "gaussian_noise", frame=2, level=3, size=200, seed=9)
    assert np.array_equal(small, frames_of(square, "gaussian_noise", 9, level=3, size=200)(2))
    assert cleanset.perturb(square[:100], "scale", frame=40 - 10).shape == (100, 100, 3)


def test_watermark(square: NDArray[np.uint8]) -> None:
    assert np.array_equal(cleanset.watermark(square), watermarked(square))


def test_backgrounds(image: NDArray[np.uint8]) -> None:
    mask = np.zeros(image.shape[:2], bool)
    mask[20:40, 10:30] = True
    cut = cleanset.change_background(image, mask, "segmented_image")
    assert np.array_equal(cut[mask], image[mask])
    assert not cut[~mask].any()
    white = cleanset.change_background([image], [torch.from_numpy(mask)], "transparent_image", matte="white")
    assert (white[0][~mask] == 255).all()
    behind = np.full((80, 60, 3), 7, np.uint8)
    moved = cleanset.change_background(image, mask, "random_background", photographs=[Image.fromarray(behind)])
    assert (moved == 7).all(axis=2).mean() > 0.5
    own = cleanset.change_background(image, mask, "generated_background", generated=np.zeros_like(image))
    assert np.array_equal(own, cut)


@pytest.mark.parametrize(
    ("images", "name", "options", "expected"),
    [
        ([[1]], "fog", {}, "a value of type int; expected an image"),
        (np.zeros((3, 64, 64), np.uint8), "fog", {}, r"an array of uint8 and shape \(3, 64, 64\); expected an image"),
        (np.zeros((64, 64, 3)), "fog", {}, r"an array of float64 and shape \(64, 64, 3\)"),
        (torch.ones(3, 64, 64) * 2, "fog", {}, "values 2 to 2; expected pixels from 0 to 1"),
        (torch.ones(3, 64, 64).fill_(torch.nan), "fog", {}, "expected pixels from 0 to 1"),
        (np.zeros((64, 31, 3), np.uint8), "fog", {}, "an image of 31 x 64 pixels; expected sides of at least 32"),
        (np.zeros((64, 64, 3), np.uint8), "fog", {"severity": 6}, "severity 6; expected a whole number, 1 to 5"),
        (np.zeros((64, 64, 3), np.uint8), "fog", {"severity": 2.5}, "severity 2.5; expected a whole number"),
        (np.zeros((64, 64, 3), np.uint8), "frogs", {}, "unknown corruption 'frogs'"),
        (np.zeros((2, 64, 64, 3), np.uint8), "fog", {"seed": [1]}, "1 seeds for more images"),
    ],
)
def test_what_is_refused(images: Any, name: str, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(cleanset.CleansetError, match=expected):
        cleanset.corrupt(images, name, **options)


def test_other_refusals(image: NDArray[np.uint8]) -> None:
    with pytest.raises(InputError, match="frame 31; expected a whole number, 0 to 30"):
        cleanset.perturb(image, "tilt", frame=31)
    with pytest.raises(InputError, match="level 2; expected a whole number, 1 to 1"):
        cleanset.perturb(image, "tilt", frame=3, level=2)
    with pytest.raises(InputError, match="an image of 48 x 64 pixels; expected 224 x 224"):
        cleanset.watermark(image)
    with pytest.raises(InputError, match=r"a mask of shape \(8, 8\); expected that of its image"):
        cleanset.change_background(image, np.ones((8, 8), bool), "image_grey")


def test_all_changes_are_listed() -> None:
    found = cleanset.changes()
    assert found["family"].value_counts(sort=False).to_dict() == {
        "corruptions": 41, "perturbations": 14, "scenarios": 12, "watermarks": 1,
    }  # fmt: skip
    made = found[found["function"] == "corrupt"]
    assert len(made) == 19 + 10
    assert found.set_index("name").loc["translate", "steps"] == "0 to 40"
