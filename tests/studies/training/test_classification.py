"""Batches: every image once an epoch, shifts and mirrors, and shares that make up the batch."""

from itertools import chain

import numpy as np
import pytest
import torch
from PIL import Image

from cleanset.files import sha256
from cleanset.studies.training.classification import Batch, TrainingBatches, shifted_and_mirrored
from cleanset.studies.training.images import ALONE, Share, TrainingPixels
from cleanset.studies.training.params import Run
from cleanset.studies.training.recipes import Standard

pytestmark = pytest.mark.slow
COUNT, SIZE = 11, 16


@pytest.fixture(scope="module")
def pixels(tmp_path_factory: pytest.TempPathFactory) -> TrainingPixels:
    """Plain images, whose grey value is ten times their number."""
    folder = tmp_path_factory.mktemp("plain")
    names = [f"{number:02d}.png" for number in range(COUNT)]
    for number, name in enumerate(names):
        Image.new("RGB", (40, 30), (10 * number,) * 3).save(folder / name)
    digests = [sha256((folder / name).read_bytes()) for name in names]
    return TrainingPixels(folder, names, digests, np.arange(COUNT), SIZE)


def batches(pixels: TrainingPixels, share: Share = ALONE, size: int = 4) -> TrainingBatches:
    settings = {"network": {"name": "any"}, "augmentation": "none", "batch": size, "seed": 3, "epochs": 2}
    return TrainingBatches(pixels, Standard(), Run.model_validate(settings), share=share)


def numbers(batch: Batch) -> list[int]:
    """The numbers of the images, from their grey."""
    assert batch.views.shape[1:] == (1, 3, SIZE, SIZE)
    return [round(float(view.float().mean()) / 10) for view in batch.views]


def test_every_image_comes_once_an_epoch_but_for_the_incomplete_batch(pixels: TrainingPixels) -> None:
    source = batches(pixels)
    assert source.count == 2
    orders = []
    for epoch in (1, 2):
        found = [numbers(batch) for batch in source(epoch)]
        assert [len(each) for each in found] == [4, 4]
        assert all(numbers(batch) == batch.labels.tolist() for batch in source(epoch))
        orders.append(list(chain(*found)))
        assert len(set(orders[-1])) == 8
    assert orders[0] != orders[1]
    assert orders[1] == list(chain(*map(numbers, batches(pixels)(2))))


def test_fewer_images_than_a_batch_are_one(pixels: TrainingPixels) -> None:
    (batch,) = batches(pixels, size=32)(1)
    assert sorted(numbers(batch)) == list(range(COUNT))


def test_shares_make_up_the_batch(pixels: TrainingPixels) -> None:
    whole = [numbers(batch) for batch in batches(pixels)(1)]
    parts = [list(batches(pixels, Share(rank, 3))(1)) for rank in range(3)]
    for number, images in enumerate(whole):
        assert sorted(chain(*(numbers(each[number]) for each in parts))) == sorted(images)
        assert len({each[number].seed for each in parts}) == 3


def test_what_is_shifted_and_mirrored_stays_itself() -> None:
    """A ramp from left to right: its values tell where each column came from."""
    ramp = torch.arange(24, dtype=torch.uint8).repeat(8, 3, 24, 1)
    torch.manual_seed(0)
    found = shifted_and_mirrored(ramp)
    assert found.shape == ramp.shape
    directions = set()
    for image in found.int():
        row = image[0, 0]
        # in the middle, nothing is reflected
        steps = set((row[4:20] - row[3:19]).tolist())
        assert len(steps) == 1
        directions |= steps
        shift = int(row[12]) - 12 if steps == {1} else int(row[11]) - 12
        assert abs(shift) <= 2
    assert directions == {1, -1}
