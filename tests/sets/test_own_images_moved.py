"""`rebuild` and `diff` know your own images by their bytes: renamed, moved, in one folder or in a tar."""

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.evaluation.compare import releases
from cleanset.sets import rebuild, verify
from tests.images.test_images import profile_of
from tests.sets.own_set import write_own_set
from tests.sets.test_rebuild import contents
from tests.ten_images import drawn_image

CLASS_OF = {f"{key}/{number}.png": key for key in ("cat", "dog") for number in range(3)}
DOGS = {name: key for name, key in CLASS_OF.items() if key == "dog"}
BOXES = {"dog/1.png": (0, 0, 20, 30)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders `photos` and `set`, in which one image is cropped; `photos` has images that the set has not."""
    folder = tmp_path_factory.mktemp("own")
    for seed, name in enumerate([*CLASS_OF, "dog/7.png", "dog/8.jpg"]):
        (folder / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        drawn_image(50, 40, seed=seed).save(folder / "photos" / name)
    write_own_set(folder / "set", folder / "photos", CLASS_OF, BOXES)
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


def renamed_class(images: Path) -> Path:
    """So that all indices of classes change."""
    (images / "cat").rename(images / "tiger")
    return images


@pytest.mark.parametrize(
    ("change", "class_of", "lines"),
    [
        (
            renamed,
            {"cat/0.png": "cat", "cat/2.png": "cat", "cat/new.png": "cat", **DOGS},
            ["cat/2.png  other name: cat/1.png -> cat/2.png", "cat/new.png  other name: cat/2.png -> cat/new.png"],
        ),
        (flat, {name.replace("/", "-"): key for name, key in CLASS_OF.items()}, 6),
        (
            renamed_class,
            {**{f"tiger/{number}.png": "tiger" for number in range(3)}, **DOGS},
            [
                line
                for number in range(3)
                for line in (
                    f"tiger/{number}.png  other name: cat/{number}.png -> tiger/{number}.png",
                    f"tiger/{number}.png  other class: cat -> tiger",
                )
            ],
        ),
    ],
)
def test_diff_before_and_after(
    change: Callable[[Path], Path], class_of: dict[str, str], lines: list[str] | int, made: Path, tmp_path: Path
) -> None:
    images = shutil.copytree(made / "photos", tmp_path / "mine")
    write_own_set(tmp_path / "before", images, CLASS_OF, BOXES)
    assert releases.diff(made / "set", tmp_path / "before").same
    change(images)
    boxes = {name: BOXES["dog/1.png"] for name in class_of if name in ("dog/1.png", "dog-1.png")}
    write_own_set(tmp_path / "after", images, class_of, boxes)
    found = releases.diff(tmp_path / "before", tmp_path / "after")
    counts = found.content["counts"]
    assert (found.same, counts["in"], counts["out"], counts["other file"], counts["otherwise listed"]) == (
        False, 0, 0, 0, 0,
    )  # fmt: skip
    if isinstance(lines, int):
        assert counts["other name"] == lines
    else:
        assert [line.removeprefix("  ~ ") for line in found.lines if line.startswith("  ~ ")] == lines


def test_diff_of_images_that_are_other_ones(made: Path, tmp_path: Path) -> None:
    """An image drawn again, one that is gone, one that is new under its name, and one of another class."""
    images = shutil.copytree(made / "photos", tmp_path / "mine")
    drawn_image(50, 40, seed=99).save(images / "cat/0.png")
    (images / "cat/1.png").unlink()
    (images / "cat/2.png").rename(images / "cat/1.png")
    (images / "dog/2.png").rename(images / "cat/dog.png")
    class_of = {"cat/0.png": "cat", "cat/1.png": "cat", "cat/dog.png": "cat", "dog/0.png": "dog", "dog/1.png": "dog"}
    write_own_set(tmp_path / "after", images, class_of, BOXES)
    changes = releases.diff(made / "set", tmp_path / "after").content["changes"]
    assert [(each["wnid"], each["image_id"], each["what"]) for each in changes] == [
        ("cat", "cat/0.png", "source"),
        ("cat", "cat/1.png", "name"), ("cat", "cat/1.png", "rank"), ("cat", "cat/1.png", "dropped"),
        ("cat", "cat/dog.png", "name"), ("cat", "cat/dog.png", "class"), ("cat", "cat/dog.png", "labels"),
    ]  # fmt: skip


def test_a_crop_of_an_image_with_a_profile(tmp_path: Path) -> None:
    """A set has the colours of its images, and is rebuilt and verified with them."""
    profile = profile_of(size=4_000)
    for name in ("cat/0.jpg", "dog/0.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        drawn_image(50, 40, seed=len(name)).save(tmp_path / "photos" / name, icc_profile=profile)
    class_of = {"cat/0.jpg": "cat", "dog/0.png": "dog"}
    boxes = dict.fromkeys(class_of, (0, 0, 20, 30))
    made = write_own_set(tmp_path / "set", tmp_path / "photos", class_of, boxes)
    for file in ("cat/0.jpg.crop.png", "dog/0.png.crop.png"):
        assert Image.open(made / file).info == {"icc_profile": profile}
    assert rebuild.run(made, tmp_path / "photos", tmp_path / "again").problems == []
    for folder in (made, tmp_path / "again"):
        assert verify.run(folder, decode=True).problems == []
    assert (tmp_path / "again/cat/0.jpg.crop.png").read_bytes() == (made / "cat/0.jpg.crop.png").read_bytes()
