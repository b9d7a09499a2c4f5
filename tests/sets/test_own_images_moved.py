"""`rebuild` knows your own images by their bytes: renamed, moved, in one folder or in a tar, before and after."""

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.sets import rebuild
from tests.sets.own_set import write_own_set
from tests.sets.test_rebuild import contents
from tests.ten_images import drawn_image

CLASS_OF = {f"{key}/{number}.png": key for key in ("cat", "dog") for number in range(3)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders `photos` and `set`, in which one image is cropped; `photos` has images that the set has not."""
    folder = tmp_path_factory.mktemp("own")
    for seed, name in enumerate([*CLASS_OF, "dog/7.png", "dog/8.jpg"]):
        (folder / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        drawn_image(50, 40, seed=seed).save(folder / "photos" / name)
    write_own_set(folder / "set", folder / "photos", CLASS_OF, {"dog/1.png": (0, 0, 20, 30)})
    return folder


def renamed(images: Path) -> Path:
    """One image under the name that another one had, which is gone from there."""
    (images / "cat/2.png").rename(images / "cat/new.png")
    (images / "cat/1.png").rename(images / "cat/2.png")
    return images


def moved(images: Path) -> Path:
    (images / "year/2026").mkdir(parents=True)
    (images / "dog").rename(images / "year/2026/dogs")
    return images


def flat(images: Path) -> Path:
    for path in sorted(images.glob("*/*")):
        path.rename(images / f"{path.parent.name}-{path.name}")
    return images


def tar(images: Path) -> Path:
    with tarfile.open(images.with_suffix(".tar"), "w") as archive:
        archive.add(images, "photos")
    shutil.rmtree(images)
    return images.with_suffix(".tar")


def with_a_copy(images: Path) -> Path:
    (images / "dog/0.png").rename(images / "dog/a.png")
    shutil.copy(images / "dog/a.png", images / "dog/b.png")
    return images


@pytest.mark.parametrize("change", [renamed, moved, flat, tar, with_a_copy])
def test_the_same_set_before_and_after(change: Callable[[Path], Path], made: Path, tmp_path: Path) -> None:
    images = shutil.copytree(made / "photos", tmp_path / "mine")
    before = rebuild.run(made / "set", images, tmp_path / "before")
    after = rebuild.run(made / "set", change(images), tmp_path / "after")
    assert (before.problems, after.problems) == ([], [])
    assert contents(tmp_path / "after") == contents(tmp_path / "before")
    assert (tmp_path / "after/dog/1.png.crop.png").is_file()


def test_images_that_are_gone_and_changed(made: Path, tmp_path: Path) -> None:
    images = renamed(shutil.copytree(made / "photos", tmp_path / "mine"))
    (images / "cat/new.png").unlink()
    drawn_image(50, 40, seed=99).save(images / "dog/0.png")
    problems = rebuild.run(made / "set", images, tmp_path / "out").problems
    # the file of that name is the image that was cat/1.png
    assert [(each.what, each.file) for each in problems] == [("source", "cat/2.png"), ("source", "dog/0.png")]
    (images / "dog/0.png").unlink()
    problems = rebuild.run(made / "set", images, tmp_path / "out").problems
    assert [(each.what, each.file) for each in problems] == [("source", "cat/2.png"), ("missing", "dog/0.png")]


def test_what_is_no_folder_and_no_tar(made: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"gone: missing; expected the images of the set, a folder or a tar$"):
        rebuild.run(made / "set", tmp_path / "gone", tmp_path / "out")
    (tmp_path / "x.zip").write_bytes(b"PK" * 600)
    with pytest.raises(CleansetError, match=r"x.zip: not an uncompressed tar .*; expected a tar of the images of the"):
        rebuild.run(made / "set", tmp_path / "x.zip", tmp_path / "out")
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        link = tarfile.TarInfo("cat/0.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(CleansetError, match=r"links.tar, member 'cat/0.png': a link .*: pack the images themselves$"):
        rebuild.run(made / "set", tmp_path / "links.tar", tmp_path / "out")
