"""RobustBench's selection of validation images, written as a folder for each class."""

from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.files import new_folder
from cleanset.sets import selections
from cleanset.sets.published import source_images
from cleanset.sets.published.lists import ilsvrc_class
from cleanset.sets.published.source_images import SourceImages
from cleanset.sets.selections import parse_list, robustbench_images, run, write_selection
from tests.sets.published.drawn_archive import draw_archive, drawn_jpeg

IDS = [f"ILSVRC2012_val_{number:08}" for number in (293, 2138, 15253)]


def test_the_list_of_the_installed_package() -> None:
    found = robustbench_images()
    assert len(found) == len(set(found)) == 5000
    assert found == sorted(found)
    assert len({ilsvrc_class(image_id) for image_id in found}) == 997
    # the first line of the file
    assert "ILSVRC2012_val_00015253" in found


def test_another_list_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "LIST_SHA256", "0" * 64)
    with pytest.raises(CleansetError, match=r"image_ids.txt: SHA-256 d4121626.*; expected 0000.*pip install --no-deps"):
        robustbench_images()
    monkeypatch.setattr(selections, "LIST", "nothing.txt")
    with pytest.raises(CleansetError, match=r"nothing.txt: missing; expected SHA-256 0000.*: install it"):
        robustbench_images()
    monkeypatch.setattr(selections, "ROBUSTBENCH", "no_such_package")
    with pytest.raises(CleansetError, match="no_such_package: not installed; expected its list of images: install it"):
        robustbench_images()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n09468604/ILSVRC2012_val_00015253.JPEG\nn00000000/ILSVRC2012_val_00000293.JPEG", "line 2: 'n00000000/ILSV"),
        ("ILSVRC2012_val_00015253.JPEG", "line 1: 'ILSVRC2012_val_00015253.JPEG'; expected <wnid>/<image id>.JPEG"),
        ("n09468604/photo.JPEG", "line 1: 'n09468604/photo.JPEG'; expected an image id such as"),
        ("n09468604/ILSVRC2012_val_00015253.JPEG\n" * 2, "ILSVRC2012_val_00015253 a second time"),
    ],
)
def test_what_is_wrong_in_a_list_is_reported(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        parse_list(text, "list.txt")
    assert message in str(error.value)


def test_images_are_written_byte_for_byte(tmp_path: Path) -> None:
    archive = draw_archive(tmp_path / "val.tar", [*IDS, "ILSVRC2012_val_00000001"])
    source_images.run(archive, tmp_path / "digests.csv")
    with new_folder(tmp_path / "out") as folder:
        write_selection(folder, IDS, SourceImages(archive, tmp_path / "digests.csv"))
    found = {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in tmp_path.glob("out/*/*")}
    assert found == {
        f"{imagenet().keys[ilsvrc_class(image_id)]}/{image_id}.JPEG": drawn_jpeg(int(image_id[-8:])) for image_id in IDS
    }


def test_an_archive_without_them_is_refused(tmp_path: Path) -> None:
    archive = draw_archive(tmp_path / "val.tar", IDS)
    source_images.run(archive, tmp_path / "digests.csv")
    with pytest.raises(CleansetError, match=r"missing images: 4,99[0-9] of 5,000: "):
        run("robustbench", archive, tmp_path / "out", tmp_path / "digests.csv")
    assert not (tmp_path / "out").exists()
    with pytest.raises(CleansetError, match=r"unknown selection 'imagenette'; expected .*robustbench"):
        run("imagenette", archive, tmp_path / "out")
