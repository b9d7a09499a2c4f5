"""Carry the verdicts of an older edition over into a new one if the reviewer saw the same; count the rest by reason."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cleanset.classes import ClassTable
from cleanset.dataset.folder import LabelledImages
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text, write_text
from cleanset.images.boxes import Box
from cleanset.review.gold import GoldKey, is_gold_answer
from cleanset.review.gold_files import read_gold_key
from cleanset.review.guidelines import GUIDELINES
from cleanset.review.save import with_reviews
from cleanset.review.store import Votes, read_votes, review_file
from cleanset.review.verdicts import Review, Vote


@dataclass(frozen=True, slots=True)
class OldReviews:
    """The verdicts of an edition, with the text of each file by reviewer and class key."""

    classes: ClassTable
    votes: Votes
    golds: GoldKey
    texts: Mapping[tuple[str, str], str]
    guidelines: str | None
    are_official: bool


def read_old_reviews(folder: Path) -> OldReviews:
    """The verdicts in the folder of an edition; every file is checked."""
    old = Edition(folder)
    params = read_params(folder)
    if params.dataset.is_own and not is_there(old.classes):
        raise CleansetError(f"{old.classes}: missing; expected the class table of the old edition: run dvc repro there")
    classes = old.read_classes()
    votes = read_votes(old.reviews, classes)
    texts = {
        (name, vote.wnid): read_text(review_file(old.reviews, name, vote.wnid, classes), "save it as UTF-8")
        for by_reviewer in votes.values()
        for name, vote in by_reviewer.items()
    }
    path = old.reviews / GUIDELINES
    guidelines = read_text(path, "save it as UTF-8") if is_there(path) else None
    return OldReviews(
        classes=classes,
        votes=votes,
        golds=read_gold_key(old.reviews, classes),
        texts=texts,
        guidelines=guidelines,
        are_official=images_are_official(old, params.dataset.images),
    )


def carry_over(old: OldReviews, new: Edition, images: LabelledImages | None, digests: Mapping[str, str]) -> str:
    """Write the verdicts that still hold into a new edition, and return how many, and why the others do not.

    `images`: the new edition's, if they are your own, and `digests`, their SHA-256 by image id; None for ImageNet's,
    whose archive need not be there yet: its MD5 in raw.md5 names the bytes.
    """
    min_crop_pixels = read_params(new.folder).review.min_crop_pixels
    find = _official_finder(old) if images is None else _finder(images, digests)
    left: Counter[str] = Counter()
    # by reviewer and class: applied together, since one image may have moved to the old name of another
    changes: dict[tuple[str, str], dict[str, Review | None]] = defaultdict(dict)
    votes = [(key, name, vote) for key, by_reviewer in old.votes.items() for name, vote in by_reviewer.items()]
    for key, reviewer, vote in votes:
        if is_gold_answer(vote, key, old.golds):
            image_id = None
            reason = "gold item"
        elif _is_too_small(vote.review.box, min_crop_pixels):
            image_id = None
            reason = "crop too small"
        else:
            image_id, reason = find(vote)
        of_file = changes[reviewer, vote.wnid]
        of_file.setdefault(vote.image_id, None)
        if image_id is None:
            left[reason] += 1
        else:
            of_file[image_id] = vote.review
    for (reviewer, wnid), of_file in changes.items():
        path = new.reviews / reviewer / f"{wnid}.yaml"
        text = with_reviews(old.texts[reviewer, wnid], wnid, of_file, str(path))
        if text:
            path.parent.mkdir(exist_ok=True)
            write_text(path, text)
        else:
            path.unlink(missing_ok=True)
    if old.guidelines is not None:
        write_text(new.reviews / GUIDELINES, old.guidelines)
    why = f"; not {', '.join(f'{count:,} ({reason})' for reason, count in sorted(left.items()))}" if left else ""
    return f"{len(votes) - left.total():,} of {len(votes):,} verdicts carried over{why}"


Find = Callable[[Vote], tuple[str | None, str]]
"""Maps a verdict to the id that its image has now, or None and the reason."""


def _official_finder(old: OldReviews) -> Find:
    """Finds images of the official archive, whose ids name their bytes."""

    def find(vote: Vote) -> tuple[str | None, str]:
        if old.are_official or vote.review.is_official:
            return vote.image_id, ""
        return None, "not of the official archive"

    return find


def _finder(images: LabelledImages, digests: Mapping[str, str]) -> Find:
    """Finds images by their bytes, also under another name."""
    ids: dict[tuple[int, str], list[str]] = defaultdict(list)
    for image_id, label in images.class_of.items():
        ids[label, digests[image_id]].append(image_id)

    def find(vote: Vote) -> tuple[str | None, str]:
        label = images.classes.indices.get(vote.wnid)
        if label is None:
            return None, "class not in the new edition"
        same = ids[label, vote.review.sha256]
        if vote.image_id in same:
            return vote.image_id, ""
        if len(same) == 1:
            return same[0], ""
        return None, "other bytes" if images.class_of.get(vote.image_id) == label else "image not in the class"

    return find


def _is_too_small(box: Box | None, min_crop_pixels: int) -> bool:
    return box is not None and min(box[2] - box[0], box[3] - box[1]) < min_crop_pixels
