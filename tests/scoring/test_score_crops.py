"""The stage score_crops: the very pixels that are exported, through the model's own preprocessing, in float64."""

import io
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import load_file

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, Crop
from cleanset.images.codec import cropped, part, png
from cleanset.scoring import devices
from cleanset.scoring.decoding import SharedBatches, in_threads
from cleanset.selection.candidates import top5_predictions
from cleanset.stages import score_crops
from cleanset.tables import CROP_SCORES, CROPS, INDEX, read_table, write_table
from tests.scoring.editions import make_edition, write_params, write_weights
from tests.scoring.networks import SMALL
from tests.ten_images import SCORED, id_of, ten_images

pytestmark = pytest.mark.slow

BOXES: list[Box] = [(0, 0, 35, 60), (0, 0, 70, 20), (5, 7, 6, 59), (10, 0, 60, 60), (0, 1, 70, 60)]
COUNT = 20


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """Twenty images, with crops of the first twelve."""
    edition = make_edition(tmp_path, COUNT)
    edition.scored_with("standard").parent.mkdir(parents=True)
    write_scored_with(edition)
    write_crops(edition, drawn())
    return edition


def write_crops(edition: Edition, crops: Sequence[Crop]) -> None:
    write_table(edition.crops, pd.DataFrame(crops, columns=CROPS.names), CROPS, imagenet())


def drawn() -> list[Crop]:
    return [Crop(id_of(number), BOXES[number % len(BOXES)]) for number in range(1, 13)]


def write_scored_with(edition: Edition) -> None:
    sha256 = read_params(edition.folder).model("standard").sha256
    edition.scored_with("standard").write_text(json.dumps(SCORED | {"weights_sha256": sha256}))


def scored(edition: Edition) -> pd.DataFrame:
    score_crops.run(edition, "standard")
    return read_table(edition.crop_scores("standard"), CROP_SCORES, imagenet())


def reader(edition: Edition) -> Callable[[str], bytes]:
    return verified_images(edition, "images.tar", read_table(edition.index, INDEX, imagenet()), imagenet()).read


def test_it_is_what_timm_predicts_for_the_exported_png(edition: Edition) -> None:
    """timm's own network and transform on the PNG that export would write, one image at a time."""
    found = scored(edition)
    network = timm.create_model("test_byobnet", pretrained=False)
    network.load_state_dict(load_file(edition.folder / "w.safetensors"))
    network = network.double().eval()
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network))
    *geometry, normalise = transform.transforms
    read = reader(edition)
    for row in found.to_dict("records"):
        exported = Image.open(io.BytesIO(png(cropped(read(row["image_id"]), tuple(row["crop"])))))
        pixels: Any = exported
        for step in geometry:
            pixels = step(pixels)
        with torch.inference_mode():
            expected = network(normalise(pixels.double())[None])[0].softmax(0).topk(5)
        assert row["top5_class"].tolist() == expected.indices.tolist()
        assert np.allclose(row["top5_probability"], expected.values, rtol=0, atol=1e-7)


def test_every_crop_by_image_and_box(edition: Edition) -> None:
    """Also of images that are not candidates, and several of one image."""
    write_crops(edition, [*drawn(), Crop(id_of(7), (0, 0, 9, 9))])
    found = scored(edition)
    crops = [(image_id, tuple(crop)) for image_id, crop in zip(found["image_id"], found["crop"], strict=True)]
    assert crops == sorted([*drawn(), (id_of(7), (0, 0, 9, 9))])


@pytest.mark.long
def test_the_same_bytes_in_any_batch(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    scored(edition)
    first = edition.crop_scores("standard").read_bytes()
    monkeypatch.setattr(devices, "CPU_BATCH_SIZE", 64)
    for batch_size in (1, 64):
        write_params(edition.folder, batch_size=batch_size)
        scored(edition)
        assert edition.crop_scores("standard").read_bytes() == first


def test_lower_precisions_are_taken_too(edition: Edition) -> None:
    exact = scored(edition)
    write_params(edition.folder, precision="bfloat16")
    lower = scored(edition)
    (_, before), (_, after) = (top5_predictions(table) for table in (exact, lower))
    assert 0 < np.abs(before - after).max() < 0.1


def test_without_a_crop_nothing_is_needed(edition: Edition) -> None:
    """Neither the model's weights nor the images."""
    write_crops(edition, [])
    for name in ("w.safetensors", "images.tar"):
        (edition.folder / name).unlink()
    edition.scored_with("standard").unlink()
    assert scored(edition).empty


def test_processes_crop_as_threads_do() -> None:
    """A GPU is fed by processes, so that what reads and crops must survive the way there."""
    names = [id_of(number) for number in range(1, 11)]
    crops = {name: Crop(name, (number, 0, 30, 20 + number)) for number, name in enumerate(names)}
    source = partial(part, ten_images().__getitem__, crops)
    groups = [names[:4], names[4:8], names[8:]]
    expected = list(in_threads(groups, source, SMALL, 4, 2))
    with SharedBatches(source, SMALL, 4, 2) as shared:
        for ours, theirs in zip(shared.batches(groups), expected, strict=True):
            assert np.array_equal(ours.pixels, theirs.pixels)
    first = SMALL(cropped(ten_images()[names[0]], crops[names[0]].box))
    assert np.array_equal(expected[0].pixels[0], first)


def test_a_crop_that_cannot_be_read_is_reported() -> None:
    crops = {"a": Crop("a", BOXES[0])}
    with pytest.raises(CleansetError, match=r"^a: cannot be read \(not a JPEG or PNG\); expected a whole JPEG"):
        list(in_threads([["a"]], lambda name: part(lambda _: b"x", crops, name), SMALL, 1, 1))


def other_weights(edition: Edition) -> None:
    write_weights(edition.folder, seed=2)
    write_params(edition.folder)


def another_image(edition: Edition) -> None:
    archive = bytearray((edition.folder / "images.tar").read_bytes())
    archive[600] ^= 255  # a byte of the first image
    (edition.folder / "images.tar").write_bytes(archive)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda it: (it.folder / "w.safetensors").unlink(), r"w\.safetensors: missing; expected the weights of test_b"),
        (lambda it: (it.folder / "images.tar").unlink(), r"images\.tar: missing; expected the validation images, a"),
        (other_weights, r"^standard: weights with SHA-256 \w{64}, but .*standard\.json has \w{64}; expected those"),
        (lambda it: it.scored_with("standard").write_text("{}"), r"standard\.json: role: Field required.*: run dvc re"),
        (lambda it: it.crops.unlink(), r"data/crops\.parquet: missing; run dvc repro, or dvc pull to fetch it"),
        (
            lambda it: write_crops(it, [*drawn(), Crop(id_of(99), BOXES[0])]),
            rf"data/crops\.parquet: {id_of(99)} is not in .*index\.parquet: run dvc repro",
        ),
        (another_image, rf"images\.tar: {id_of(1)} has SHA-256 \w+, expected \w+ as in the index"),
    ],
)
def test_one_line_and_nothing_written(edition: Edition, damage: Callable[[Edition], object], message: str) -> None:
    damage(edition)
    with pytest.raises(CleansetError, match=message) as error:
        score_crops.run(edition, "standard")
    assert not re.search(r"\n", str(error.value))
    assert not edition.crop_scores("standard").parent.exists()
