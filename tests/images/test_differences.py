"""Differences of images, enlarged."""

import numpy as np
import pytest

from cleanset.images.preprocessing import enlarged_difference

SIZE = 112, 112


@pytest.mark.parametrize(("largest", "factor"), [(255, 0.5), (128, 0.5), (127, 1), (64, 1), (63, 2), (4, 16), (1, 64)])
def test_a_difference(largest: int, factor: float) -> None:
    """Gray if there is none; a multiple of the difference away from gray, in both directions."""
    before = np.full((160, 160, 3), 0, np.uint8)
    before[80:] = 255
    after = before.copy()
    after[:40] += np.uint8(largest)
    after[120:] -= np.uint8(largest)
    image, found = enlarged_difference(before, after, SIZE)
    shown = np.asarray(image)
    assert found == factor
    assert shown.shape == (112, 112, 3)
    assert {tuple(pixel) for pixel in shown[40:70].reshape(-1, 3).tolist()} == {(128, 128, 128)}
    levels = [int(shown[0, 0, 0]), int(shown[-1, 0, 0])]
    assert levels == pytest.approx([127.5 + factor * largest, 127.5 - factor * largest], abs=0.5)


def test_noise_keeps_its_amplitude() -> None:
    """Up and down by 4 from pixel to pixel, which a mean would make vanish."""
    before = np.full((160, 160, 3), 100, np.uint8)
    after = before + (4 * (-1) ** np.indices((160, 160)).sum(axis=0))[..., None].astype(np.int8)
    image, factor = enlarged_difference(before, after.astype(np.uint8), SIZE)
    assert factor == 16
    assert set(np.asarray(image).ravel().tolist()) == {64, 192}


def test_no_difference() -> None:
    image = np.zeros((112, 112, 3), np.uint8)
    assert enlarged_difference(image, image, SIZE)[1] == 1
