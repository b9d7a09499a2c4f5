"""A table of labels continues with images that have other names since: flat, in other folders, relabelled or not."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import digests_of
from cleanset.edition.create import make_own_edition
from cleanset.edition.models import models_from_texts
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.accepted import NewTables, accept
from cleanset.review.store import read_reviews
from cleanset.stages import preprocess
from tests import own_edition
from tests.ten_images import drawn_image

GROUPS = "file,class,group\na/0.png,cat,p1\na/1.png,dog,p2\nb/0.png,dog,p1\nb/1.png,cat,p3\n"


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """Four images in folders that are not classes, with a table of labels and a verdict on each."""
    for seed, name in enumerate(("a/0.png", "a/1.png", "b/0.png", "b/1.png")):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        drawn_image(80, 90, seed=seed).save(tmp_path / "images" / name)
    (tmp_path / "given.csv").write_text(GROUPS)
    found = read_images(tmp_path / "images", tmp_path / "given.csv", None)
    tables = {"labels": tmp_path / "given.csv"}
    models = models_from_texts(["a=random:0"])
    make_own_edition(tmp_path / "own", tmp_path / "images", found, models, tables, digests_of(found.locations))
    made = Edition(tmp_path / "own")
    preprocess.run(made)
    own_edition.review(made, "ada")
    return made


def verdicts(edition: Edition) -> list[tuple[str, str]]:
    classes = edition.read_classes()
    return sorted((classes.keys[index], name) for index, name in read_reviews(edition.reviews, classes))


def flatten(images: Path) -> dict[str, str]:
    names = {}
    for path in sorted(images.glob("*/*.png")):
        name = f"{path.parent.name}-{path.name}"
        names[path.relative_to(images).as_posix()] = name
        path.rename(images / name)
    return names


def exchange(images: Path) -> dict[str, str]:
    """A folder under another name, with a copy of an image next to it."""
    (images / "b").rename(images / "c")
    shutil.copy(images / "c/0.png", images / "c/copy.png")
    return {"a/0.png": "a/0.png", "a/1.png": "a/1.png", "b/0.png": "c/0.png", "b/1.png": "c/1.png"}


@pytest.mark.parametrize("change", [flatten, exchange])
def test_before_and_after(change: Callable[[Path], dict[str, str]], edition: Edition, tmp_path: Path) -> None:
    labels = edition.folder / "labels.csv"
    assert accept(edition, None) == "no image has changed\n4 of 4 verdicts carried over"
    assert labels.read_text() == GROUPS
    before = verdicts(edition)
    names = change(tmp_path / "images")
    moved = sum(name != new for name, new in names.items())
    said = accept(edition, None).splitlines()
    assert said[1:] == [
        "4 of 4 verdicts carried over",
        f"{labels}: {moved} images were renamed; the edition's table has the new names",
    ]
    rows = [line.split(",", 1) for line in GROUPS.splitlines()[1:]]
    expected = sorted(f"{names[name]},{rest}" for name, rest in rows)
    assert labels.read_text().splitlines() == ["file,class,group", *expected]
    preprocess.run(edition)
    assert verdicts(edition) == sorted((key, names[name]) for key, name in before)
    assert accept(edition, None) == "no image has changed\n4 of 4 verdicts carried over"


def test_a_table_that_was_corrected_before_the_images_moved(edition: Edition, tmp_path: Path) -> None:
    """As review relabel writes it: the verdict on the image in its old class ends, the others continue."""
    corrected = tmp_path / "corrected.csv"
    corrected.write_text(GROUPS.replace("a/1.png,dog", "a/1.png,cat"))
    flatten(tmp_path / "images")
    said = accept(edition, None, tables=NewTables(labels=corrected)).splitlines()
    assert said[1:] == [
        "3 of 4 verdicts carried over; not 1 (image not in the class)",
        f"{corrected}: 4 images were renamed; the edition's table has the new names",
        f"{corrected}: copied to labels.csv, which dataset.labels of params.yaml and the deps of preprocess name",
    ]
    preprocess.run(edition)
    assert verdicts(edition) == [("cat", "a-0.png"), ("cat", "b-1.png"), ("dog", "b-0.png")]
    assert (edition.folder / "labels.csv").read_text().splitlines()[2] == "a-1.png,cat,p2"


def test_an_image_whose_bytes_are_nowhere(edition: Edition, tmp_path: Path) -> None:
    flatten(tmp_path / "images")
    drawn_image(80, 90, seed=99).save(tmp_path / "images/b-1.png")
    with pytest.raises(CleansetError, match=r"labels\.csv: not in .*images: b/1\.png; put them there, or correct the"):
        accept(edition, None)
    assert (edition.folder / "labels.csv").read_text() == GROUPS
