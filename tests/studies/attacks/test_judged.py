"""Candidates are judged by the file that holds them, in float64."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.attacks.base import Ball, Result
from cleanset.studies.attacks.judged import Judge, distances, pixels_of_png, png_of
from tests.studies.attacks.networks import CPU, Linear, drawn, loaded, random_linear, random_network, subject

pytestmark = pytest.mark.slow


def test_the_png_read_again_gives_the_logits_bit_for_bit(tmp_path: Path) -> None:
    network = random_network(5)
    judge, one = Judge(loaded(network), CPU), subject(1, 0)
    before = judge.logits([subject(2, 0).pixels, one.pixels])[1]
    verdict = judge.verdict(one, Result(drawn(8), 1), None, before)
    path = tmp_path / "a.png"
    path.write_bytes(verdict.png)
    with Image.open(path) as image:  # by another way than the package's
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].contiguous().double() / 255
    with torch.inference_mode():
        logits = network.double()(pixels)[0].numpy()
    assert np.array_equal(verdict.after, logits)
    assert np.array_equal(judge.logits([one.pixels])[0], before)


def test_a_png_holds_every_pixel() -> None:
    assert np.array_equal(pixels_of_png(png_of(drawn(3))), drawn(3))


@pytest.mark.parametrize(
    ("label", "before", "after", "success", "error"),
    [(0, 0, 1, True, True), (0, 0, 0, False, False), (0, 1, 1, False, True), (0, 1, 0, False, False)],
)
def test_success_is_a_change_for_the_worse(label: int, before: int, after: int, success: bool, error: bool) -> None:
    """Class 1 is bright."""
    weight = torch.zeros(2, 432, dtype=torch.float64)
    weight[1] = 1
    judge = Judge(loaded(Linear(weight, torch.tensor([216.0, 0.0], dtype=torch.float64))), CPU)
    dark, bright = np.zeros((3, 12, 12), np.uint8), np.full((3, 12, 12), 255, np.uint8)
    one = subject(1, label, (dark, bright)[before])
    verdict = judge.verdict(one, Result((dark, bright)[after], 1), None, judge.logits([one.pixels])[0])
    assert (verdict.success, verdict.is_error) == (success, error)


def test_distances() -> None:
    image = np.full((3, 12, 12), 100, np.uint8)
    candidate = image.copy()
    candidate[0, 2, 3], candidate[1, 2, 3], candidate[2, 5, 5] = 103, 96, 112
    found = distances(image, candidate)
    assert (found.l0, found.linf) == (2, 12 / 255)
    assert found.l2 == pytest.approx(13 / 255)
    assert 0 < found.ssim < 1
    assert distances(image, image) == (same := distances(candidate, candidate))
    assert (same.l0, same.l2, same.linf, same.ssim) == (0, 0, 0, 1)


def test_ssim_of_flat_images() -> None:
    """With no variance it is (2 a b + c) / (a a + b b + c), c = 2.55 ** 2: Z. Wang et al. (2004)."""
    one, other = (np.full((3, 9, 9), value, np.uint8) for value in (100, 150))
    expected = (2 * 100 * 150 + 2.55**2) / (100**2 + 150**2 + 2.55**2)
    assert distances(one, other).ssim == pytest.approx(expected, rel=1e-9)


def test_outside_the_ball() -> None:
    judge, one = Judge(loaded(random_linear()), CPU), subject(1, 0, np.full((3, 12, 12), 100, np.uint8))
    before, ball = judge.logits([one.pixels])[0], Ball("Linf", 4 / 255)
    assert judge.verdict(one, Result(one.pixels + 4, 1), ball, before).from_center == 4 / 255
    with pytest.raises(CleansetError, match=r"n0/1\.JPEG: a candidate at Linf 0\.0196078; expected at most 0\.0156863"):
        judge.verdict(one, Result(one.pixels + 5, 1), ball, before)
    around = judge.verdict(one, Result(one.pixels + 5, 1, center=one.pixels + 3), ball, before)
    assert (around.from_center, around.distances.linf) == (2 / 255, 5 / 255)


def test_logits_that_are_none() -> None:
    broken = Linear(torch.full((2, 432), torch.nan, dtype=torch.float64))
    with pytest.raises(CleansetError, match="a logit that is NaN or infinite"):
        Judge(loaded(broken), CPU).logits([drawn(1)])
