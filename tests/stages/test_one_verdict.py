"""After one verdict a stage writes the files that show its image, and the result is the same as from nothing."""

import shutil
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.stages import count, report, review_apply
from cleanset.tables import INDEX, read_table
from tests.report import editions
from tests.stages.inputs import EXPORT, NETWORK, select, with_model
from tests.ten_images import Made, id_of

REJECTED = """n01440764:
  ILSVRC2012_val_00000001:
    verdict: reject
    reason: blur
    sha256: {}
"""


def inodes(folder: Path) -> dict[str, int]:
    """The inode of each file below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_ino for path in sorted(folder.rglob("*")) if path.is_file()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in inodes(folder)}


def rewritten(before: dict[str, int], folder: Path) -> list[str]:
    """The files that are new or another one."""
    return [name for name, inode in inodes(folder).items() if before.get(name) != inode]


def from_nothing(edition: Edition) -> dict[str, bytes]:
    """The report that an edition without one gets, with an empty cache."""
    shutil.rmtree(edition.report)
    report.run(edition)
    return contents(edition.report)


@pytest.fixture
def made_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edition:
    """An edition of six images in two classes, with its report."""
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    editions.made(tmp_path, ["a"], "clean")
    return Edition(tmp_path)


def reject_first(edition: Edition) -> None:
    """Enter a verdict on the first image, and run the stages before the report."""
    digest = read_table(edition.index, INDEX, imagenet())["sha256"][0]
    (edition.reviews / "ann").mkdir()
    (edition.reviews / "ann" / "n01440764.yaml").write_text(REJECTED.format(digest))
    review_apply.run(edition, "a")
    count.run(edition)


def test_report_again(made_edition: Edition) -> None:
    before = inodes(made_edition.report)
    report.run(made_edition)
    assert rewritten(before, made_edition.report) == []


@pytest.mark.long
def test_report_after_a_verdict(made_edition: Edition) -> None:
    """The page of the other class and the thumbnails stay; the next image of the class is shown for the first time."""
    before = inodes(made_edition.report)
    reject_first(made_edition)
    report.run(made_edition)
    assert rewritten(before, made_edition.report) == [
        "classes/n01440764.html",
        "classes.html",
        "images/ILSVRC2012_val_00000003.jpg",
        "index.html",
        "plots/confidence/a_top5.json",
        "plots/funnel/a.json",
        "rejected.html",
        "sheet-1.html",
    ]
    found = contents(made_edition.report)
    shutil.rmtree(made_edition.folder / "cache")
    assert from_nothing(made_edition) == found


@pytest.mark.long
def test_report_after_a_hand(made_edition: Edition) -> None:
    """Changed, removed and added files, a damaged cache, and another number in params."""
    folder = made_edition.report
    written = contents(folder)
    for name in ("classes/n01443537.html", "images/ILSVRC2012_val_00000001.jpg"):
        (folder / name).write_bytes(b"by hand")
    (folder / "sheet-1.html").unlink()
    (folder / "images" / "mine.jpg").write_bytes(b"by hand")
    report.run(made_edition)
    assert contents(folder) == written
    for kept in (made_edition.folder / "cache").rglob("*"):
        if kept.is_file():
            kept.write_bytes(b"damaged")
    report.run(made_edition)
    assert contents(folder) == written

    params = made_edition.params_yaml
    params.write_text(params.read_text().replace("images_per_class: 2", "images_per_class: 1"))
    review_apply.run(made_edition, "a")
    count.run(made_edition)
    report.run(made_edition)
    found = contents(folder)
    assert found != written
    assert from_nothing(made_edition) == found


@pytest.mark.long
@pytest.mark.slow
def test_export(made: Made) -> None:
    """One of three images gives way to another, one is a crop, and one is unchanged."""
    made.archives()
    made.succeeds("preprocess")
    with_model(made, name=NETWORK)
    select(made, (1, 4, 9))
    made.succeeds(*EXPORT)
    folder = made.folder / "data/export/standard"
    before = inodes(folder)
    made.succeeds(*EXPORT)
    assert rewritten(before, folder) == []

    select(made, (1, 4, 8))
    (folder / "mine.txt").write_text("by hand")
    made.succeeds(*EXPORT)
    assert rewritten(before, folder) == [
        "README.md",
        "checksums.sha256",
        "croissant.json",
        "manifest.csv",
        "metadata.csv",
        "n09193705/ILSVRC2012_val_00000008.JPEG",
    ]
    found = contents(folder)
    assert not any(id_of(9) in name for name in found)
    shutil.rmtree(folder)
    made.succeeds(*EXPORT)
    assert contents(folder) == found
