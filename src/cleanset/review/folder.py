"""The folder `reviews/`: one folder per reviewer, in it one YAML file per class."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from cleanset.boxes import Crop
from cleanset.errors import CleansetError
from cleanset.ilsvrc import class_indices
from cleanset.review.consensus import Decision, Policy, consensus
from cleanset.review.verdicts import Review, Vote, parse_reviews

BOARD = "board"
"""The reviewer whose verdicts overrule, with a note that says why."""

_REVIEWER = re.compile(r"[a-z0-9][a-z0-9_-]*")

Votes = dict[tuple[int, str], dict[str, Vote]]
"""By class index and image id: the vote of each reviewer."""


def read_reviews(folder: Path) -> Votes:
    """All votes under `reviews/`. Raises CleansetError for a file that does not belong there."""
    votes: Votes = defaultdict(dict)
    for reviewer in reviewer_folders(folder):
        for path in _visible(reviewer):
            if path.suffix != ".yaml" or path.stem not in class_indices() or not path.is_file():
                raise CleansetError(f"{path}: no class of ILSVRC2012; expected a file <wnid>.yaml: rename or remove it")
            for vote in read_file(path):
                votes[class_indices()[vote.wnid], vote.image_id][reviewer.name] = vote
    return dict(votes)


def reviewer_folders(folder: Path) -> list[Path]:
    """The folder of each reviewer, by name. Raises CleansetError for anything else in `folder`."""
    found = _visible(folder)
    for reviewer in found:
        if not reviewer.is_dir() or not _REVIEWER.fullmatch(reviewer.name):
            raise CleansetError(
                f"{reviewer}: not the folder of a reviewer; expected a name of small letters, digits, - and _: "
                "rename, move or remove it"
            )
    return found


def review_file(folder: Path, reviewer: str, wnid: str) -> Path:
    """The file of one reviewer's verdicts on one class. Raises CleansetError for what cannot be either."""
    if not _REVIEWER.fullmatch(reviewer):
        raise CleansetError(f"reviewer {reviewer!r}: expected a name of small letters, digits, - and _")
    if wnid not in class_indices():
        raise CleansetError(f"class {wnid!r}: no class of ILSVRC2012; expected a wnid such as n01440764")
    return folder / reviewer / f"{wnid}.yaml"


def read_file(path: Path) -> list[Vote]:
    """The verdicts in one file `<reviewer>/<wnid>.yaml`. Raises CleansetError for anything wrong in it."""
    votes = parse_reviews(read_text(path), path.stem, str(path))
    for vote in votes:
        check_note(path.parent.name, vote.review, vote.where)
    return votes


def check_note(reviewer: str, review: Review, where: str) -> None:
    """Raise CleansetError for a note that is no text, and for a verdict of the board that does not say why."""
    if any("\ud800" <= character <= "\udfff" for character in review.note or ""):  # a surrogate: no UTF-8 holds it
        raise CleansetError(f"{where}: a note with half a character; write it again")
    if reviewer == BOARD and not (review.note or "").strip():
        raise CleansetError(f"{where}: no note; the board's reason to overrule must stand here")


def check_reviews(votes: Votes, index: pd.DataFrame) -> None:
    """Check every vote against the pictures. Raises CleansetError for the first that does not hold."""
    reviewed = index[index["image_id"].isin({image_id for _, image_id in votes})]
    pictures = {row.image_id: row for row in reviewed.itertuples()}
    for (class_index, image_id), by_reviewer in votes.items():
        for vote in by_reviewer.values():
            if image_id not in pictures:
                raise CleansetError(f"{vote.where}: no such picture in the index; correct or remove the entry")
            _check_vote(vote, class_index, pictures[image_id])


def checked_reviews(folder: Path, index: pd.DataFrame) -> Votes:
    """All votes under `reviews/`, checked against the pictures."""
    votes = read_reviews(folder)
    check_reviews(votes, index)
    return votes


def of_reviewer(votes: Votes, reviewer: str) -> dict[int, dict[str, Review]]:
    """One reviewer's verdicts, by class index and then by image id."""
    own: dict[int, dict[str, Review]] = defaultdict(dict)
    for (class_index, image_id), by_reviewer in votes.items():
        if reviewer in by_reviewer:
            own[class_index][image_id] = by_reviewer[reviewer].review
    return dict(own)


def decisions(votes: Votes, policy: Policy, min_reviewers: int) -> Mapping[tuple[int, str], Decision]:
    """The decision on each reviewed picture, by class index and image id."""
    return {key: _decide(by_reviewer, policy, min_reviewers) for key, by_reviewer in votes.items()}


def drawn(votes: Votes) -> set[Crop]:
    """Every crop that anybody has drawn, the board included, whether or not it was decided on."""
    return {
        Crop(image_id, vote.review.box)
        for (_, image_id), by_reviewer in votes.items()
        for vote in by_reviewer.values()
        if vote.review.box is not None
    }


def _decide(by_reviewer: Mapping[str, Vote], policy: Policy, min_reviewers: int) -> Decision:
    board = by_reviewer.get(BOARD)
    others = [vote.review for reviewer, vote in sorted(by_reviewer.items()) if reviewer != BOARD]
    return consensus(others, board.review if board else None, policy, min_reviewers)


def _check_vote(vote: Vote, class_index: int, picture: object) -> None:
    real_classes, expected = picture.real_classes, picture.sha256  # type: ignore[attr-defined]
    width, height = picture.width, picture.height  # type: ignore[attr-defined]
    if class_index not in real_classes:
        raise CleansetError(
            f"{vote.where}: reviewed for {vote.wnid}, which is not among the picture's reassessed labels; "
            "move the entry to the file of its class, or remove it"
        )
    if vote.review.sha256 != expected:
        raise CleansetError(
            f"{vote.where}: sha256 {vote.review.sha256}, but the picture has {expected}: other bytes were "
            "reviewed; look at the picture again"
        )
    box = vote.review.box
    if box and (box[2] > width or box[3] > height or box == (0, 0, width, height)):
        raise CleansetError(
            f"{vote.where}: crop {list(box)} in a picture of {width} x {height} pixels; expected a box "
            "inside it and smaller than it"
        )


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, sorted, without hidden files and editors' copies."""
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; make the folder, empty if nobody has reviewed yet")
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.name.endswith("~"))


def read_text(path: Path) -> str:
    """The text of a review file, line ends as they are. Raises CleansetError if it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise CleansetError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
