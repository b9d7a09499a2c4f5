"""Segmentation as a task: losses, batches, and a small training that learns drawn objects."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from cleanset.errors import CleansetError
from cleanset.studies.training.folds import Share
from cleanset.studies.training.loop import StateFolder, train
from cleanset.studies.training.params import Network, Optimization
from cleanset.studies.training.segmentation.label_maps import Pixels
from cleanset.studies.training.segmentation.networks import SegmentationNetwork
from cleanset.studies.training.segmentation.task import (
    Segmentation,
    build_network,
    cross_entropy,
    pixel_accuracy,
)
from tests.studies.training.segmentation.drawn import READ, write_examples

SETTINGS = Optimization(rate=0.3, epochs=10, batch=4)


class PerPixel(nn.Module):
    """The smallest segmentation network: a linear classifier of each pixel's colour."""

    def __init__(self, labels: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Conv2d(3, labels, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(images)
        return found


def task_in(folder: Path, per_class: int = 6, size: int = 32, batch: int = 4, **options: object) -> Segmentation:
    files = write_examples(folder, per_class)
    network = SegmentationNetwork(PerPixel(), (0.5, 0.5, 0.5), (0.3, 0.3, 0.3))
    training, left_out = (
        [each for each in files if each.file[-5] != "0"],
        [each for each in files if each.file[-5] == "0"],
    )
    return Segmentation("fpn, fold_01", network, READ, training, left_out, left_out, size, batch, 7, **options)  # type: ignore[arg-type]


def test_cross_entropy_is_the_mean_over_pixels_that_are_seen() -> None:
    logits = torch.tensor([[[[2.0, 0.0, 9.0]], [[0.0, 1.0, 0.0]]]])
    labels = torch.tensor([[[0, 1, 255]]])
    expected = -np.log([np.exp(2) / (np.exp(2) + 1), np.e / (1 + np.e)]).mean()
    assert float(cross_entropy(logits, labels)) == pytest.approx(expected)
    assert float(pixel_accuracy(logits, labels)) == 1
    assert float(pixel_accuracy(logits, torch.tensor([[[1, 1, 255]]]))) == 0.5


def test_batches_are_the_same_for_the_same_seed_and_epoch(tmp_path: Path) -> None:
    task = task_in(tmp_path, mirrored=True)
    one, again, other = (list(task.batches(epoch)) for epoch in (1, 1, 2))
    assert len(one) == task.steps_per_epoch == 2
    assert one[0].images.shape == (4, 3, 32, 32)
    assert one[0].labels.shape == (4, 32, 32)
    assert all(
        torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels) for a, b in zip(one, again, strict=True)
    )
    assert not torch.equal(one[0].images, other[0].images)


def test_processes_share_each_batch(tmp_path: Path) -> None:
    whole = next(iter(task_in(tmp_path).batches(1)))
    parts = [next(iter(task_in(tmp_path, share=Share(rank, 2)).batches(1))) for rank in (0, 1)]
    assert torch.equal(whole.images[0::2], parts[0].images)
    assert torch.equal(whole.images[1::2], parts[1].images)


def test_crops_show_objects_with_their_labels(tmp_path: Path) -> None:
    for batch in task_in(tmp_path).batches(1):
        red = batch.images[:, 0] > 0.7
        assert torch.equal(batch.labels == 1, red)


def test_training_learns_what_the_colors_tell(tmp_path: Path) -> None:
    task = task_in(tmp_path / "data")
    before = task.validate(1)
    trained = train(task, SETTINGS, StateFolder(tmp_path / "state", {}))
    after = task.validate(1)
    assert set(after) == {"loss", "accuracy", "mean_iou"}
    assert after["loss"] < before["loss"]
    assert after["mean_iou"] > 0.95
    assert trained.history[-1]["validation_mean_iou"] == pytest.approx(after["mean_iou"])


def test_the_test_writes_counts_and_sheets(tmp_path: Path) -> None:
    task = task_in(tmp_path / "data", scenarios=("original", "image_grey"))
    table = task.test_table(tmp_path / "sheets")
    assert table["scenario"].unique().tolist() == ["original", "image_grey"]
    assert (tmp_path / "sheets" / "sheets.csv").is_file()


def test_without_images_left_out_nothing_is_tested(tmp_path: Path) -> None:
    task = task_in(tmp_path / "data", scenarios=("original",))
    task.validated = task.left_out = []
    assert task.validate(1) == {}
    task.scenarios = []
    assert task.test_table(tmp_path / "sheets").empty
    assert not (tmp_path / "sheets").exists()


def test_predictions_are_of_the_images_size(tmp_path: Path) -> None:
    image: Pixels = np.zeros((17, 23, 3), np.uint8)
    assert task_in(tmp_path).predicted(image).shape == (17, 23)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="fpn, fold_01: size 100; expected a multiple of 32"):
        task_in(tmp_path, size=100)
    with pytest.raises(
        CleansetError, match="fpn, fold_01: 10 training images for batches of 16; expected at least one"
    ):
        task_in(tmp_path, batch=16)


def test_new_weights_follow_from_the_seed(tmp_path: Path) -> None:
    wanted = Network(source="smp", name="deeplabv3plus", encoder="test_efficientnet")
    found = []
    for seed, drawn_before in ((1, 0), (1, 3), (2, 0)):
        torch.rand(drawn_before)
        network = build_network(wanted, 2, tmp_path, seed)
        found.append(torch.cat([each.detach().flatten() for each in network.parameters()]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
