"""Duplicates among your own images: by bytes, by pixels and nearly, all in one table, before and after a change."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from cleanset.dataset import duplicate_search
from cleanset.dataset.duplicate_search import find_duplicates, search
from cleanset.dataset.duplicates import DuplicatePair, equal_pairs, refuse_pairs
from cleanset.dataset.folder import LabelledImages, read_images
from cleanset.dataset.near_duplicates import Groups
from cleanset.dataset.pinned import digests_of
from cleanset.errors import CleansetError
from cleanset.images.codec import ImageFacts, inspect
from cleanset.plumbing.files import sha256


def detailed(seed: int) -> Image.Image:
    """A drawn image with enough to see for PDQ."""
    coarse = np.random.default_rng(seed).integers(0, 256, (12, 14, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((240, 200), Image.Resampling.BICUBIC)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Four cats and four dogs, all different."""
    for seed, name in enumerate(f"{key}/{number}.png" for key in ("cat", "dog") for number in range(4)):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        detailed(seed).save(path)
    return tmp_path / "images"


def read(images: Path) -> tuple[LabelledImages, dict[str, str]]:
    found = read_images(images, None, None)
    return found, digests_of(found.locations)


def rows(table: Path) -> list[list[str]]:
    return list(csv.reader(table.read_text().splitlines()))


def test_every_kind_in_one_table(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies of bytes and of pixels; a crop of 5 % and a mirrored image of another class are nearly the same."""
    table = tmp_path / "duplicates.csv"
    before = search(*read(images), f"{tmp_path}/")
    before.write(table)
    assert (before.pairs, before.notice, table.exists(), capsys.readouterr().err) == ((), "", False, "")
    shutil.copy(images / "cat/0.png", images / "cat/again.png")
    detailed(1).save(images / "cat/other bytes.png", compress_level=1)
    detailed(5).crop((12, 10, 240, 200)).save(images / "dog/cropped.jpg", quality=90)
    ImageOps.mirror(detailed(2)).save(images / "dog/mirrored.png")
    search(*read(images), f"{tmp_path}/").write(table)
    assert rows(table) == [
        ["image_id", "duplicate_of", "same"],
        ["cat/again.png", "cat/0.png", "bytes"],
        ["cat/other bytes.png", "cat/1.png", "pixels"],
        ["dog/mirrored.png", "cat/2.png", "nearly"],
        ["dog/cropped.jpg", "dog/1.png", "nearly"],
    ]
    assert capsys.readouterr().err == (
        "the same image twice, or nearly: 4 pairs: cat/0.png and cat/again.png, cat/1.png and cat/other bytes.png, "
        f"cat/2.png and dog/mirrored.png and 1 more; all are in {table}\n"
    )
    for name in ("cat/again.png", "cat/other bytes.png", "dog/cropped.jpg", "dog/mirrored.png"):
        (images / name).unlink()
    search(*read(images), f"{tmp_path}/").write(table)
    assert not table.exists()


def test_the_same_images_in_two_classes_are_refused_at_once(images: Path, tmp_path: Path) -> None:
    """All of them, by bytes and by pixels; those that are nearly the same may be."""
    table = tmp_path / "refused_duplicates.csv"
    ImageOps.mirror(detailed(4)).save(images / "cat/mirrored.png")
    for number in range(3):
        shutil.copy(images / f"cat/{number}.png", images / f"dog/copy {number}.png")
    with pytest.raises(CleansetError) as raised:
        search(*read(images), f"{tmp_path}/")
    pairs = [f"cat/{number}.png and dog/copy {number}.png" for number in range(3)]
    expected = "expected each image in one: remove one of the two"
    assert str(raised.value) == f"the same bytes in two classes: 3 pairs: {', '.join(pairs)}; {expected}"
    assert not table.exists()
    detailed(3).save(images / "dog/pixels.png", compress_level=1)
    with pytest.raises(CleansetError) as raised:
        search(*read(images), f"{tmp_path}/")
    assert str(raised.value) == (
        f"the same pixels in two classes: 4 pairs: {', '.join(pairs)} and 1 more; {expected}; all are in {table}"
    )
    assert rows(table)[1:] == [
        *([f"dog/copy {number}.png", f"cat/{number}.png", "bytes"] for number in range(3)),
        ["dog/pixels.png", "cat/3.png", "pixels"],
    ]
    for path in images.glob("dog/[cp]*"):
        path.unlink()
    search(*read(images), f"{tmp_path}/")
    assert not table.exists()


def test_of_many_images_only_the_bytes(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(images / "cat/0.png", images / "cat/again.png")
    detailed(1).save(images / "cat/other bytes.png", compress_level=1)
    monkeypatch.setattr(duplicate_search, "MAX_DECODED", 9)
    found = find_duplicates(*read(images))
    assert found.pairs == (DuplicatePair("cat/again.png", "cat/0.png", "bytes"),)
    assert found.notice == "more than 9 images: only bytes are compared now, pixels by dvc repro"


def test_without_pdq(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate_search, "can_fingerprint", lambda: False)
    ImageOps.mirror(detailed(4)).save(images / "cat/mirrored.png")
    detailed(1).save(images / "cat/other bytes.png", compress_level=1)
    found = find_duplicates(*read(images))
    assert found.pairs == (DuplicatePair("cat/other bytes.png", "cat/1.png", "pixels"),)
    assert found.notice.startswith("near-duplicates are not looked for: pip install ")


@pytest.mark.long
def test_in_processes_as_without(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ImageOps.mirror(detailed(4)).save(images / "cat/mirrored.png")
    alone = find_duplicates(*read(images))
    monkeypatch.setattr(duplicate_search, "_MIN_OF_PROCESSES", 1)
    assert find_duplicates(*read(images)) == alone
    assert len(alone.pairs) == 1


def test_an_image_is_decoded_once(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After images came, went and moved to another class, the same pairs as of a search from nothing."""
    decoded = []

    def inspected(data: bytes, formats: tuple[str, ...]) -> ImageFacts:
        decoded.append(sha256(data))
        return inspect(data, formats)

    monkeypatch.setattr(duplicate_search, "inspect", inspected)
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    ImageOps.mirror(detailed(4)).save(images / "cat/mirrored.png")
    detailed(5).crop((12, 10, 240, 200)).save(images / "dog/cropped.png")
    Image.new("L", (30, 30)).save(images / "dog/plain.png")
    Image.new("1", (30, 30)).save(images / "dog/refused.png")
    found = [find_duplicates(*read(images))]
    assert len(decoded) == 12
    (images / "dog/3.png").unlink()
    detailed(1).save(images / "cat/other bytes.png", compress_level=1)
    (images / "dog/1.png").rename(images / "cat/moved.png")
    found.append(find_duplicates(*read(images)))
    # what is refused is not kept
    assert decoded[12:] == [sha256((images / name).read_bytes()) for name in ("cat/other bytes.png", "dog/refused.png")]
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "another"))
    assert find_duplicates(*read(images)) == found[1]
    assert [[(pair.image_id, pair.same) for pair in each.pairs] for each in found] == [
        [("dog/0.png", "nearly"), ("dog/cropped.png", "nearly")],
        [("cat/other bytes.png", "pixels"), ("dog/0.png", "nearly")],
    ]


def test_what_preprocess_refuses_is_refused_at_once(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By kinds, and all in a table; by the headers with many images; once more without them."""
    table = tmp_path / "unreadable_images.csv"
    for number in range(2):
        Image.new("RGBA", (30, 30), (0, 0, 0, 9 + number)).save(images / f"cat/see-through {number}.png")
    Image.new("1", (30, 30)).save(images / "dog/black.png")
    (images / "dog/damaged.png").write_bytes((images / "dog/0.png").read_bytes()[:200])
    assert find_duplicates(*read(images)).pairs == ()
    expected = f"expected whole JPEGs or PNGs of 8 bits, RGB or grey: convert or remove them; all are in {table}"
    kinds = "cat/see-through 0.png, cat/see-through 1.png (transparency), dog/black.png (black and white)"
    with pytest.raises(CleansetError) as raised:
        search(*read(images), f"{tmp_path}/")
    cut = "dog/damaged.png (image file is truncated)"
    assert str(raised.value) == f"images: 4 cannot be read: {kinds}, {cut}; {expected}"
    assert [name for name, _ in rows(table)[1:]] == [
        "cat/see-through 0.png", "cat/see-through 1.png", "dog/black.png", "dog/damaged.png"
    ]  # fmt: skip
    monkeypatch.setattr(duplicate_search, "MAX_DECODED", 9)
    with pytest.raises(CleansetError, match="images: 3 cannot be read"):
        search(*read(images), f"{tmp_path}/")
    for path in [*images.glob("cat/see*"), *images.glob("dog/[bd]*.png")]:
        path.unlink()
    assert search(*read(images), f"{tmp_path}/").unreadable == {}
    assert not table.exists()


@pytest.mark.parametrize(
    ("digests", "pairs"),
    [
        ([("a", "1", "x"), ("b", "2", "y")], []),
        # by bytes where they are the same, and each image once
        ([("a", "1", "x"), ("b", "1", "x"), ("c", "2", "x"), ("d", "2", "x")], [("b", "a", "bytes"),
            ("c", "a", "pixels"), ("d", "c", "bytes")]),
    ],
)  # fmt: skip
def test_equal_pairs(digests: list[tuple[str, str, str]], pairs: list[tuple[str, str, str]]) -> None:
    assert [(each.image_id, each.duplicate_of, each.same) for each in equal_pairs(digests)] == pairs


def test_groups() -> None:
    groups = Groups(5)
    assert [groups.join(0, 1), groups.join(2, 3), groups.join(3, 1), groups.join(0, 2)] == [True, True, True, False]
    assert len({groups.head(place) for place in range(4)}) == 1
    assert groups.head(4) == 4


def test_a_table_of_before_is_removed(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    pairs = [DuplicatePair(str(number), "x", "bytes") for number in range(4)]
    with pytest.raises(
        CleansetError, match=r"^twice: 4 pairs: x and 0, x and 1, x and 2 and 1 more; expected one; all"
    ):
        refuse_pairs(pairs, "twice", "one", table)
    assert len(rows(table)) == 5
    with pytest.raises(CleansetError, match=r"^twice: x and 0; expected one$"):
        refuse_pairs(pairs[:1], "twice", "one", table)
    assert not table.exists()
    refuse_pairs([], "twice", "one", table)
