"""Writing reviews: one verdict at a time into `reviews/<reviewer>/<wnid>.yaml`, losing nothing that is there."""

from pathlib import Path
from types import EllipsisType

from cleanset.dataset.ilsvrc import parse_image_name
from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.review.store import check_note, review_file
from cleanset.review.verdicts import Review, parse_reviews
from cleanset.review.yaml_edit import with_review
from cleanset.saving import ChangedMeanwhileError, locked, replace_file, sync_folder


def save(
    reviews: Path,
    reviewer: str,
    wnid: str,
    image_id: str,
    review: Review | None,
    expected: Review | EllipsisType | None = ...,
) -> None:
    """Make `review` this reviewer's verdict on an image; None takes the entry away.

    `expected` is the verdict that the caller last read (None: none); without it,
    any verdict is replaced. Processes and threads may save at once. After a kill the file
    is the old or the new one, and once this returns the new one survives a power cut, unless the file
    system cannot sync folders. A file without entries and comments is removed.

    Raises ChangedMeanwhileError if the file has another verdict than `expected` (unless it is the new one);
    CleansetError for a name that is none, a verdict of the board without a note, and a file that
    is not valid, which then stays as it is; OSError where the disk fails: then the file is as it was,
    or the new one if only its folder could not be synced.
    """
    path = review_file(reviews, reviewer, wnid)
    if parse_image_name(f"{image_id}.JPEG") != (image_id, None):
        raise CleansetError(f"image {image_id!r}: expected an image id such as ILSVRC2012_val_00000001")
    if review is not None:
        check_note(reviewer, review, f"{path}, {image_id}")
    if not reviews.is_dir():
        raise CleansetError(f"{reviews}: missing; make the folder, empty if nobody has reviewed yet")
    if not path.parent.is_dir():
        path.parent.mkdir(exist_ok=True)
        sync_folder(reviews)
    with locked(path.parent):
        text = read_text(path, "save it as UTF-8") if path.exists() else ""
        votes = parse_reviews(text, wnid, str(path))
        found = next((vote for vote in votes if vote.image_id == image_id), None)
        current = found.review if found else None
        if current == review:
            return
        if expected is not ... and current != expected:
            raise ChangedMeanwhileError(
                f"{found.where if found else f'{path}, {image_id}'}: found {_shown(current)}, expected "
                f"{_shown(expected)}: it was changed meanwhile; look at it and decide again"
            )
        replace_file(path, with_review(text, votes, wnid, image_id, review, str(path)).encode())


def _shown(review: Review | None) -> str:
    if review is None:
        return "no verdict"
    fields = review.model_dump(mode="json", exclude={"sha256"})
    return ", ".join(f"{name} {value}" for name, value in fields.items() if value)
