"""Label maps from masks of every format, and in the scenarios, on small arrays."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.params import SCENARIOS
from cleanset.studies.training.run_params import TABLES
from cleanset.studies.training.segmentation.examples import (
    Example,
    Labels,
    Scenes,
    label_of,
    random_crop,
    read_class_ids,
    read_label_map,
    regions_of_labels,
    with_classes,
)
from tests.studies.training.segmentation.drawn import draw


def png(values: list[list[int]] | Labels) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.array(values, np.uint8)).save(out, "PNG")
    return out.getvalue()


def test_an_object_has_the_label_of_its_images_class() -> None:
    labels = read_label_map(png([[0, 9, 255], [0, 0, 1]]), "png", 3, class_key="n01443537", where="mask")
    assert labels.tolist() == [[0, 3, 3], [0, 0, 3]]


def test_pixels_that_imagenet_s_ignores_are_ignored() -> None:
    numbers = np.zeros((2, 3, 3), np.uint8)
    numbers[0, 1, 0] = 2  # the second class of ImageNet-S, n01443537
    numbers[0, 2] = (1000 % 256, 1000 // 256, 0)
    labels = read_label_map(png(numbers), "imagenet_s", 1, class_key="n01443537", where="mask")
    assert labels.tolist() == [[0, 1, 255], [0, 0, 0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, 0]], "mask: empty mask; expected an object"),
        ([[5, 5]], "mask: full mask, without a background"),
    ],
)
def test_masks_without_object_or_background_are_refused(values: list[list[int]], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        read_label_map(png(values), "png", 1, class_key="n01443537", where="mask")


def test_class_ids_are_labels() -> None:
    assert read_class_ids(png([[0, 1, 12], [255, 0, 0]]), 12, "mask").tolist() == [[0, 1, 12], [255, 0, 0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, 13]], "mask: class id 13; expected 0 for background, 1 to 12 for the classes in order, or 255"),
        ([[254, 1]], "mask: class id 254; expected"),
        ([[0, 255]], "mask: empty mask; expected an object"),
    ],
)
def test_class_ids_out_of_range_are_refused(values: list[list[int]], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        read_class_ids(png(values), 12, "mask")


def test_a_color_png_has_no_class_ids() -> None:
    with pytest.raises(CleansetError, match="mask: PNG of mode RGB; expected one byte a pixel"):
        read_class_ids(png(np.zeros((2, 2, 3), np.uint8)), 12, "mask")


def test_labels_follow_class_indices() -> None:
    assert [label_of(each, [7, 1, 30]) for each in (1, 7, 30)] == [1, 2, 3]
    with pytest.raises(CleansetError, match="class 8: not one of the run's classes; expected one of 1, 7, 30"):
        label_of(8, [7, 1, 30])


def test_classes_that_a_run_leaves_out_become_background() -> None:
    labels = np.array([[0, 1, 2, 3, 255]], np.uint8)
    assert with_classes(labels, [10, 20, 30], [30, 10]).tolist() == [[0, 1, 0, 2, 255]]


def test_ignored_pixels_are_in_neither_region() -> None:
    regions = regions_of_labels(np.array([[0, 4, 255]], np.uint8))
    assert regions.object.tolist() == [[False, True, False]]
    assert regions.background.tolist() == [[True, False, False]]


def test_a_crop_takes_the_same_part_of_image_and_labels() -> None:
    image = np.arange(5 * 7, dtype=np.uint8).reshape(5, 7)
    for seed in range(20):
        crop = random_crop(Example(np.dstack([image] * 3), image), 4, np.random.RandomState(seed))
        assert crop.image.shape == (4, 4, 3)
        assert (crop.image[..., 0] == crop.labels).all()
        top, left = divmod(int(crop.labels[0, 0]), 7)
        assert (crop.labels == image[top : top + 4, left : left + 4]).all()


def test_beyond_a_small_image_all_is_black_and_ignored() -> None:
    crop = random_crop(Example(np.full((2, 3, 3), 9, np.uint8), np.ones((2, 3), np.uint8)), 4, np.random.RandomState(0))
    assert crop.labels.tolist() == [[1, 1, 1, 255]] * 2 + [[255] * 4] * 2
    assert crop.image[..., 0].tolist() == [[9, 9, 9, 0]] * 2 + [[0] * 4] * 2


LEVELS = TABLES.tests["table_6"]
FILE = "n01443537/0.png"
PHOTOGRAPH = np.full((60, 80, 3), (10, 20, 250), np.uint8)


def example(label: int = 2) -> Example:
    image, mask = draw("square", 1)
    return Example(image, np.where(mask > 0, label, 0).astype(np.uint8))


def test_the_nine_levels_are_those_of_table_6() -> None:
    assert len(LEVELS) == 9
    assert LEVELS[0] == "original"
    assert set(LEVELS[1:]) < set(SCENARIOS)
    assert "random_background" not in LEVELS


@pytest.mark.parametrize("name", [each for each in LEVELS if each != "generated_background"])
def test_where_the_object_stays_so_do_its_labels(name: str) -> None:
    found = Scenes(seed=3)(example(), FILE, name)
    assert (found.labels == example().labels).all()
    changed = (found.image != example().image).any(axis=-1)
    object_only, background_only = name == "blur_object", name not in ("original", "blur_object")
    assert bool(changed[found.labels == 2].any()) == object_only
    assert bool(changed[found.labels == 0].any()) == background_only


@pytest.mark.parametrize("file", [FILE, "n01443537/1.png", "n01443537/2.png"])
def test_labels_move_with_the_object(file: str) -> None:
    found = Scenes(seed=3, photographs=[PHOTOGRAPH])(example(), file, "random_background")
    # the photograph is of one color, so everything else is the object
    object_pixels = (found.image != PHOTOGRAPH[0, 0]).any(axis=-1)
    assert (found.labels == np.where(object_pixels, 2, 0)).all()
    assert (found.labels != example().labels).any()


def test_ignored_pixels_move_with_the_object() -> None:
    original = example()
    labels = original.labels.copy()
    labels[:, 26:28][labels[:, 26:28] == 2] = 255
    found = Scenes(photographs=[PHOTOGRAPH])(Example(original.image, labels), FILE, "random_background")
    assert set(np.unique(found.labels)) == {0, 2, 255}
    whole = Scenes(photographs=[PHOTOGRAPH])(original, FILE, "random_background")
    assert ((found.labels != 0) == (whole.labels != 0)).all()


def generated(folder: Path, shape: tuple[int, int]) -> Scenes:
    (folder / "n01443537").mkdir()
    Image.fromarray(np.full((*shape, 3), 77, np.uint8)).save(folder / FILE)
    return Scenes(generated=folder)


def test_the_object_is_put_back_on_a_generated_image(tmp_path: Path) -> None:
    found = generated(tmp_path, (48, 64))(example(), FILE, "generated_background")
    regions = regions_of_labels(found.labels)
    assert (found.image[regions.background] == 77).all()
    assert (found.image[regions.object] == example().image[regions.object]).all()


def test_generated_images_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    scenes = generated(tmp_path, (48, 60))
    with pytest.raises(CleansetError, match=r"0.png: 60 x 48 pixels for an image of 64 x 48; expected the image's"):
        scenes(example(), FILE, "generated_background")
    with pytest.raises(CleansetError, match=r"n01443537/9.png: missing; expected an image with a generated background"):
        scenes(example(), "n01443537/9.jpg", "generated_background")
    (tmp_path / FILE).write_bytes(b"no image")
    with pytest.raises(CleansetError, match=r"n01443537/0.png: cannot be read \(not a JPEG or PNG\)"):
        scenes(example(), FILE, "generated_background")
