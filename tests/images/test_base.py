import sys

import numpy as np
import pytest
from PIL import Image

from cleanset.images.preprocessing import BASE_SIZE, RES256CROP224, Resized, base_image, central, wide_image
from tests.ten_images import drawn_image


def test_the_base_image_is_what_robustbench_models_see() -> None:
    image = drawn_image(300, 400, seed=3)
    base = base_image(image)
    assert base.shape == (BASE_SIZE, BASE_SIZE, 3) == (224, 224, 3)
    assert base.flags.c_contiguous
    assert np.array_equal(base.transpose(2, 0, 1), RES256CROP224(image))


def test_a_base_image_of_the_same_size_stays_unchanged() -> None:
    base = base_image(drawn_image(500, 375, seed=1))
    assert np.array_equal(Resized(224)(Image.fromarray(base)).transpose(1, 2, 0), base)


def test_nothing_is_cropped() -> None:
    image = Image.new("RGB", (40, 20), (9, 8, 7))
    image.paste((200, 100, 50), (0, 0, 20, 20))
    resized = Resized(10)(image)
    assert Resized(10).name == "Res10"
    assert resized.shape == (3, 10, 10)
    assert resized[:, 0, 0].tolist() == [200, 100, 50]
    assert resized[:, 9, 9].tolist() == [9, 8, 7]


@pytest.mark.slow
def test_res224_is_robustbenchs() -> None:
    import pyautoattack

    sys.modules.setdefault("autoattack", pyautoattack)
    sys.modules.setdefault("autoattack.state", pyautoattack.state)
    from robustbench.data import PREPROCESSINGS

    for size in ((300, 400), (31, 77), (224, 224)):
        image = drawn_image(*size, seed=2)
        expected = (PREPROCESSINGS["Res224"](image) * 255).round().numpy().astype(np.uint8)
        assert np.array_equal(Resized(224)(image), expected)


@pytest.mark.parametrize("size", [(300, 400), (401, 300), (64, 64), (257, 256), (1000, 90), (37, 41)])
def test_the_centre_of_the_wide_image_is_the_base_image(size: tuple[int, int]) -> None:
    image = drawn_image(*size)
    wide = wide_image(image)
    assert min(wide.shape[:2]) == 256
    assert np.array_equal(central(wide), base_image(image))


def test_too_elongated_an_image_is_refused() -> None:
    with pytest.raises(ValueError, match="1 x 60000 pixels, resized to 256 x 15360000; expected at most 100,000,000"):
        wide_image(Image.new("L", (1, 60_000)))
