"""The stage score_crops: the very pixels that are exported, through the model's own preprocessing, in float64."""

import io
import re
from collections.abc import Callable
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

from cleanset.boxes import Box, Crop
from cleanset.crops import crops_csv
from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.images import cropped, part, png
from cleanset.params import read_params
from cleanset.pictures import VerifiedPictures
from cleanset.ranking import top5
from cleanset.scoring import engine
from cleanset.scoring.decoding import SharedBatches, in_threads
from cleanset.stages import score_crops
from cleanset.tables import CROP_SCORES, INDEX, SCORES, read_table, write_table
from inputs.made import picture_id, ten_pictures
from scoring.editions import make_edition, write_params, write_weights
from scoring.networks import SMALL

BOXES: list[Box] = [(0, 0, 35, 60), (0, 0, 70, 20), (5, 7, 6, 59), (10, 0, 60, 60), (0, 1, 70, 60)]
COUNT = 20


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """Twenty pictures of which the model is right on all but every fourth, with crops of the first twelve."""
    edition = make_edition(tmp_path, COUNT)
    index = read_table(edition.index, INDEX)
    highest = [label + 500 * (number % 4 == 0) for number, label in enumerate(index["ilsvrc_class"], start=1)]
    classes = [[(first + place) % 1000 for place in range(5)] for first in highest]
    said = pd.DataFrame(
        {"image_id": index["image_id"], "top5_class": classes, "top5_probability": [[0.5, 0.1, 0.1, 0.1, 0.1]] * COUNT}
    )
    write_table(edition.scores("standard"), said, SCORES)
    write_scored_with(edition)
    edition.crops.write_text(crops_csv(drawn()))
    return edition


def drawn() -> list[Crop]:
    return [Crop(picture_id(number), BOXES[number % len(BOXES)]) for number in range(1, 13)]


def write_scored_with(edition: Edition) -> None:
    sha256 = read_params(edition.folder).model("standard").sha256
    edition.scored_with("standard").write_text(f'{{"weights_sha256": "{sha256}"}}')


def scored(edition: Edition) -> pd.DataFrame:
    score_crops.run(edition, "standard")
    return read_table(edition.crop_scores("standard"), CROP_SCORES)


def reader(edition: Edition) -> Callable[[str], bytes]:
    return VerifiedPictures(edition, "images.tar", read_table(edition.index, INDEX)).read


def test_it_is_what_timm_says_of_the_exported_png(edition: Edition) -> None:
    """timm's own network and transform on the PNG that export would write, one picture at a time."""
    found = scored(edition)
    network = timm.create_model("test_byobnet", pretrained=False)
    network.load_state_dict(load_file(edition.folder / "w.safetensors"))
    network = network.double().eval()
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network))
    *geometry, normalise = transform.transforms
    read = reader(edition)
    for row in found.to_dict("records"):
        box = (row["left"], row["top"], row["right"], row["bottom"])
        exported = Image.open(io.BytesIO(png(cropped(read(row["image_id"]), box))))
        pixels: Any = exported
        for step in geometry:
            pixels = step(pixels)
        with torch.inference_mode():
            highest = network(normalise(pixels.double())[None])[0].softmax(0).topk(5)
        assert row["top5_class"].tolist() == highest.indices.tolist()
        assert np.allclose(row["top5_probability"], highest.values, rtol=0, atol=1e-7)


def test_crops_of_candidates_only_by_picture_and_box(edition: Edition) -> None:
    """Pictures 4, 8 and 12 are none; a picture may have several boxes."""
    edition.crops.write_text(crops_csv([*drawn(), Crop(picture_id(7), (0, 0, 9, 9))]))
    found = scored(edition)
    columns = ["image_id", "left", "top", "right", "bottom"]
    assert list(found[columns].itertuples(index=False, name=None)) == sorted(
        (name, *box)
        for name, box in [*drawn(), (picture_id(7), (0, 0, 9, 9))]
        if name not in {picture_id(number) for number in (4, 8, 12)}
    )
    params = edition.folder / "params.yaml"
    params.write_text(params.read_text().replace("  images:", "  classes: [n01440764]\n  images:"))
    of_class = [picture_id(number) for number in (1, 7, 7, 10)]  # ids 1, 4, 7, 10 have class 0
    assert scored(edition)["image_id"].tolist() == of_class


def test_the_same_bytes_in_any_batch_and_order(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    scored(edition)
    first = edition.crop_scores("standard").read_bytes()
    monkeypatch.setattr(engine, "CPU_BATCH", 64)
    for batch_size in (1, 3, 64):
        write_params(edition.folder, batch_size=batch_size)
        scored(edition)
        assert edition.crop_scores("standard").read_bytes() == first
    header, *lines = edition.crops.read_text().splitlines()
    edition.crops.write_text("\n".join([header, *reversed(lines)]) + "\n")
    scored(edition)
    assert edition.crop_scores("standard").read_bytes() == first


def test_lower_precisions_are_taken_too(edition: Edition) -> None:
    exact = scored(edition)
    write_params(edition.folder, precision="bfloat16")
    lower = scored(edition)
    (_, before), (_, after) = (top5(table) for table in (exact, lower))
    assert 0 < np.abs(before - after).max() < 0.1


@pytest.mark.parametrize("which", ["none drawn", "none of a candidate"])
def test_without_a_crop_nothing_is_needed(edition: Edition, which: str) -> None:
    """Neither the model's weights nor the pictures."""
    crops = [] if which == "none drawn" else [Crop(picture_id(4), BOXES[0])]
    edition.crops.write_text(crops_csv(crops))
    for name in ("w.safetensors", "images.tar"):
        (edition.folder / name).unlink()
    edition.scored_with("standard").unlink()
    assert scored(edition).empty


def test_processes_crop_as_threads_do() -> None:
    """A GPU is fed by processes, so that what reads and crops must survive the way there."""
    names = [picture_id(number) for number in range(1, 11)]
    crops = {name: Crop(name, (number, 0, 30, 20 + number)) for number, name in enumerate(names)}
    source = partial(part, ten_pictures().__getitem__, crops)
    groups = [names[:4], names[4:8], names[8:]]
    expected = list(in_threads(groups, source, SMALL, 4, 2))
    with SharedBatches(source, SMALL, 4, 2) as shared:
        for ours, theirs in zip(shared.batches(groups), expected, strict=True):
            assert np.array_equal(ours.pixels, theirs.pixels)
    first = SMALL(cropped(ten_pictures()[names[0]], crops[names[0]].box))
    assert np.array_equal(expected[0].pixels[0], first)


def test_a_crop_that_cannot_be_read_is_named() -> None:
    crops = {"a": Crop("a", BOXES[0])}
    with pytest.raises(CleansetError, match=r"^a: cannot be read \(not a JPEG\); expected a whole JPEG"):
        list(in_threads([["a"]], lambda name: part(lambda _: b"x", crops, name), SMALL, 1, 1))


def missing_weights(edition: Edition) -> None:
    (edition.folder / "w.safetensors").unlink()


def missing_pictures(edition: Edition) -> None:
    (edition.folder / "images.tar").unlink()


def other_weights(edition: Edition) -> None:
    write_weights(edition.folder, seed=2)
    write_params(edition.folder)


def no_record_of_the_weights(edition: Edition) -> None:
    edition.scored_with("standard").write_text("{}")


def no_crops(edition: Edition) -> None:
    edition.crops.unlink()


def unknown_picture(edition: Edition) -> None:
    edition.crops.write_text(crops_csv([*drawn(), Crop(picture_id(99), BOXES[0])]))


def another_picture(edition: Edition) -> None:
    archive = bytearray((edition.folder / "images.tar").read_bytes())
    archive[600] ^= 255  # a byte of the first picture
    (edition.folder / "images.tar").write_bytes(archive)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (missing_weights, r"w\.safetensors: missing; expected the weights of test_byobnet \(params\.yaml\)"),
        (missing_pictures, r"images\.tar: missing; expected the validation pictures, a tar or a folder"),
        (
            other_weights,
            r"^standard: weights with SHA-256 \w{64}, but .*standard\.json has \w{64}; expected those",
        ),
        (no_record_of_the_weights, r"standard\.json: missing, or without weights_sha256; run dvc repro, or dvc pull"),
        (no_crops, r"data/crops\.csv: missing; run dvc repro, or dvc pull to fetch it"),
        (unknown_picture, rf"data/crops\.csv: {picture_id(99)} is not in .*index\.parquet: run dvc repro"),
        (another_picture, rf"images\.tar: {picture_id(1)} has SHA-256 \w+, expected \w+ as in the index"),
    ],
)
def test_one_line_and_nothing_written(edition: Edition, damage: Callable[[Edition], None], message: str) -> None:
    damage(edition)
    with pytest.raises(CleansetError, match=message) as error:
        score_crops.run(edition, "standard")
    assert not re.search(r"\n", str(error.value))
    assert not edition.crop_scores("standard").parent.exists()
