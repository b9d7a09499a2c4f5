import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from safetensors.torch import load_file
from torch import nn

from cleanset.classes import imagenet
from cleanset.edition.params import Model, Precision
from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.plumbing.files import sha256
from cleanset.plumbing.progress import tracked
from cleanset.scoring.decoding import in_threads
from cleanset.scoring.devices import choose_devices, device_of
from cleanset.scoring.models import LoadedModel, Normalise, load_model
from cleanset.scoring.scorer import Scorer, arithmetic, grouped, to_table
from cleanset.tables import SCORES, write_table
from tests.scoring.networks import saved
from tests.ten_images import drawn_image, id_of, jpeg, ten_images

pytestmark = pytest.mark.slow

CPU = device_of(torch.device("cpu"))


@pytest.fixture(autouse=True)
def one_thread_inside_an_operator() -> None:
    torch.set_num_threads(1)


def test_devices() -> None:
    assert [device.torch for device in choose_devices("cpu")] == [torch.device("cpu")]
    found = [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
    assert [device.torch for device in choose_devices("auto")] == (found or [torch.device("cpu")])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A small network of timm with random weights, and statistics that are not those of a fresh one."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(1)
    network = timm.create_model("test_byobnet", pretrained=False)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and module.running_var is not None:
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 2)
    nn.init.normal_(network.get_classifier().weight)
    weights = saved(folder / "tiny.safetensors", dict(network.state_dict()))
    return load_model(Model(source="timm", name="test_byobnet", **weights), folder)


def scored(
    model: LoadedModel, images: dict[str, bytes], batch_size: int, precision: Precision = "float64", workers: int = 2
) -> pd.DataFrame:
    with arithmetic(precision):
        groups = grouped(list(images), batch_size)
        decoded = in_threads(groups, images.__getitem__, model.preprocessing, batch_size, workers)
        return to_table(Scorer(model, CPU, precision)(decoded, workers))


def test_the_switches_are_as_before() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with arithmetic("float64"):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(before)


def test_score_is_a_plain_loop(tiny: LoadedModel) -> None:
    images = ten_images()
    table = scored(tiny, images, 4)
    assert list(table.columns) == SCORES.names
    assert table["image_id"].tolist() == [id_of(number) for number in range(1, 11)]
    network = tiny.network.double()
    for image_id, found, stored, log_odds in zip(*(table[name] for name in SCORES.names), strict=True):
        pixels = tiny.preprocessing(decode(images[image_id]))
        with torch.no_grad():
            output = network(torch.from_numpy(pixels)[None].double() / 255).softmax(dim=1)[0]
        probabilities, classes = output.sort(descending=True, stable=True)
        assert found.tolist() == classes[:5].tolist()
        assert stored.tolist() == probabilities[:5].float().tolist()
        assert log_odds == pytest.approx(float(torch.logit(probabilities[0])), rel=1e-6)
    assert table["top5_class"].str[0].nunique() > 1  # the images are distinguished


@pytest.mark.long
def test_batches_and_workers_do_not_show(tiny: LoadedModel, tmp_path: Path) -> None:
    images = {id_of(number): jpeg(drawn_image(20 + 3 * number, 70 - number, seed=number)) for number in range(1, 21)}
    found = set()
    for batch_size, workers in ((1, 1), (3, 2), (7, 3), (10, 2), (100, 2)):
        write_table(tmp_path / "table", scored(tiny, images, batch_size, workers=workers), SCORES, imagenet())
        found.add((tmp_path / "table").read_bytes())
    assert len(found) == 1


def test_images_are_read_only_a_little_ahead(tiny: LoadedModel) -> None:
    read: list[str] = []
    data = jpeg(drawn_image(30, 30))
    names = [id_of(number) for number in range(1, 101)]
    some = in_threads(grouped(names, 5), lambda name: read.append(name) or data, tiny.preprocessing, 5, 2)  # type: ignore[func-returns-value]
    next(some)
    assert len(read) <= 20
    some.close()
    assert len(read) <= 25


@pytest.mark.parametrize("broken", [b"", b"x", jpeg(drawn_image(50, 50))[:-60]])
def test_a_broken_image_is_reported(tiny: LoadedModel, broken: bytes) -> None:
    images = ten_images() | {id_of(7): broken}
    with pytest.raises(CleansetError, match=rf"^{id_of(7)}: cannot be read \(.+\); expected a whole JPEG or PNG$"):
        scored(tiny, images, 2)


class Fixed(nn.Module):
    """Returns `size` logits: the mean of the pixels, or NaN for a black image."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        mean = pixels.mean(dim=(1, 2, 3))
        return torch.where(mean > 0, mean, torch.nan)[:, None].expand(-1, self.size)


@pytest.mark.parametrize("size", [1, 999, 1001, 21843])
def test_another_number_of_classes(size: int) -> None:
    model = LoadedModel(Fixed(size), ResizeAndCrop("small", 8, 8, "bilinear"), "", classes=1000)
    images = ten_images()
    message = rf"^the model: the network gives \(2, {size}\); expected logits, float \(2, 1000\)$"
    with pytest.raises(CleansetError, match=message):
        scored(model, images, 2)


@pytest.mark.parametrize("precision", ["float64", "float32", "tf32", "bfloat16"])
def test_nan_for_one_image(precision: Precision) -> None:
    model = LoadedModel(Fixed(1000), ResizeAndCrop("small", 8, 8, "bilinear"), "", classes=1000)
    images = ten_images()
    scored(model, images, 2, precision)
    images[id_of(5)] = jpeg(drawn_image(20, 20).point(lambda value: 0))
    with pytest.raises(CleansetError, match=rf"^{id_of(5)}: a logit is NaN or infinite; "):
        scored(model, images, 2, precision)


def test_normalise_is_exact_in_the_precision_of_the_pixels() -> None:
    layer = Normalise((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    pixels = torch.rand(2, 3, 4, 4, dtype=torch.float64)
    expected = np.stack(
        [
            (pixels[:, c].numpy() - mean) / std
            for c, (mean, std) in enumerate([(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)])
        ],
        axis=1,
    )
    assert np.array_equal(layer(pixels).numpy(), expected)
    assert layer(pixels.float()).dtype == torch.float32


@pytest.mark.long
def test_real_model_against_timms_own_transform(real: Path) -> None:
    """EfficientNet-Lite0 on four photographs, with timm's transform and a plain forward pass."""
    name = "tf_efficientnet_lite0"
    path = real / "weights" / f"{name}.safetensors"
    model = load_model(Model(source="timm", name=name, weights=str(path), sha256=sha256(path.read_bytes())), real)
    paths = sorted((real / "photos").iterdir())[:4]
    images = {id_of(number): path.read_bytes() for number, path in enumerate(paths, start=1)}
    table = scored(model, images, 4)

    network = timm.create_model(name, pretrained=False)
    network.load_state_dict(load_file(path))
    config = timm.data.resolve_data_config({}, model=network)
    transform = timm.data.create_transform(**config, is_training=False)
    with torch.inference_mode():
        inputs = torch.stack([transform(decode(data).convert("RGB")) for data in images.values()])
        outputs = network.double().eval()(inputs.double()).softmax(dim=1).topk(5)
    assert np.stack(table["top5_class"].to_list())[:, 0].tolist() == outputs.indices[:, 0].tolist()
    # timm normalises in float32
    assert np.allclose(np.stack(table["top5_probability"].to_list()), outputs.values.numpy(), atol=1e-5)


def test_progress_is_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(tracked(iter(range(5)), 5, "numbers")) == [0, 1, 2, 3, 4]
    assert capfd.readouterr() == ("", "")


def test_progress_is_seen_at_a_terminal_and_ends_at_the_total() -> None:
    program = "from cleanset.plumbing.progress import tracked; list(tracked(iter(range(3)), 5, 'images', step=2))"
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", program], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 2**16)
    os.close(ours)
    assert b"images" in shown
    assert b"5/5" in shown
    assert b"6/5" not in shown
