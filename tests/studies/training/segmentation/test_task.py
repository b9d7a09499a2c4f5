"""Segmentation as a task and its test: losses, batches, a small training of drawn objects; literal counts, sheets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.studies.training.fold_data import FoldData, ProcessShare
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.loop import train
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.run_params import Network
from cleanset.studies.training.segmentation.examples import Example, Labels
from cleanset.studies.training.segmentation.networks import SegmentationNetwork
from cleanset.studies.training.segmentation.sheets import (
    OTHER_CLASS,
    OWN_CLASS,
    SHEET_COLUMNS,
    TINT,
    draw_tile,
    shown_images,
)
from cleanset.studies.training.segmentation.task import (
    SEGMENTATION_TEST_COLUMNS,
    Segmentation,
    build_network,
    cross_entropy,
    pixel_accuracy,
    segmented_files,
)
from cleanset.studies.training.state import StateFolder
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.tables import read_table, write_table
from tests.studies.training.segmentation.drawn import CLASSES, READ, WNIDS, draw, file_of, write_examples

pytestmark = pytest.mark.slow

NETWORK = {"source": "smp", "name": "deeplabv3plus", "encoder": "test_efficientnet"}
SCENARIOS = ["original", "segmented_image"]


class PerPixel(nn.Module):
    """The smallest segmentation network: a linear classifier of each pixel's colour."""

    def __init__(self, labels: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Conv2d(3, labels, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(images)
        return found


def task_in(folder: Path, per_class: int = 6, **keys: object) -> Segmentation:
    """A fold of drawn images; the first of each class is validated and tested on."""
    study, files = TrainingStudy(folder), write_examples(folder, per_class)
    rows = [(each.file, each.class_index, *[each.sha256] * 2, each.file, each.mask_sha256, None) for each in files]
    images = pd.DataFrame(rows, columns=TRAINING_IMAGES.names)
    write_table(study.images, images, TRAINING_IMAGES, imagenet())
    run = {"task": "segmentation", "network": NETWORK, "size": 32, "batch": 4, "seed": 7, "augmentation": "none"}
    content = {"data": {"images": "images"}, "runs": {"fpn": {"epochs": 10, "rate": 0.3, **run, **keys}}}
    is_tested = images["file"].str.endswith("/0.png")
    data = FoldData(
        inputs=StudyInputs(study, imagenet(), TrainingParams.model_validate(content)),
        run_name="fpn",
        fold="fold_01",
        training=images[~is_tested],
        validation=images[is_tested],
        left_out=images[is_tested],
        class_indices=list(CLASSES),
        device=torch.device("cpu"),
    )
    task = Segmentation(data)
    task.network = SegmentationNetwork(PerPixel(), (0.5, 0.5, 0.5), (0.3, 0.3, 0.3))
    return task


def test_an_image_without_a_mask_is_reported(tmp_path: Path) -> None:
    """As where masks were added to the params after the images were listed."""
    inputs = task_in(tmp_path).data.inputs
    images = read_table(inputs.study.images, TRAINING_IMAGES, imagenet())
    write_table(inputs.study.images, images.assign(mask=None, mask_sha256=None), TRAINING_IMAGES, imagenet())
    with pytest.raises(CleansetError, match=r"n01443537/0\.png: no mask; expected a mask of each image in"):
        segmented_files(inputs, read_table(inputs.study.images, TRAINING_IMAGES, imagenet()))


def test_cross_entropy_is_the_mean_over_pixels_that_are_seen() -> None:
    logits = torch.tensor([[[[2.0, 0.0, 9.0]], [[0.0, 1.0, 0.0]]]])
    labels = torch.tensor([[[0, 1, 255]]])
    expected = -np.log([np.exp(2) / (np.exp(2) + 1), np.e / (1 + np.e)]).mean()
    assert float(cross_entropy(logits, labels)) == pytest.approx(expected)
    assert float(pixel_accuracy(logits, labels)) == 1
    assert float(pixel_accuracy(logits, torch.tensor([[[1, 1, 255]]]))) == 0.5


def test_batches_are_the_same_for_the_same_seed_and_epoch(tmp_path: Path) -> None:
    task = task_in(tmp_path, augmentation="shift_and_mirror")
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
    parts = []
    for rank in (0, 1):
        task = task_in(tmp_path)
        task.data = replace(task.data, share=ProcessShare(rank, 2))
        parts.append(next(iter(task.batches(1))))
    assert torch.equal(whole.images[0::2], parts[0].images)
    assert torch.equal(whole.images[1::2], parts[1].images)


def test_crops_show_objects_with_their_labels(tmp_path: Path) -> None:
    for batch in task_in(tmp_path).batches(1):
        red = batch.images[:, 0] > 0.7
        assert torch.equal(batch.labels == 1, red)


def test_training_learns_what_the_colors_tell(tmp_path: Path) -> None:
    task = task_in(tmp_path / "data")
    before = task.validate(1)
    trained = train(task, task.data.run, StateFolder(tmp_path / "state", {}))
    after = task.validate(1)
    assert set(after) == {"loss", "accuracy", "mean_iou"}
    assert after["loss"] < before["loss"]
    assert after["mean_iou"] > 0.95
    assert trained.history[-1]["validation_mean_iou"] == pytest.approx(after["mean_iou"])


def test_without_images_left_out_nothing_is_tested(tmp_path: Path) -> None:
    task = task_in(tmp_path, test=["original"])
    task.validated = task.left_out = []
    assert task.validate(1) == {}
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
    found = []
    for seed, drawn_before in ((1, 0), (1, 3), (2, 0)):
        torch.rand(drawn_before)
        network = build_network(Network.model_validate(NETWORK), 2, tmp_path, seed)
        found.append(torch.cat([each.detach().flatten() for each in network.parameters()]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def by_color(_: Segmentation, image: Pixels) -> Labels:
    """A network that knows the drawn colours: red squares are label 1, blue discs label 2, black is neither."""
    red, _, blue = image.astype(np.int64).transpose(2, 0, 1)
    return np.select([red > 180, blue > 180], [1, 2], 0).astype(np.uint8)


def test_a_perfect_network_has_equal_counts_and_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segmentation, "predicted", by_color)
    found = task_in(tmp_path, test=SCENARIOS).test_table(tmp_path / "sheets")
    assert tuple(found.columns) == SEGMENTATION_TEST_COLUMNS
    assert found[["scenario", "class_index", "images"]].to_numpy().tolist() == [
        [scenario, index, images]
        for scenario in SCENARIOS
        for index, images in ((-1, 2), (CLASSES[0], 1), (CLASSES[1], 1))
    ]
    assert (found["intersection"] == found["pixels"]).all()
    assert (found["union"] == found["pixels"]).all()
    assert found.groupby("scenario")["pixels"].sum().tolist() == [2 * 48 * 64] * 2
    # a square of 23 x 23 pixels
    assert found["pixels"].tolist()[1] == 23 * 23
    sheets = pd.read_csv(tmp_path / "sheets" / "sheets.csv")
    assert tuple(sheets.columns) == SHEET_COLUMNS
    assert sorted(sheets["tile"]) == sorted(path.name for path in (tmp_path / "sheets").glob("*.jpg"))
    assert sheets[["scenario", "place"]].to_numpy().tolist() == [[s, p] for s in SCENARIOS for p in ("best", "worst")]
    assert (sheets["iou"] == 1).all()


def test_a_network_that_finds_nothing_has_iou_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segmentation, "predicted", lambda _, image: np.zeros(image.shape[:2], np.uint8))
    found = task_in(tmp_path, test=["original"]).test_table(tmp_path / "sheets")
    assert found["intersection"].tolist()[1:] == [0, 0]
    assert found["union"].tolist()[0] == 2 * 48 * 64
    assert pd.read_csv(tmp_path / "sheets" / "sheets.csv")["iou"].tolist() == [0, 0]


def test_files_that_have_changed_are_refused(tmp_path: Path) -> None:
    files = write_examples(tmp_path, 2)
    files[0].mask.write_bytes(files[1].mask.read_bytes() + b"\0")
    with pytest.raises(CleansetError, match=r"masks/n01443537/0.png: changed since stage data; expected SHA-256 "):
        READ(files[0])


def test_a_mask_of_another_size_than_its_image_is_refused(tmp_path: Path) -> None:
    write_examples(tmp_path, 1)
    file = f"{WNIDS[0]}/0.png"
    Image.fromarray(draw("square", 0, 40, 64)[1]).save(tmp_path / "masks" / file)
    with pytest.raises(CleansetError, match=r"0.png: mask of 64 x 40 pixels for an image of 64 x 48; expected"):
        READ(file_of(tmp_path, WNIDS[0], file))


def images(*ious: float) -> pd.DataFrame:
    rows = [("original", f"n01443537/{number}.png", CLASSES[0], iou) for number, iou in enumerate(ious)]
    return pd.DataFrame(rows, columns=["scenario", "file", "class_index", "iou"])


def test_the_best_and_the_worst_are_shown_each_from_its_end() -> None:
    found = shown_images(images(0.5, 0.9, 0.1, 0.9, float("nan"), 0.3, 0.2), 2)
    assert found[["place", "number", "file", "iou"]].to_numpy().tolist() == [
        ["best", 1, "n01443537/1.png", 0.9], ["best", 2, "n01443537/3.png", 0.9],
        ["worst", 1, "n01443537/2.png", 0.1], ["worst", 2, "n01443537/6.png", 0.2],
    ]  # fmt: skip
    assert found["tile"].tolist()[0] == "original_best_1.jpg"
    assert shown_images(images(float("nan"))).empty


def test_sheets_of_scenarios_are_in_the_order_of_their_first_iou() -> None:
    rows = [("a", "1", 3, float("nan")), ("b", "1", 3, 0.5), ("a", "2", 3, 0.5)]
    assert shown_images(pd.DataFrame(rows, columns=["scenario", "file", "class_index", "iou"]))[
        "scenario"
    ].tolist() == ["b", "a"]


def test_of_few_images_none_is_on_both_sides() -> None:
    assert shown_images(images(0.5, 0.9, 0.1), 3)["place"].tolist() == ["best", "best", "worst"]
    assert shown_images(images(0.5), 3)["place"].tolist() == ["best"]


def test_a_tile_shows_own_and_other_class_and_the_outline() -> None:
    grey = np.full((40, 60, 3), 100, np.uint8)
    truth, predicted = np.zeros((40, 60), np.uint8), np.zeros((40, 60), np.uint8)
    truth[10:30, 10:30] = 1
    predicted[10:30, 15:20], predicted[10:30, 50:] = 1, 2
    tile = np.asarray(draw_tile(Example(grey, truth), predicted, 1)).astype(int)
    assert tile[20, 17].tolist() == [round(TINT * each + (1 - TINT) * 100) for each in OWN_CLASS]
    assert tile[20, 55].tolist() == [round(TINT * each + (1 - TINT) * 100) for each in OTHER_CLASS]
    assert tile[20, 25].tolist() == [100] * 3
    assert tile[20, 10].tolist() == [255] * 3
    assert tile[20, 9].tolist() == [0] * 3


def test_a_large_image_is_scaled_down() -> None:
    labels = np.zeros((300, 600), np.uint8)
    assert draw_tile(Example(np.zeros((300, 600, 3), np.uint8), labels), labels, 1).size == (256, 128)
    line = np.zeros((1, 1024), np.uint8)
    assert draw_tile(Example(np.zeros((1, 1024, 3), np.uint8), line), line, 1).size == (256, 1)
