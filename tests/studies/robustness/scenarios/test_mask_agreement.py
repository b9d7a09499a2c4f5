"""Two folders of masks for the same images, compared by intersection over union."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.studies.robustness.commands import app
from cleanset.studies.robustness.images import STUDY_IMAGES
from cleanset.studies.robustness.scenarios.imagenet_s import imagenet_s_wnids
from cleanset.studies.robustness.scenarios.mask_files import MaskSource, agreement
from cleanset.tables import write_table
from tests.studies.robustness.sources import sources_of

IDS = [f"ILSVRC2012_val_{number:08d}" for number in range(1, 4)]


def rectangle(left: int, right: int) -> np.ndarray:
    """A mask of 20 x 10 pixels, true from one column to another."""
    mask = np.zeros((10, 20), np.uint8)
    mask[:, left:right] = 255
    return mask


def png(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[MaskSource, MaskSource]:
    """PNG and LabelMe; the first image has a mask in the first folder only."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    for image_id in IDS:
        (one / f"{image_id}.png").write_bytes(png(rectangle(0, 10)))
    for image_id, (left, right) in zip(IDS[1:], [(0, 10), (5, 15)], strict=True):
        corners = [[left, 0], [right, 0], [right, 10], [left, 10]]
        shapes = [{"shape_type": "polygon", "points": corners}]
        text = json.dumps({"imageHeight": 10, "imageWidth": 20, "shapes": shapes})
        (other / f"{image_id}.json").write_text(text)
    return MaskSource(one, "png"), MaskSource(other, "labelme")


def test_images_in_both(folders: tuple[MaskSource, MaskSource]) -> None:
    """The same columns, and 5 of 15 columns."""
    found = agreement(*folders, {}, imagenet()).table
    assert found["image_id"].tolist() == IDS[1:]
    assert found["iou"].tolist() == pytest.approx([1, 5 / 15])
    assert agreement(folders[1], folders[0], {}, imagenet()).table["iou"].tolist() == found["iou"].tolist()


def test_imagenet_s_needs_the_class(folders: tuple[MaskSource, MaskSource], tmp_path: Path) -> None:
    wnid = imagenet_s_wnids()[6]
    numbers = np.zeros((10, 20, 3), np.uint8)
    numbers[:, :5, 0] = 7
    (tmp_path / "people").mkdir()
    for image_id in IDS:
        (tmp_path / "people" / f"{image_id}.png").write_bytes(png(numbers))
    people = MaskSource(tmp_path / "people", "imagenet_s")
    found = agreement(people, folders[0], {IDS[0]: wnid}, imagenet())
    assert found.table.to_numpy().tolist() == [[IDS[0], 0.5]]
    assert (found.other_class, found.unlisted) == (0, 2)
    other = imagenet_s_wnids()[7]
    found = agreement(people, folders[0], {IDS[0]: wnid, IDS[1]: other, IDS[2]: other}, imagenet())
    assert found.table.to_numpy().tolist() == [[IDS[0], 0.5]]
    assert (found.other_class, found.unlisted) == (2, 0)
    with pytest.raises(CleansetError, match=r"people and .*one: no image has a mask of its set's class"):
        agreement(people, folders[0], {IDS[0]: other}, imagenet())
    message = (
        r"people and .*one: the study has listed no image with a mask in both; .*: run cleanset robustness stage im"
    )
    with pytest.raises(CleansetError, match=message):
        agreement(people, folders[0], {}, imagenet())


def test_no_image_in_both(folders: tuple[MaskSource, MaskSource]) -> None:
    for image_id in IDS[1:]:
        (folders[0].folder / f"{image_id}.png").unlink()
    with pytest.raises(CleansetError, match=r"one and .*other: no image has a mask in both folders"):
        agreement(*folders, {}, imagenet())


def test_a_folder_that_is_not_there(folders: tuple[MaskSource, MaskSource]) -> None:
    one, _ = folders
    with pytest.raises(CleansetError, match=r"two: no such folder; expected one with masks: correct its name$"):
        agreement(one, one._replace(folder=one.folder.with_name("two")), {}, imagenet())


def test_other_sizes(folders: tuple[MaskSource, MaskSource]) -> None:
    (folders[0].folder / f"{IDS[1]}.png").write_bytes(png(rectangle(0, 10)[:5]))
    with pytest.raises(CleansetError, match=f"{IDS[1]}: masks of 20 x 5 and 20 x 10 pixels"):
        agreement(*folders, {}, imagenet())


def test_the_command(folders: tuple[MaskSource, MaskSource], tmp_path: Path) -> None:
    one, other = (str(each.folder) for each in folders)
    out = tmp_path / "iou.csv"
    arguments = ["masks", one, f"labelme:{other}", "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.output == "2 images: mean IoU 0.667, smallest 0.333 (ILSVRC2012_val_00000003)\n"
    assert out.read_text() == "image_id,iou\nILSVRC2012_val_00000002,1.0\nILSVRC2012_val_00000003,0.3333333333333333\n"


@pytest.mark.parametrize(
    ("places", "left_out"),
    [
        ((6, 7, 7), "left out: 2, whose mask of ImageNet-S is of other classes than their set's\n"),
        (
            (6, 7),
            "left out: 1, whose mask of ImageNet-S is of other classes than their set's\n"
            "left out: 1, whose class is not known, as the study has not listed them\n",
        ),
    ],
)
def test_the_command_says_which_images_are_left_out(
    folders: tuple[MaskSource, MaskSource], tmp_path: Path, places: tuple[int, ...], left_out: str
) -> None:
    numbers = np.zeros((10, 20, 3), np.uint8)
    numbers[:, :5, 0] = 7
    (tmp_path / "people").mkdir()
    for image_id in IDS:
        (tmp_path / "people" / f"{image_id}.png").write_bytes(png(numbers))
    classes = [imagenet().indices[imagenet_s_wnids()[place]] for place in places]
    folder = tmp_path / "studies" / "robustness"
    folder.mkdir(parents=True)
    sources = sources_of(folder, classes)
    write_table(sources.study.images, sources.images, STUDY_IMAGES, imagenet())
    arguments = ["masks", f"imagenet_s:{tmp_path / 'people'}", str(folders[0].folder)]
    done = CliRunner().invoke(app, [*arguments, "--study", str(folder)])
    assert done.output == f"1 image: mean IoU 0.500, smallest 0.500 (ILSVRC2012_val_00000001)\n{left_out}"


@pytest.mark.parametrize("place", [0, 1])
def test_an_unknown_format(folders: tuple[MaskSource, MaskSource], place: int) -> None:
    given = [each._replace(format="gif") if number == place else each for number, each in enumerate(folders)]
    with pytest.raises(
        CleansetError, match="unknown mask format 'gif'; expected one of png, coco, labelme, imagenet_s"
    ):
        agreement(given[0], given[1], {}, imagenet())
