"""Carry the verdicts of an older edition over into a new one if the reviewer saw the same; count the rest by reason."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cleanset.dataset.folder import LabelledImages
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official, use_classes_of
from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text, sha256, write_text
from cleanset.images.boxes import Box
from cleanset.review.gold import is_gold_answer, read_gold_key
from cleanset.review.save import with_reviews
from cleanset.review.store import GUIDELINES, read_votes, review_file
from cleanset.review.verdicts import Vote
from cleanset.validation import normal_text

NO_CLASS = "class not in the new edition"
NO_IMAGE = "image not in the class"
OTHER_BYTES = "other bytes"
OTHER_ARCHIVE = "not of the official archive"
GOLD = "gold item"
SMALL_CROP = "crop too small"


@dataclass(frozen=True, slots=True)
class OldReviews:
    """The verdicts of an edition, with the text of each file by reviewer and class key."""

    votes: tuple[tuple[str, Vote], ...]
    gold_answers: frozenset[tuple[str, str]]
    """By reviewer and place in the file: the verdicts that were on a gold item."""
    texts: Mapping[tuple[str, str], str]
    guidelines: str | None
    are_official: bool


def read_old_reviews(folder: Path) -> OldReviews:
    """The verdicts in the folder of an edition, whose classes are in use then; every file is checked."""
    old = Edition(folder)
    params = read_params(folder)
    if params.dataset.is_own and not is_there(old.classes):
        raise CleansetError(f"{old.classes}: missing; expected the class table of the old edition: run dvc repro there")
    use_classes_of(folder)
    found, golds = read_votes(old.reviews), read_gold_key(old.reviews)
    votes = [(name, vote) for by_reviewer in found.values() for name, vote in by_reviewer.items()]
    texts = {
        (name, vote.wnid): read_text(review_file(old.reviews, name, vote.wnid), "save it as UTF-8")
        for name, vote in votes
    }
    answers = {
        (name, vote.where)
        for key, by_reviewer in found.items()
        for name, vote in by_reviewer.items()
        if is_gold_answer(vote, key, golds)
    }
    path = old.reviews / GUIDELINES
    guidelines = read_text(path, "save it as UTF-8") if is_there(path) else None
    official = images_are_official(old, params.dataset.images)
    return OldReviews(tuple(votes), frozenset(answers), texts, guidelines, official)


def carry_over(old: OldReviews, new: Edition, images: LabelledImages | None) -> str:
    """Write the verdicts that still hold into a new edition, and return how many, and why the others do not.

    `images`: the new edition's, if they are your own; None for ImageNet's, whose archive need not be there
    yet: its MD5 in raw.md5 names the bytes.
    """
    min_crop_pixels = read_params(new.folder).review.min_crop_pixels
    find = None if images is None else _finder(images)
    left: Counter[str] = Counter()
    texts = dict(old.texts)
    for reviewer, vote in old.votes:
        if (reviewer, vote.where) in old.gold_answers:
            reason, image_id = GOLD, None
        elif _is_too_small(vote.review.box, min_crop_pixels):
            reason, image_id = SMALL_CROP, None
        elif find is None:
            same = old.are_official or vote.review.is_official
            reason, image_id = OTHER_ARCHIVE, vote.image_id if same else None
        else:
            reason, image_id = find(vote)
        # older editions have keys of classes as their folders are called
        key, new_key = (reviewer, vote.wnid), (reviewer, normal_text(vote.wnid))
        if image_id == vote.image_id and key == new_key:
            continue
        texts[key] = with_reviews(texts[key], vote.wnid, {vote.image_id: None}, vote.where)
        if image_id is None:
            left[reason] += 1
        else:
            texts[new_key] = with_reviews(texts.get(new_key, ""), new_key[1], {image_id: vote.review}, vote.where)
    for (reviewer, wnid), text in texts.items():
        path = new.reviews / reviewer / f"{wnid}.yaml"
        if text:
            path.parent.mkdir(exist_ok=True)
            write_text(path, text)
        else:
            path.unlink(missing_ok=True)
    if old.guidelines is not None:
        write_text(new.reviews / GUIDELINES, old.guidelines)
    why = f"; not {', '.join(f'{count:,} ({reason})' for reason, count in sorted(left.items()))}" if left else ""
    return f"{len(old.votes) - left.total():,} of {len(old.votes):,} verdicts carried over{why}"


def _finder(images: LabelledImages) -> Callable[[Vote], tuple[str, str | None]]:
    """A function that gives the id of the image that a verdict was on, and the reason if there is none."""
    ids: dict[int, list[str]] = defaultdict(list)
    for image_id, label in images.class_of.items():
        ids[label].append(image_id)

    # the images of a class are read when the first verdict asks for it
    @cache
    def digests_of(key: str) -> dict[str, str]:
        return {image_id: _digest(images, image_id) for image_id in ids[images.classes.indices[key]]}

    def find(vote: Vote) -> tuple[str, str | None]:
        key = normal_text(vote.wnid)
        if key not in images.classes.indices:
            return NO_CLASS, None
        digests = digests_of(key)
        if digests.get(vote.image_id) == vote.review.sha256:
            return "", vote.image_id
        # the same bytes under another name: the image has moved
        moved = [image_id for image_id, digest in digests.items() if digest == vote.review.sha256]
        if len(moved) == 1:
            return "", moved[0]
        return (OTHER_BYTES if vote.image_id in digests else NO_IMAGE), None

    return find


def _digest(images: LabelledImages, image_id: str) -> str:
    try:
        return sha256(images.locations[image_id].read())
    except OSError as error:
        raise CleansetError(f"{image_id}: {error.strerror}; expected a readable image") from None


def _is_too_small(box: Box | None, min_crop_pixels: int) -> bool:
    return box is not None and min(box[2] - box[0], box[3] - box[1]) < min_crop_pixels
