"""Writing reviews: one verdict at a time into `reviews/<reviewer>/<wnid>.yaml`, losing nothing that is there."""

from collections.abc import Mapping
from pathlib import Path
from types import EllipsisType

from cleanset.dataset.ilsvrc import parse_image_name
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.review.store import check_note, check_reviews, read_reviews, review_file
from cleanset.review.verdicts import Review, parse_reviews
from cleanset.review.yaml_edit import with_review
from cleanset.saving import ChangedMeanwhileError, locked, replace_file, sync_folder
from cleanset.tables import INDEX, read_table


def save(
    reviews: Path,
    reviewer: str,
    wnid: str,
    image_id: str,
    review: Review | None,
    expected: Review | EllipsisType | None = ...,
) -> None:
    """Write this reviewer's verdict on an image; None removes it.

    `expected` is the verdict that the caller last read (None: there was none); without it, any verdict is replaced.
    Processes and threads may save at once. After a kill the file
    is the old or the new one, and once this returns the new one survives a power cut, unless the file
    system cannot sync folders. A file without entries and comments is removed.

    Raises ChangedMeanwhileError if the file has another verdict than `expected` (unless it is the new one);
    CleansetError for an invalid name, a verdict of the board without a note, and an invalid file, which stays
    unchanged; OSError where the disk fails: then the file is unchanged, or the new one if only its folder could not be
    synced.
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
        sync_folder(reviews)  # else a power cut could take the new folder, with the verdict in it
    with locked(path.parent):
        text = read_text(path, "save it as UTF-8") if path.exists() else ""
        votes = parse_reviews(text, wnid, str(path))
        found = next((vote for vote in votes if vote.image_id == image_id), None)
        current = found.review if found else None
        # before `expected` is compared: the same verdict from two places is no conflict
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


def bind_reviews(edition: Edition, reviewer: str | None) -> int:
    """Replace `official` by the SHA-256 of the image in the reviews of one reviewer (None: of all); return how many.

    Every review is checked before the first file is written; each file is written whole or not at all. Raises
    CleansetError unless the edition's images are those of the official archive.
    """
    params = read_params(edition.folder)
    if not images_are_official(edition, params.dataset.images):
        raise CleansetError(
            f"{edition.params_yaml}: dataset.images {params.dataset.images} is not a tar with the MD5 of the official "
            f"archive in {edition.raw_md5}; expected that archive, whose image ids name bytes: bind the reviews in an "
            "edition that has it, and bring them here"
        )
    index = read_table(edition.index, INDEX)
    votes = read_reviews(edition.reviews)
    check_reviews(votes, index, params.review.min_crop_pixels, official_images=True)
    files = sorted(
        {
            review_file(edition.reviews, name, vote.wnid)
            for by_reviewer in votes.values()
            for name, vote in by_reviewer.items()
            if vote.review.is_official and reviewer in (None, name)
        }
    )
    if reviewer is not None and not review_file(edition.reviews, reviewer, "n01440764").parent.is_dir():
        raise CleansetError(
            f"{edition.reviews / reviewer}: missing; expected the folder of a reviewer: correct --reviewer"
        )
    digests = dict(zip(index["image_id"].tolist(), index["sha256"].tolist(), strict=True))
    return sum(_bind_file(path, digests) for path in files)


def _bind_file(path: Path, digests: Mapping[str, str]) -> int:
    """Bind the reviews in one file; return how many."""
    with locked(path.parent):
        text = read_text(path, "save it as UTF-8")
        bound, count = bound_text(text, path.stem, digests, str(path))
        if count:
            replace_file(path, bound.encode())
    return count


def bound_text(text: str, wnid: str, digests: Mapping[str, str], where: str) -> tuple[str, int]:
    """The text of a review file with the SHA-256 of each image in place of `official`, and the number of images bound.

    `digests`: by image id. Every other byte stays. Raises CleansetError, naming `where`, as `with_review` does.
    """
    votes = parse_reviews(text, wnid, where)
    official = [vote for vote in votes if vote.review.is_official]
    for vote in official:
        bound = vote.review.model_copy(update={"sha256": digests[vote.image_id]})
        # parsed anew each time, because with_review needs the verdicts in the text that it is given
        text = with_review(text, parse_reviews(text, wnid, where), wnid, vote.image_id, bound, where)
    return text, len(official)
