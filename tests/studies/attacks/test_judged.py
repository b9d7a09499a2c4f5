"""Verdicts on the files that hold candidates, in float64, and LPIPS as its authors compute it."""

from functools import partial
from importlib.util import find_spec
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file
from torch.nn import functional
from torchvision.models import alexnet

from cleanset.errors import CleansetError
from cleanset.studies.attacks.base import Ball, Result, Subject
from cleanset.studies.attacks.candidate_files import Writers, candidate_file, distances, pixels_of_png, png_of
from cleanset.studies.attacks.judge import ImageLogits, Judge, unwritten
from cleanset.studies.attacks.lpips_distance import Lpips
from tests.studies.attacks.networks import CPU, Linear, drawn, loaded, random_linear, random_network, subject

pytestmark = pytest.mark.slow


def verdict_of(judge: Judge, one: Subject, result: Result, ball: Ball | None, before: ImageLogits) -> dict[str, Any]:
    return judge.verdict(one, result, before, partial(candidate_file, unwritten(one, result, ball)))


def test_the_png_read_again_gives_the_logits_bit_for_bit(tmp_path: Path) -> None:
    network = random_network(5)
    judge, one = Judge(loaded(network), CPU), subject(1, 0)
    before = judge.logits(one.pixels)
    verdict = verdict_of(judge, one, Result(drawn(8), 1), None, before)
    path = tmp_path / "a.png"
    path.write_bytes(verdict["content"])
    with Image.open(path) as image:  # by another way than the package's
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].contiguous().double() / 255
    with torch.inference_mode():
        logits = network.double()(pixels)[0].numpy()
    assert np.array_equal(verdict["logits_after"], logits)
    assert np.array_equal(judge.logits(one.pixels), before)


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
    verdict = verdict_of(judge, one, Result((dark, bright)[after], 1), None, judge.logits(one.pixels))
    assert (verdict["was_correct"] and verdict["is_error"], verdict["is_error"]) == (success, error)


def test_distances() -> None:
    image = np.full((3, 12, 12), 100, np.uint8)
    candidate = image.copy()
    candidate[0, 2, 3], candidate[1, 2, 3], candidate[2, 5, 5] = 103, 96, 112
    found = distances(image, candidate)
    assert (found["l0"], found["linf"]) == (2, 12 / 255)
    assert found["l2"] == pytest.approx(13 / 255)
    assert 0 < (found["ssim"] or 0) < 1
    assert distances(image, image) == (same := distances(candidate, candidate))
    assert same == {"l0": 0, "l2": 0, "linf": 0, "ssim": 1, "lpips": None}


def test_ssim_of_flat_images() -> None:
    """With no variance it is (2 a b + c) / (a a + b b + c), c = 2.55 ** 2: Z. Wang et al. (2004)."""
    one, other = (np.full((3, 9, 9), value, np.uint8) for value in (100, 150))
    expected = (2 * 100 * 150 + 2.55**2) / (100**2 + 150**2 + 2.55**2)
    assert distances(one, other)["ssim"] == pytest.approx(expected, rel=1e-9)


def test_outside_the_ball() -> None:
    judge, one = Judge(loaded(random_linear()), CPU), subject(1, 0, np.full((3, 12, 12), 100, np.uint8))
    before, ball = judge.logits(one.pixels), Ball("Linf", 4 / 255)
    assert verdict_of(judge, one, Result(one.pixels + 4, 1), ball, before)["from_center"] == 4 / 255
    with pytest.raises(CleansetError, match=r"n0/1\.JPEG: a candidate at Linf 0\.0196078; expected at most 0\.0156863"):
        verdict_of(judge, one, Result(one.pixels + 5, 1), ball, before)
    around = verdict_of(judge, one, Result(one.pixels + 5, 1, center=one.pixels + 3), ball, before)
    assert (around["from_center"], around["linf"]) == (2 / 255, 5 / 255)


def test_processes_make_the_same_files() -> None:
    """In any order, with the same error; what ends the context ends them."""
    one, ball = subject(1, 0), Ball("Linf", 40 / 255)
    asked = [unwritten(one, Result(np.clip(one.pixels, each, 255 - each), 1), ball) for each in (1, 9, 4)]
    with Writers(2) as writers:
        begun = [writers.begin(each) for each in asked]
        assert [each() for each in begun] == [candidate_file(each) for each in asked]
        outside = writers.begin(unwritten(one, Result(255 - one.pixels, 1), ball))
        with pytest.raises(CleansetError, match=r"n0/1\.JPEG: a candidate at Linf "):
            outside()
    with pytest.raises(RuntimeError):
        writers.begin(asked[0])


def test_a_process_that_is_killed() -> None:
    one, before = subject(1, 0), {each.pid for each in active_children()}
    asked = unwritten(one, Result(one.pixels, 1), None)
    with Writers(1) as writers:
        assert writers.begin(asked)() == candidate_file(asked)
        (process,) = (each for each in active_children() if each.pid not in before)
        process.kill()
        process.join()
        with pytest.raises(CleansetError, match=r"n0/1\.JPEG: a process that writes candidates was killed; expected"):
            writers.begin(asked)()


def test_logits_that_are_none() -> None:
    broken = Linear(torch.full((2, 432), torch.nan, dtype=torch.float64))
    with pytest.raises(CleansetError, match=r"^an attacked image: a logit is NaN or infinite; "):
        Judge(loaded(broken), CPU).logits(drawn(1))


Tensors = dict[str, torch.Tensor]
LAYERS = {0: (4, 2), 3: (1, 2), 6: (1, 1), 8: (1, 1), 10: (1, 1)}
"""AlexNet's convolutions by their places: stride and padding; a pooling comes before the second and the third."""


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


def noise(seed: int) -> NDArray[np.uint8]:
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
    image = noise(0)
    near = np.clip(image.astype(int) + np.random.default_rng(1).integers(-3, 4, image.shape), 0, 255).astype(np.uint8)
    for other in (noise(2), near):
        # the library's pixels are float32 constants at some places
        assert measure(image, other) == pytest.approx(by_the_formula(weights, image, other), rel=1e-6)
    assert 0 < measure(image, near) < measure(image, noise(2))


def test_of_equal_images_and_in_either_order(measure: Lpips) -> None:
    image, other = noise(0), noise(1)
    assert measure(image, image) == 0
    assert measure(image, other) == pytest.approx(measure(other, image), rel=1e-12)


def test_it_is_one_of_the_distances(measure: Lpips) -> None:
    image, other = noise(0), noise(1)
    assert distances(image, other, measure)["lpips"] == measure(image, other)
    assert distances(image, other)["lpips"] is None


@pytest.mark.long
def test_the_digest_is_that_of_the_file(weights: Tensors, tmp_path: Path) -> None:
    torch.save(weights, tmp_path / "alexnet.pth")
    found = Lpips(tmp_path / "alexnet.pth", CPU)
    assert len(found.weights_sha256) == 64
    assert found(noise(0), noise(1)) > 0


def test_no_file_and_weights_of_another_network(weights: Tensors, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"lpips: .*missing\.pth not found; expected AlexNet's weights"):
        Lpips(tmp_path / "missing.pth", CPU)
    features = {name: value for name, value in weights.items() if "classifier" not in name}
    save_file(features, tmp_path / "part.safetensors")
    with pytest.raises(CleansetError, match=r"part\.safetensors: does not fit the model"):
        Lpips(tmp_path / "part.safetensors", CPU)


def test_images_that_are_too_small(measure: Lpips) -> None:
    image, other = noise(0), noise(1)
    assert measure(image[:, :31, :31], other[:, :31, :31]) > 0
    with pytest.raises(CleansetError, match=r"lpips: an image of 31 x 30 pixels; expected at least 31 a side"):
        measure(image[:, :30, :31], other[:, :30, :31])
