"""The folder `reviews/`: a YAML file per reviewer and class, read whole, checked against images and classes."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, cut
from cleanset.images.boxes import Crop, check_crop, known_box
from cleanset.plumbing.files import read_text
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.plumbing.waiting import announced
from cleanset.review.file_format import kept_votes, parse_reviews, usual_verdict_files
from cleanset.review.gold import without_golds
from cleanset.review.gold_files import GOLD_KEY, read_gold_key
from cleanset.review.guidelines import GUIDELINES, check_reviews_folder
from cleanset.review.verdicts import OFFICIAL, ImageKey, Review, Vote, votes_that

if TYPE_CHECKING:
    import pandas as pd

BOARD = "board"
"""The reviewer whose verdicts overrule, with a note that says why."""

NOTE_ON_REVIEWS = "README.md"
"""A note on whose reviews these are, allowed in the folder of all reviews."""


AUDIT = "audit"
"""The folder of the audits, in the folder of all reviews; no reviewer has this name."""

# longest name of a reviewer, in characters: a file system has a limit for the path
MAX_NAME = 64

MAX_NOTE = 10_000
"""Longest note on an image, in characters."""

_REVIEWER = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME - 1}}}")

_REMEDY = "save it as UTF-8"

_EXPECTED_NAME = f"small letters, digits, - and _, at most {MAX_NAME}"

Votes = dict[ImageKey, dict[str, Vote]]
"""By class index and image id: the vote of each reviewer."""


def read_reviews(folder: Path, classes: ClassTable) -> Votes:
    """All votes under `reviews/` that decide. Raises CleansetError for a file that does not belong there.

    Answers to gold items and the verdicts of audits are left out.
    """
    return without_golds(read_votes(folder, classes), read_gold_key(folder, classes))


def read_votes(folder: Path, classes: ClassTable) -> Votes:
    """All votes in the folders of reviewers in `folder`, answers to gold items among them."""
    votes: Votes = defaultdict(dict)
    kept = usual_verdict_files()
    with announced(f"reading the verdicts in {folder}"), without_garbage_collection():
        for path in review_files(folder, classes):
            text = read_text(path, _REMEDY)
            for vote in _with_valid_notes(kept_votes(text, path.stem, str(path), classes, kept), path):
                votes[classes.indices[vote.wnid], vote.image_id][path.parent.name] = vote
    # no longer a defaultdict, in which looking up an image adds it
    return dict(votes)


def review_files(folder: Path, classes: ClassTable) -> Iterator[Path]:
    """Every file of verdicts, by reviewer and class. Raises CleansetError for a file that does not belong there."""
    for reviewer in reviewer_folders(folder):
        for path in _visible(reviewer):
            refuse_link(path)
            if path.suffix != ".yaml" or path.stem not in classes.indices or not path.is_file():
                known = "of ILSVRC2012" if classes.is_imagenet else "here"
                raise CleansetError(
                    f"{path}: not of a class {known}; expected a file <{classes.key_column}>.yaml: rename or remove it"
                )
            yield path


def reviewer_folders(folder: Path) -> list[Path]:
    """The folder of each reviewer, by name. Raises CleansetError for anything else in `folder`."""
    others = (NOTE_ON_REVIEWS, GUIDELINES, GOLD_KEY, AUDIT)
    found = [path for path in _visible(folder) if path.name not in others]
    for reviewer in found:
        refuse_link(reviewer)
        if not reviewer.is_dir() or not _REVIEWER.fullmatch(reviewer.name):
            raise CleansetError(
                f"{reviewer}: not the folder of a reviewer; expected a name of {_EXPECTED_NAME}: "
                "rename, move or remove it"
            )
    return found


def refuse_link(path: Path) -> None:
    """Raise CleansetError for a symbolic link: one person's verdicts would count twice."""
    if path.is_symlink():
        raise CleansetError(
            f"{path}: a link to {path.readlink()}; expected a reviewer's own folder and files, else verdicts count "
            "twice: remove it, or put a copy of this reviewer's verdicts in its place"
        )


def check_reviewer(name: str) -> None:
    """Raise CleansetError for a name that no reviewer can have."""
    if not _REVIEWER.fullmatch(name):
        raise CleansetError(f"reviewer {cut(name, MAX_NAME)!r}: expected a name of {_EXPECTED_NAME}")
    if name == AUDIT:
        raise CleansetError(f"reviewer {AUDIT!r}: the folder of the audits has this name; choose another")


def review_file(folder: Path, reviewer: str, wnid: str, classes: ClassTable) -> Path:
    """The path of a reviewer's verdicts on a class. Raises CleansetError for an invalid name or an unknown class."""
    check_reviewer(reviewer)
    if wnid not in classes.indices:
        raise CleansetError(f"unknown class {wnid!r}; expected a {classes.key_column} such as {classes.example_key}")
    return folder / reviewer / f"{wnid}.yaml"


def read_file(path: Path, classes: ClassTable) -> list[Vote]:
    """The verdicts in one file `<reviewer>/<wnid>.yaml`. Raises CleansetError for anything wrong in it."""
    return votes_in(read_text(path, _REMEDY), path, classes)


def votes_in(text: str, path: Path, classes: ClassTable) -> list[Vote]:
    """The verdicts in the text of the file at `path`, as `read_file` gives them."""
    return _with_valid_notes(parse_reviews(text, path.stem, str(path), classes), path)


def _with_valid_notes(votes: list[Vote], path: Path) -> list[Vote]:
    for vote in votes:
        check_note(path.parent.name, vote.review, vote.where)
    return votes


def check_note(reviewer: str, review: Review, where: str) -> None:
    """Raise CleansetError for a note that is too long or not valid Unicode, and for a board's verdict without one."""
    if len(review.note or "") > MAX_NOTE:
        raise CleansetError(
            f"{where}: a note of {len(review.note or ''):,} characters; expected at most {MAX_NOTE:,}: shorten it"
        )
    if any("\ud800" <= character <= "\udfff" for character in review.note or ""):  # a surrogate: no UTF-8 holds it
        raise CleansetError(f"{where}: a note with half a character; write it again")
    if reviewer == BOARD and not (review.note or "").strip():
        raise CleansetError(f"{where}: no note; the board's reason to overrule is needed")


class ReviewedImage(Protocol):
    """The index's row of an image, which verdicts are checked against."""

    @property
    def sha256(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def real_classes(self) -> Collection[int]: ...


def check_reviews(
    votes: Votes,
    index: "pd.DataFrame",
    classes: ClassTable,
    min_crop_pixels: int | None = 1,
    *,
    official_images: bool = False,
) -> None:
    """Check every vote against the images. Raises CleansetError for the first invalid one.

    `min_crop_pixels`: no edge of a crop may be shorter (`review.min_crop_pixels` of params.yaml); None: any box is
    valid.
    `official_images`: these are the images of the official archive, so that a vote may name one by its id alone.
    """
    reviewed = index[index["image_id"].isin({image_id for _, image_id in votes})]
    images: dict[str, ReviewedImage] = {str(row.image_id): row for row in reviewed.itertuples()}  # type: ignore[misc]
    check_votes(votes, images, classes, min_crop_pixels, official_images=official_images)


def check_votes(
    votes: Votes,
    images: Mapping[str, ReviewedImage],
    classes: ClassTable,
    min_crop_pixels: int | None,
    *,
    official_images: bool,
) -> None:
    """As `check_reviews`, with the rows of the index by image id."""
    for (class_index, image_id), by_reviewer in votes.items():
        for vote in by_reviewer.values():
            if image_id not in images:
                raise CleansetError(f"{vote.where}: no such image in the index; correct or remove the entry")
            image = images[image_id]
            if class_index not in image.real_classes:
                labels = "among the image's reassessed labels" if classes.is_imagenet else "the image's class"
                raise CleansetError(
                    f"{vote.where}: reviewed for {vote.wnid}, which is not {labels}; "
                    "move the entry to the file of its class, or remove it"
                )
            _check_bytes(vote, image, official_images=official_images)
            box = known_box(vote.review.box)
            if box is not None and min_crop_pixels is not None:
                try:
                    check_crop(box, image.width, image.height, min_crop_pixels)
                except ValueError as error:
                    raise CleansetError(f"{vote.where}: {error}") from None


def accepted_votes(votes: Votes, bases: Collection[str]) -> Votes:
    """The votes with one of these bases, on the images that have such votes."""
    return votes_that(votes, lambda _key, _name, vote: is_accepted(vote.review, bases))


def is_accepted(review: Review, bases: Collection[str]) -> bool:
    """Whether a review has one of these bases."""
    return basis_of(review) in bases


def basis_of(review: Review) -> str:
    """The basis of a review; explicit by default."""
    return review.basis or "explicit"


def drawn_crops(votes: Votes) -> set[Crop]:
    """Every crop drawn by anybody, the board included, whatever was decided."""
    return {
        Crop(image_id, box)
        for (_, image_id), by_reviewer in votes.items()
        for vote in by_reviewer.values()
        if (box := known_box(vote.review.box)) is not None
    }


def _check_bytes(vote: Vote, image: ReviewedImage, *, official_images: bool) -> None:
    """Raise CleansetError if other bytes than the image's were reviewed."""
    if vote.review.is_official and not official_images:
        raise CleansetError(
            f"{vote.where}: sha256 {OFFICIAL}, but dataset.images is not a tar with the MD5 of the official archive in "
            "raw.md5: run cleanset review bind in an edition of that archive, which writes the SHA-256 in its place"
        )
    if vote.review.sha256 != image.sha256 and not vote.review.is_official:
        raise CleansetError(
            f"{vote.where}: sha256 {vote.review.sha256}, but the image has {image.sha256}: other bytes were "
            "reviewed; look at the image again"
        )


def _visible(folder: Path) -> list[Path]:
    """The paths in a folder, sorted, without hidden files and editors' backup copies."""
    check_reviews_folder(folder)
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.name.endswith("~"))
