"""Stage data: what is read of the training images, and what is refused, an image of the edition above all."""

import tarfile
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.images.codec import pixels_sha256
from cleanset.plumbing.files import sha256
from cleanset.sets.folder import read_entries
from cleanset.studies.training import data
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import INDEX, read_table
from tests.checkouts import Checkout
from tests.studies.training.coloured_study import COLOURS, PER_CLASS, coloured_study, save, write_params

pytestmark = pytest.mark.slow


@pytest.fixture
def study(small: Checkout, tmp_path: Path) -> TrainingStudy:
    return coloured_study(small.folder, tmp_path)


def refused(study: TrainingStudy, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        data.run(study)
    assert "\n" not in str(raised.value)
    assert not study.images.exists()


def test_the_tables(study: TrainingStudy) -> None:
    data.run(study)
    images = read_table(study.images, TRAINING_IMAGES, imagenet())
    assert len(images) == len(COLOURS) * PER_CLASS
    row = images.iloc[PER_CLASS + 1]
    path = study.folder / "images" / "n02165456" / "01.jpg"
    assert (row["file"], row["class_index"], row["mask"]) == ("n02165456/01.jpg", 301, "n02165456/01.png")
    assert row["sha256"] == sha256(path.read_bytes())
    assert row["pixels_sha256"] == pixels_sha256(Image.open(path))
    assert images["left_out"].isna().all()
    folds = pd.read_csv(study.folds)
    assert folds.columns.tolist() == ["file", "class_index", "split", "fold"]
    assert folds.groupby(["class_index", "fold"]).size().between(3, 4).all()
    assert folds.groupby("class_index")["split"].value_counts().unstack()["test"].tolist() == [2, 2, 2]
    before = study.images.read_bytes(), study.folds.read_bytes()
    data.run(study)
    assert (study.images.read_bytes(), study.folds.read_bytes()) == before


def edition_image(study: TrainingStudy) -> tuple[str, bytes]:
    """An image of the edition's archive: its id and bytes."""
    index = read_table(study.edition.index, INDEX, imagenet())
    (path,) = (study.edition.folder / "raw").glob("*img_val*")
    with tarfile.open(path) as archive:
        member = next(each for each in archive if each.isfile())
        file = archive.extractfile(member)
        assert file is not None
        content = file.read()
    assert sha256(content) in set(index["sha256"])
    return Path(member.name).stem, content


@pytest.mark.parametrize("what", ["bytes", "pixels"])
def test_an_image_of_the_edition_is_refused(study: TrainingStudy, what: str) -> None:
    image_id, content = edition_image(study)
    path = study.folder / "images" / "n01443537" / "mine.png"
    if what == "bytes":
        path.with_suffix(".jpg").write_bytes(content)
    else:
        # the same pixels in another file
        Image.open(BytesIO(content)).convert("RGB").save(path)
    refused(study, f"n01443537/mine[.](jpg|png): its {what} are those of {image_id} of the edition, which may not be")


def test_a_crop_in_a_set_of_the_edition_is_refused(study: TrainingStudy) -> None:
    entry = next(each for each in read_entries(study.edition.export("standard")) if each.crop is not None)
    path = study.edition.export("standard") / entry.file
    (study.folder / "images" / "n01443537" / "mine.png").write_bytes(path.read_bytes())
    refused(study, f"its bytes are those of {entry.image_id}, in the set of standard")


@pytest.mark.parametrize("wnid", ["n01443537", "n02165456"])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_an_image_that_is_there_twice_is_refused(study: TrainingStudy, wnid: str, suffix: str) -> None:
    """In one class or in two, with the same bytes or as another file of the same pixels."""
    one, other = (study.folder / "images" / each for each in ("n01443537/00.jpg", f"{wnid}/again.{suffix}"))
    if suffix == "jpg":
        other.write_bytes(one.read_bytes())
    else:
        Image.open(one).save(other)
    message = rf"the same image twice: n01443537/00.jpg and {wnid}/again.{suffix}; expected each image once, since trai"
    refused(study, message)


@pytest.mark.long
def test_all_that_are_there_twice_or_of_the_edition_are_named_at_once(study: TrainingStudy) -> None:
    """In a table where they are many, until they are gone."""
    folder, table = study.folder / "images" / "n01443537", study.images.parent / "refused_duplicates.csv"
    for number in range(4):
        (folder / f"again {number}.jpg").write_bytes((folder / f"0{number}.jpg").read_bytes())
    refused(study, rf"the same image twice: 4 pairs: n01443537/00.jpg and n01443537/again 0.jpg, .* all are in {table}")
    assert len(table.read_text().splitlines()) == 5
    image_id, content = edition_image(study)
    for number in range(4):
        (folder / f"again {number}.jpg").write_bytes(content + bytes(number))
    pixels = rf"n01443537/again 1.jpg: its pixels are those of {image_id}"
    message = (
        rf"4 images: n01443537/again 0.jpg: its bytes are those of {image_id}, {pixels}, .* and 1 more of the edition"
    )
    refused(study, rf"{message}, which may not be trained on; expected other images: remove them; all are in {table}")
    assert table.read_text().splitlines()[:2] == [
        "file,why,of", f"n01443537/again 0.jpg,bytes are those,{image_id}"
    ]  # fmt: skip


def test_an_unknown_folder_and_a_damaged_image(study: TrainingStudy) -> None:
    (study.folder / "images" / "goldfish").mkdir()
    refused(study, "goldfish: expected folders named by the wnids of ILSVRC2012")
    (study.folder / "images" / "goldfish").rmdir()
    (study.folder / "images" / "n01443537" / "00.jpg").write_bytes(b"none")
    refused(study, r"00.jpg: cannot be read \(not a JPEG or PNG\); expected a whole JPEG or PNG: remove it")


def test_no_images_at_all(study: TrainingStudy) -> None:
    write_params(study, {"data": {"images": "none"}}, one={})
    refused(study, r"none: missing; expected a folder of training images for each class \(data.images\)")


@pytest.mark.long
def test_masks(study: TrainingStudy) -> None:
    mask = study.folder / "masks" / "n01443537" / "00.png"
    save(Image.open(mask).transpose(Image.Transpose.ROTATE_90), mask)
    refused(study, "00.png: mask of 64 x 80 pixels for an image of 80 x 64")
    mask.unlink()
    data.run(study)
    table = read_table(study.images, TRAINING_IMAGES, imagenet())
    assert table["left_out"].iloc[0] == "no_mask"
    assert table["left_out"].iloc[1:].isna().all()
    study.images.unlink()
    network = {"source": "smp", "name": "fpn", "encoder": "test_efficientnet"}
    write_params(study, three={"task": "segmentation", "network": network})
    refused(study, "00.png: missing; expected a mask of each training image, since run three segments")
