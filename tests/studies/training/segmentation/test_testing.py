"""The test of a network on drawn images: its counts, and the sheets of the best and worst images."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.training.segmentation.examples import SegmentedFile
from cleanset.studies.training.segmentation.label_maps import Example, Labels, Pixels, Scenes
from cleanset.studies.training.segmentation.testing import (
    OTHER_CLASS,
    OWN_CLASS,
    SHEET_COLUMNS,
    TEST_COLUMNS,
    TINT,
    draw_tile,
    run_test,
    shown_images,
    write_sheets,
)
from tests.studies.training.segmentation.drawn import CLASSES, READ, WNIDS, draw, file_of, write_examples

SCENARIOS = ("original", "segmented_image")


def by_color(image: Pixels) -> Labels:
    """A network that knows the drawn colours: red squares are label 1, blue discs label 2, black is neither."""
    red, _, blue = image.astype(np.int64).transpose(2, 0, 1)
    return np.select([red > 180, blue > 180], [1, 2], 0).astype(np.uint8)


def background_only(image: Pixels) -> Labels:
    return np.zeros(image.shape[:2], np.uint8)


@pytest.fixture
def files(tmp_path: Path) -> list[SegmentedFile]:
    return write_examples(tmp_path, 2)


def test_a_perfect_network_has_equal_counts(files: list[SegmentedFile]) -> None:
    found = run_test(by_color, files, READ, SCENARIOS, Scenes())
    assert tuple(found.counts.columns) == TEST_COLUMNS
    assert found.counts[["scenario", "class_index", "images"]].to_numpy().tolist() == [
        [scenario, index, images]
        for scenario in SCENARIOS
        for index, images in ((-1, 4), (CLASSES[0], 2), (CLASSES[1], 2))
    ]
    assert (found.counts["intersection"] == found.counts["pixels"]).all()
    assert (found.counts["union"] == found.counts["pixels"]).all()
    assert found.counts.groupby("scenario")["pixels"].sum().tolist() == [4 * 48 * 64] * 2
    # squares of 23 x 23 pixels
    assert found.counts["pixels"].tolist()[1] == 2 * 23 * 23
    assert (found.images["iou"] == 1).all()


def test_a_network_that_finds_nothing_has_iou_0(files: list[SegmentedFile]) -> None:
    found = run_test(background_only, files, READ, ["original"], Scenes())
    assert found.counts["intersection"].tolist()[1:] == [0, 0]
    assert found.counts["union"].tolist()[0] == 4 * 48 * 64
    assert found.images["iou"].tolist() == [0] * 4


def test_progress_is_reported_by_image(files: list[SegmentedFile]) -> None:
    reports: list[int] = []
    run_test(by_color, files, READ, SCENARIOS, Scenes(), reports.append)
    assert reports == [1] * 4


def test_files_that_have_changed_are_refused(files: list[SegmentedFile]) -> None:
    files[0].mask.write_bytes(files[1].mask.read_bytes() + b"\0")
    with pytest.raises(CleansetError, match=r"masks/n01443537/0.png: changed since stage data; expected SHA-256 "):
        READ(files[0])


def test_a_mask_of_another_size_than_its_image_is_refused(tmp_path: Path) -> None:
    write_examples(tmp_path, 1)
    file = f"{WNIDS[0]}/0.png"
    Image.fromarray(draw("square", 0, 40, 64)[1]).save(tmp_path / "masks" / file)
    with pytest.raises(CleansetError, match=r"0.png: mask of 64 x 40 pixels for an image of 64 x 48; expected"):
        READ(file_of(tmp_path, WNIDS[0], file))


# sheets


def images(*ious: float) -> pd.DataFrame:
    rows = [("original", f"n01443537/{number}.png", CLASSES[0], iou) for number, iou in enumerate(ious)]
    return pd.DataFrame(rows, columns=["scenario", "file", "class_index", "iou"])


def test_the_best_and_the_worst_are_shown_each_from_its_end() -> None:
    found = shown_images(images(0.5, 0.9, 0.1, 0.9, float("nan"), 0.3, 0.2), 2)
    assert [(each.place, each.number, each.file[-5], each.iou) for each in found] == [
        ("best", 1, "1", 0.9),
        ("best", 2, "3", 0.9),
        ("worst", 1, "2", 0.1),
        ("worst", 2, "6", 0.2),
    ]
    assert found[0].tile == "original_best_1.jpg"


def test_of_few_images_none_is_on_both_sides() -> None:
    assert [each.place for each in shown_images(images(0.5, 0.9, 0.1), 3)] == ["best", "best", "worst"]
    assert [each.place for each in shown_images(images(0.5), 3)] == ["best"]


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


def test_sheets_name_their_tiles(files: list[SegmentedFile], tmp_path: Path) -> None:
    tested = run_test(by_color, files, READ, SCENARIOS, Scenes())
    write_sheets(tmp_path / "sheets", tested.images, by_color, files, READ, Scenes())
    table = pd.read_csv(tmp_path / "sheets" / "sheets.csv")
    assert tuple(table.columns) == SHEET_COLUMNS
    assert sorted(table["tile"]) == sorted(path.name for path in (tmp_path / "sheets").glob("*.jpg"))
    assert table["scenario"].unique().tolist() == list(SCENARIOS)
    assert table.groupby("scenario").size().tolist() == [4, 4]
