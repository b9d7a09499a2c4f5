"""A set of your own images with an image twice is refused once, with all pairs."""

import shutil
from pathlib import Path

import pytest

from cleanset.dataset.duplicates import DuplicatePair
from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import digests_of
from cleanset.edition.create import make_own_edition
from cleanset.edition.models import models_from_texts
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets.folder import read_entries
from cleanset.stages.export import set_pairs
from tests import own_edition
from tests.sets.own_set import write_own_set
from tests.ten_images import drawn_image


def test_the_pairs_of_a_set(tmp_path: Path) -> None:
    """By the bytes of the original, or by the pixels of what the set has: here of a crop."""
    images = tmp_path / "images"
    (images / "cat").mkdir(parents=True)
    (images / "dog").mkdir()
    whole = drawn_image(40, 40, seed=1)
    whole.save(images / "cat/0.png")
    whole.crop((0, 0, 30, 40)).save(images / "cat/1.png")
    drawn_image(40, 40, seed=2).save(images / "dog/0.png")
    shutil.copy(images / "dog/0.png", images / "dog/1.png")
    class_of = {"cat/0.png": "cat", "cat/1.png": "cat", "dog/0.png": "dog", "dog/1.png": "dog"}
    made = write_own_set(tmp_path / "set", images, class_of, {"cat/0.png": (0, 0, 30, 40)})
    assert set_pairs(read_entries(made)) == [
        DuplicatePair("cat/1.png", "cat/0.png", "pixels"), DuplicatePair("dog/1.png", "dog/0.png", "bytes"),
    ]  # fmt: skip


@pytest.mark.long
def test_all_pairs_in_one_refusal_until_they_are_rejected(tmp_path: Path) -> None:
    images = tmp_path / "images"
    for seed, key in enumerate(("cat", "dog")):
        (images / key).mkdir(parents=True)
        drawn_image(40, 40, seed=seed).save(images / key / "0.png")
        for number in (1, 2):
            shutil.copy(images / key / "0.png", images / key / f"{number}.png")
    found = read_images(images, None, None)
    make_own_edition(
        tmp_path / "own", images, found, models_from_texts(["a=random:0"]), {}, digests_of(found.locations)
    )
    edition = Edition(tmp_path / "own")
    own_edition.change_params(edition, export={"strict": False})
    own_edition.run(edition, "preprocess", "score", "intersect", "select")
    own_edition.review(edition, "ada")
    stages = ("crops", "score_crops", "review_apply", "export")
    table = edition.folder / "data/a_refused_duplicates.csv"
    with pytest.raises(CleansetError) as raised:
        own_edition.run(edition, *stages)
    pairs = [line.split(",")[:2] for line in table.read_text().splitlines()[1:]]
    named = ", ".join(f"{first} and {image_id}" for image_id, first in pairs[:3])
    assert str(raised.value) == (
        f"export a: the same image twice in the set: 4 pairs: {named} and 1 more; expected each image once: reject one "
        f"of each pair as duplicate; all are in {table}"
    )
    assert not edition.export("a").exists()
    duplicate = {"verdict": "reject", "reason": "duplicate"}
    shutil.rmtree(edition.reviews / "ada")
    own_edition.review(edition, "ada", {image_id: duplicate for image_id, _ in pairs})
    own_edition.run(edition, *stages)
    assert (len(read_entries(edition.export("a"))), table.exists()) == (2, False)
