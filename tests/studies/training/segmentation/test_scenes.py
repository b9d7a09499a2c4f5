"""Examples in every scenario: the label map that goes with the image."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.changes import Placing
from cleanset.studies.robustness.scenarios.params import SCENARIOS
from cleanset.studies.training.params import NAMED_TESTS
from cleanset.studies.training.segmentation.label_maps import Example, Scenes, regions_of_labels
from tests.studies.training.segmentation.drawn import draw

LEVELS = NAMED_TESTS["table_6"]
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


@pytest.mark.parametrize("weight", [1.0, 0.4])
@pytest.mark.parametrize("file", [FILE, "n01443537/1.png", "n01443537/2.png"])
def test_labels_move_with_the_object(file: str, weight: float) -> None:
    scenes = Scenes(seed=3, photographs=[PHOTOGRAPH], placing=Placing(weight=weight))
    found = scenes(example(), file, "random_background")
    # the photograph is of one color, so everything else is the object
    object_pixels = (found.image != PHOTOGRAPH[0, 0]).any(axis=-1)
    assert (found.labels == np.where(object_pixels, 2, 0)).all()
    assert (found.labels != example().labels).any()


def test_labels_stay_where_the_object_is_not_moved() -> None:
    scenes = Scenes(photographs=[PHOTOGRAPH], placing=Placing(moved=False))
    assert (scenes(example(), FILE, "random_background").labels == example().labels).all()


def test_labels_are_stretched_with_an_object_that_is_added_to_a_photograph() -> None:
    found = Scenes(photographs=[PHOTOGRAPH], definition="as_coded")(example(), FILE, "random_background")
    # red is 10 in the photograph, 220 in the object, and about 115 where a pixel is half of each
    red = found.image[..., 0].astype(int)
    assert (found.labels[red > 125] == 2).all()
    assert (found.labels[red < 105] == 0).all()
    assert np.count_nonzero(red > 125) > 500
    assert set(np.unique(found.labels)) == {0, 2}


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
    with pytest.raises(CleansetError, match=r"no folder of generated images; expected one in data\.generated"):
        Scenes()(example(), FILE, "generated_background")
    scenes = generated(tmp_path, (48, 60))
    with pytest.raises(CleansetError, match=r"0.png: 60 x 48 pixels for an image of 64 x 48; expected the image's"):
        scenes(example(), FILE, "generated_background")
    with pytest.raises(CleansetError, match=r"n01443537/9.png: missing; expected an image with a generated background"):
        scenes(example(), "n01443537/9.jpg", "generated_background")
    (tmp_path / FILE).write_bytes(b"no image")
    with pytest.raises(CleansetError, match=r"n01443537/0.png: cannot be read \(not a JPEG or PNG\)"):
        scenes(example(), FILE, "generated_background")
