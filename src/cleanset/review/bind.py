"""`cleanset review bind`: write the SHA-256 of the images into reviews of the official archive."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cleanset.classes import ClassTable
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import read_text, replace_file
from cleanset.review.file_format import parse_reviews
from cleanset.review.save import with_reviews
from cleanset.review.store import check_reviewer, check_reviews, read_reviews, review_file
from cleanset.tables import INDEX, read_table


def bind_reviews(edition: Edition, reviewer: str | None) -> int:
    """Replace `official` by the SHA-256 of the image in the reviews of one reviewer (None: all reviewers); return how
    many.

    Every review is checked before the first file is written; each file is written whole or not at all. Raises
    CleansetError unless the edition's images come from the official archive.
    """
    params = read_params(edition.folder)
    if not images_are_official(edition, params.dataset.images):
        raise CleansetError(
            f"{edition.params_yaml}: dataset.images {params.dataset.images} is not a tar with the MD5 of the official "
            f"archive in {edition.raw_md5}; expected that archive, whose image ids name bytes: bind the reviews in an "
            "edition that has it, and bring them here"
        )
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    votes = read_reviews(edition.reviews, classes)
    check_reviews(votes, index, classes, params.review.min_crop_pixels, official_images=True)
    files = sorted(
        {
            review_file(edition.reviews, name, vote.wnid, classes)
            for by_reviewer in votes.values()
            for name, vote in by_reviewer.items()
            if vote.review.is_official and reviewer in (None, name)
        }
    )
    if reviewer is not None:
        check_reviewer(reviewer)
        if not (edition.reviews / reviewer).is_dir():
            raise CleansetError(
                f"{edition.reviews / reviewer}: missing; expected the folder of a reviewer: correct --reviewer"
            )
    digests = dict(zip(index["image_id"].tolist(), index["sha256"].tolist(), strict=True))
    return sum(_bind_file(path, digests, classes) for path in files)


def _bind_file(path: Path, digests: Mapping[str, str], classes: ClassTable) -> int:
    """Bind the reviews in one file; return how many."""
    with locked(path.parent):
        text = read_text(path, "save it as UTF-8")
        bound, count = bound_text(text, path.stem, digests, str(path), classes=classes)
        if count:
            replace_file(path, bound.encode())
    return count


def bound_text(text: str, wnid: str, digests: Mapping[str, str], where: str, *, classes: ClassTable) -> tuple[str, int]:
    """The text of a review file with the SHA-256 of each image in place of `official`, and the number of images bound.

    `digests`: by image id. Every other byte stays. Raises CleansetError, naming `where`, as `with_reviews` does.
    """
    votes = parse_reviews(text, wnid, where, classes)
    official = [vote for vote in votes if vote.review.is_official]
    bound = {vote.image_id: replace(vote.review, sha256=digests[vote.image_id]) for vote in official}
    return with_reviews(text, wnid, bound, where), len(official)
