"""Batches: every image once an epoch, shifts and mirrors, and shares that make up the batch."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cleanset.images.preprocessing import Resized
from cleanset.plumbing.files import sha256
from cleanset.studies.training.classification import (
    EIGENVALUES,
    EIGENVECTORS,
    ClassificationBatch,
    TrainingBatches,
    lit,
    shifted_and_mirrored,
)
from cleanset.studies.training.fold_data import ALONE, ProcessShare
from cleanset.studies.training.networks import build_network
from cleanset.studies.training.pixels import TrainingPixels
from cleanset.studies.training.recipes import Standard
from cleanset.studies.training.run_params import Network, Run

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
    return TrainingPixels(folder=folder, files=names, digests=digests, labels=np.arange(COUNT), size=SIZE)


def batches(pixels: TrainingPixels, share: ProcessShare = ALONE, size: int = 4, **keys: object) -> TrainingBatches:
    settings = {"network": {"name": "any"}, "augmentation": "none", "batch": size, "seed": 3, "epochs": 2, **keys}
    return TrainingBatches(pixels=pixels, recipe=Standard(), run=Run.model_validate(settings), share=share)


def numbers(batch: ClassificationBatch) -> list[int]:
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


def test_an_incomplete_batch_that_a_run_takes_is_the_last(pixels: TrainingPixels) -> None:
    source = batches(pixels, incomplete_batch=True)
    found = [numbers(batch) for batch in source(1)]
    assert [len(each) for each in found] == [4, 4, 3]
    assert sorted(chain(*found)) == list(range(COUNT))
    # every process needs an image of it
    assert [batches(pixels, ProcessShare(0, processes), incomplete_batch=True).count for processes in (3, 4)] == [3, 2]


def test_how_an_image_comes_to_its_size(pixels: TrainingPixels) -> None:
    """40 x 30 pixels to 16 x 16: in a ramp, the pixels nearest to the centres, or all of them."""
    ramp = np.broadcast_to(np.arange(40, dtype=np.uint8)[None, :, None], (30, 40, 3))
    whole = Image.fromarray(ramp)
    nearest = Resized(SIZE, is_nearest=True)(whole)[0, 0].tolist()
    assert nearest == [1, 3, 6, 8, 11, 13, 16, 18, 21, 23, 26, 28, 31, 33, 36, 38]
    assert Resized(SIZE)(whole)[0, 0].tolist() == [1, 3, 6, 8, 11, 13, 16, 18, 21, 23, 26, 28, 31, 33, 36, 38]
    name = "ramp.png"
    whole.save(pixels.folder / name)
    found = replace(pixels, files=[name], digests=[sha256((pixels.folder / name).read_bytes())])
    # the central square has 30 of 40 columns
    assert np.ptp(found(0)) < 30
    assert np.array_equal(replace(found, whole=True, is_nearest=True)(0)[0, 0], nearest)


def test_jitter_and_light_of_madrylab(pixels: TrainingPixels) -> None:
    """Grey gets the colours of the eigenvectors: by the draws of one standard deviation, .05 of each eigenvalue."""
    torch.manual_seed(0)
    grey = torch.full((3, 2, 2), 100, dtype=torch.uint8)
    shifts = torch.stack([lit(grey)[:, 0, 0] - 100 for _ in range(4000)]) / 255
    covariance = EIGENVECTORS @ torch.diag((0.05 * EIGENVALUES) ** 2) @ EIGENVECTORS.T
    torch.testing.assert_close(shifts.T @ shifts / 4000, covariance, atol=8e-6, rtol=0)
    (first, *_) = batches(pixels, augmentation="crop_and_jitter", trained_on=["brightness", "contrast", "saturate"])(1)
    assert (first.views.dtype, first.views.shape) == (torch.float32, (4, 1, 3, SIZE, SIZE))


def test_a_network_without_normalisation_sees_0_to_1(tmp_path: Path) -> None:
    wanted = Network(name="test_efficientnet", normalised=False)
    network = build_network(wanted, classes=3, size=32, edition=tmp_path, seed=0)
    whole = build_network(wanted.model_copy(update={"normalised": True}), classes=3, size=32, edition=tmp_path, seed=0)
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    mean, std = (torch.tensor(each)[:, None, None] for each in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    network.eval(), whole.eval()
    torch.testing.assert_close(network((images - mean) / std), whole(images))
    assert network.state_dict().keys() == {name for name in whole.state_dict() if name.startswith("1.")}


def test_fewer_images_than_a_batch_are_one(pixels: TrainingPixels) -> None:
    (batch,) = batches(pixels, size=32)(1)
    assert sorted(numbers(batch)) == list(range(COUNT))


def test_shares_make_up_the_batch(pixels: TrainingPixels) -> None:
    whole = [numbers(batch) for batch in batches(pixels)(1)]
    parts = [list(batches(pixels, ProcessShare(rank, 3))(1)) for rank in range(3)]
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
