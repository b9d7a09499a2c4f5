"""The folder reviews/: whose files are read, and reviews that do not fit their images."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.edition.params import ReviewPolicy, read_params
from cleanset.errors import CleansetError
from cleanset.review.audit_files import audited_roles, read_audit_votes, read_plan
from cleanset.review.decided import decisions_under
from cleanset.review.gold_files import read_gold_key
from cleanset.review.guidelines import own_guidelines, write_guidelines
from cleanset.review.page.library import _seen_by
from cleanset.review.page.stored import CropScores, StoredVotes
from cleanset.review.status import read_decisions
from cleanset.review.store import check_reviews, read_reviews
from cleanset.review.verdicts import Review, Unsure
from cleanset.selection.fill import Decision
from tests.review.texts import GOLDFISH, IMAGE, OTHER_SHA, SHA, TENCH, clean, crop, entry, save
from tests.stages.test_stages import edition_in


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


INDEX = pd.DataFrame(
    {
        "image_id": [IMAGE, "ILSVRC2012_val_00000009"],
        "real_classes": [np.array([0], dtype=np.int16), np.array([], dtype=np.int16)],
        "sha256": [SHA, OTHER_SHA],
        "width": [500, 500],
        "height": [375, 375],
    }
)


def test_votes_of_two_reviewers(tmp_path: Path) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", clean())
    write(tmp_path, f"bob/{TENCH}.yaml", crop())
    write(tmp_path, "bob/.draft", "not read")
    write(tmp_path, ".gitkeep", "")
    votes = read_reviews(tmp_path, imagenet())
    check_reviews(votes, INDEX, imagenet())
    assert {key: {name: vote.review.verdict.kind for name, vote in of.items()} for key, of in votes.items()} == {
        (0, IMAGE): {"ann": "clean", "bob": "crop"}
    }
    assert decisions_under(ReviewPolicy(), votes) == {(0, IMAGE): Decision("undecided", "conflict")}


def test_no_reviews_yet(tmp_path: Path) -> None:
    assert read_reviews(tmp_path, imagenet()) == {}


def test_the_board_overrules(tmp_path: Path) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", clean())
    write(tmp_path, f"bob/{TENCH}.yaml", crop())
    write(tmp_path, f"board/{TENCH}.yaml", entry(verdict="reject", reason="noise", sha256=SHA, note="seen at 200 %"))
    assert decisions_under(ReviewPolicy(policy="unanimous", min_reviewers=2), read_reviews(tmp_path, imagenet())) == {
        (0, IMAGE): Decision("reject", "noise")
    }


def test_the_board_alone(tmp_path: Path) -> None:
    write(tmp_path, f"board/{TENCH}.yaml", clean(note="the stamp is part of the scene"))
    assert decisions_under(ReviewPolicy(policy="majority", min_reviewers=3), read_reviews(tmp_path, imagenet())) == {
        (0, IMAGE): Decision("clean")
    }


@pytest.mark.parametrize("note", [{}, {"note": '""'}, {"note": '"  "'}])
def test_the_board_says_why(tmp_path: Path, note: dict[str, str]) -> None:
    write(tmp_path, f"board/{TENCH}.yaml", clean(**note))
    with pytest.raises(
        CleansetError,
        match=r"board/n01440764\.yaml, line 2, ILSVRC2012_val_00002138: no note; the board's reason",
    ):
        read_reviews(tmp_path, imagenet())


@pytest.mark.parametrize("path", [f"{TENCH}.yaml", f"Board/{TENCH}.yaml", f"ann b/{TENCH}.yaml"])
def test_what_is_no_folder_of_a_reviewer(tmp_path: Path, path: str) -> None:
    write(tmp_path, path, clean())
    name = path.split("/")[0]
    with pytest.raises(CleansetError, match=rf"{name}: not the folder of a reviewer; expected a name of small letters"):
        read_reviews(tmp_path, imagenet())


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "ann" / f"{TENCH}.yaml").mkdir(parents=True)
    with pytest.raises(CleansetError, match=r"n01440764\.yaml: not of a class of ILSVRC2012; expected a file"):
        read_reviews(tmp_path, imagenet())


@pytest.mark.parametrize("name", ["n00000001.yaml", "n01440764.yml", "n01440764", "notes.txt", "N01440764.yaml"])
def test_a_file_of_no_class(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"ann/{name}", clean())
    with pytest.raises(
        CleansetError, match=rf"ann/{name}: not of a class of ILSVRC2012; expected a file <wnid>\.yaml: rename"
    ):
        read_reviews(tmp_path, imagenet())


def test_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path, f"ann/{TENCH}.yaml", "")
    path.write_bytes("# très\n".encode("latin-1"))
    with pytest.raises(CleansetError, match=r"n01440764\.yaml: not UTF-8 at byte 4; save it as UTF-8"):
        read_reviews(tmp_path, imagenet())


UNFIT = {
    "unknown image": (
        TENCH,
        clean().replace(IMAGE, "ILSVRC2012_val_00050001"),
        r"line 2, ILSVRC2012_val_00050001: no such image in the index; correct or remove the entry",
    ),
    "not among the labels": (
        GOLDFISH,
        clean().replace(TENCH, GOLDFISH),
        r"reviewed for n01443537, which is not among the image's reassessed labels; move the entry to the file",
    ),
    "no label at all": (
        TENCH,
        clean().replace(IMAGE, "ILSVRC2012_val_00000009").replace(SHA, OTHER_SHA),
        r"reviewed for n01440764, which is not among the image's reassessed labels",
    ),
    "other bytes": (
        TENCH,
        clean().replace(SHA, OTHER_SHA),
        rf"line 2, {IMAGE}: sha256 {OTHER_SHA}, but the image has {SHA}: other bytes were reviewed; look at",
    ),
    "box too wide": (
        TENCH,
        crop(crop="[0, 0, 501, 330]"),
        r"crop \[0, 0, 501, 330\] in an image of 500 x 375 pixels; expected a box inside it",
    ),
    "box too high": (TENCH, crop(crop="[0, 0, 480, 376]"), r"crop \[0, 0, 480, 376\] in an image of 500 x 375 pixels"),
    "whole image": (
        TENCH,
        crop(crop="[0, 0, 500, 375]"),
        r"crop \[0, 0, 500, 375\] is the whole image; expected a box smaller than it",
    ),
}


@pytest.mark.parametrize(("wnid", "text", "message"), UNFIT.values(), ids=UNFIT.keys())
def test_a_review_that_does_not_fit_its_image(tmp_path: Path, wnid: str, text: str, message: str) -> None:
    write(tmp_path, f"ann/{wnid}.yaml", text)
    votes = read_reviews(tmp_path, imagenet())
    with pytest.raises(CleansetError, match=message):
        check_reviews(votes, INDEX, imagenet())


@pytest.mark.parametrize("box", ["[0, 0, 500, 374]", "[1, 0, 500, 375]", "[0, 0, 1, 1]", "[499, 374, 500, 375]"])
def test_boxes_that_fit(tmp_path: Path, box: str) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", crop(crop=box))
    check_reviews(read_reviews(tmp_path, imagenet()), INDEX, imagenet())


def test_a_crop_with_an_edge_too_short(tmp_path: Path) -> None:
    """The bound itself is allowed; one pixel less on either axis is not."""
    for box, size in (("[10, 10, 41, 100]", "31 x 90"), ("[10, 10, 100, 41]", "90 x 31"), ("[0, 0, 1, 1]", "1 x 1")):
        write(tmp_path, f"ann/{TENCH}.yaml", crop(crop=box))
        expected = f"crop {box} is {size} pixels; expected edges of at least 32 (review.min_crop_pixels)"
        with pytest.raises(CleansetError, match=re.escape(expected)):
            check_reviews(read_reviews(tmp_path, imagenet()), INDEX, imagenet(), 32, official_images=False)
    write(tmp_path, f"ann/{TENCH}.yaml", crop(crop="[10, 10, 42, 42]"))
    check_reviews(read_reviews(tmp_path, imagenet()), INDEX, imagenet(), 32, official_images=False)


def test_every_reviewers_vote_is_checked(tmp_path: Path) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", clean())
    write(tmp_path, f"zoe/{TENCH}.yaml", clean().replace(SHA, OTHER_SHA))
    votes = read_reviews(tmp_path, imagenet())
    with pytest.raises(CleansetError, match=r"zoe/n01440764\.yaml, line 2, .*other bytes were reviewed"):
        check_reviews(votes, INDEX, imagenet())


@pytest.mark.parametrize("linked", ["bob", "bob/n01440764.yaml"])
def test_a_link_is_no_second_reviewer(tmp_path: Path, linked: str) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "n01440764.yaml").write_text(f"n01440764:\n  {IMAGE}:\n    verdict: clean\n    sha256: {SHA}\n")
    link = tmp_path / linked
    link.parent.mkdir(exist_ok=True)
    target = tmp_path / "ann" / Path(*Path(linked).parts[1:])
    link.symlink_to(target)
    with pytest.raises(CleansetError, match=rf"{linked}: a link to \S+; expected a reviewer's own folder and files"):
        read_reviews(tmp_path, imagenet())


@pytest.mark.parametrize("name", [f"{TENCH}.yaml", "nowhere.yaml"])
def test_a_linked_file_is_neither_read_nor_replaced_by_the_page(tmp_path: Path, name: str) -> None:
    """A broken link, too: it does not mean that there are no verdicts."""
    (tmp_path / "ann").mkdir()
    (tmp_path / "bob").mkdir()
    (tmp_path / "ann" / f"{TENCH}.yaml").write_text(clean())
    link = tmp_path / "bob" / f"{TENCH}.yaml"
    link.symlink_to(tmp_path / "ann" / name)
    with pytest.raises(CleansetError, match=rf"bob/{TENCH}\.yaml: a link to \S+; expected a reviewer's own folder"):
        StoredVotes(tmp_path, {}, imagenet(), 1).read(0)
    with pytest.raises(CleansetError, match=rf"bob/{TENCH}\.yaml: a link to"):
        save(tmp_path, "bob", TENCH, IMAGE, Review(verdict=Unsure(), sha256=SHA))
    assert link.is_symlink()


def test_a_link_to_nothing_is_not_taken_for_absent(tmp_path: Path) -> None:
    """For the files of an edition that may be missing: without gold.csv, answers to gold items would decide."""
    edition = edition_in(tmp_path / "edition")
    params, reviews, role = read_params(edition.folder), edition.reviews, "standard"
    readers: dict[Path, list[Callable[[], object]]] = {
        reviews / "gold.csv": [lambda: read_gold_key(reviews, imagenet()), lambda: read_reviews(reviews, imagenet())],
        reviews / "GUIDELINES.md": [lambda: own_guidelines(reviews), lambda: write_guidelines(reviews)],
        reviews / "audit" / "standard.yaml": [
            lambda: read_plan(reviews, role, imagenet()), lambda: audited_roles(reviews, [role])
        ],
        reviews / "audit" / "standard": [lambda: read_audit_votes(reviews, role, imagenet())],
        edition.crop_scores(role): [
            lambda: read_decisions(edition, params, {}, imagenet()), CropScores(edition, [role], imagenet()).look,
        ],
        edition.scored_with(role): [lambda: _seen_by(edition, [role])],
    }  # fmt: skip
    for path, each in readers.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to("gone")
        for read in each:
            with pytest.raises(CleansetError, match=rf"{path.name}: broken symlink to gone; restore its target, or"):
                read()
        path.unlink()
