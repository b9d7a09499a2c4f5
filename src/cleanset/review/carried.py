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
from cleanset.files import is_there, locked, read_text, replace_file, write_text
from cleanset.images.boxes import Box, known_box
from cleanset.review.gold import GoldKey, is_gold_answer
from cleanset.review.gold_files import read_gold_key
from cleanset.review.guidelines import GUIDELINES
from cleanset.review.save import with_reviews
from cleanset.review.store import read_votes, review_files, votes_in
from cleanset.review.verdicts import Review, Vote


@dataclass(frozen=True, slots=True)
class OldReviews:
    """The reviews of an edition, every file of which has been checked; the verdicts are read when they are carried."""

    edition: Edition
    classes: ClassTable
    golds: GoldKey
    has_votes: bool
    """Whether there is any verdict, answers to gold items included."""

    guidelines: str | None
    are_official: bool
    """Whether the images are those of ImageNet's official archive."""


def read_old_reviews(folder: Path) -> OldReviews:
    """The reviews in the folder of an edition; every file is checked."""
    old = Edition(folder)
    params = read_params(folder)
    if params.dataset.is_own and not is_there(old.classes):
        raise CleansetError(f"{old.classes}: missing; expected the class table of the old edition: run dvc repro there")
    classes = old.read_classes()
    path = old.reviews / GUIDELINES
    return OldReviews(
        edition=old,
        classes=classes,
        golds=read_gold_key(old.reviews, classes),
        has_votes=bool(read_votes(old.reviews, classes)),
        guidelines=read_text(path, "save it as UTF-8") if is_there(path) else None,
        are_official=images_are_official(old, params.dataset.images),
    )


def carry_over(old: OldReviews, new: Edition, images: LabelledImages | None, digests: Mapping[str, str]) -> str:
    """Write the verdicts that still hold into a new edition, and return how many, and why the others do not.

    `images`: the new edition's, if they are your own, and `digests`, their SHA-256 by image id; None for ImageNet's,
    whose archive need not be there yet: its MD5 in raw.md5 names the bytes.
    """
    carried = _Carried(old, images, digests, read_params(new.folder).review.min_crop_pixels, keeps_gold_answers=False)
    for source in review_files(old.edition.reviews, old.classes):
        path = new.reviews / source.relative_to(old.edition.reviews)
        if text := carried.text_of(source):
            path.parent.mkdir(exist_ok=True)
            with locked(path.parent):
                replace_file(path, text.encode())
    if old.guidelines is not None:
        write_text(new.reviews / GUIDELINES, old.guidelines)
    return carried.summary


def keep_what_holds(old: OldReviews, images: LabelledImages, digests: Mapping[str, str]) -> str:
    """Remove the verdicts of an edition that no longer hold, and return as `carry_over` does.

    Reviewers may save meanwhile: each file is read and written under the lock that the review page takes, and only if
    something changes in it. Answers to gold items stay: they are on images of their own.
    """
    min_crop_pixels = read_params(old.edition.folder).review.min_crop_pixels
    carried = _Carried(old, images, digests, min_crop_pixels, keeps_gold_answers=True)
    for path in review_files(old.edition.reviews, old.classes):
        with locked(path.parent):
            # listed before; somebody may have removed its last verdict
            if not path.exists():
                continue
            before = read_text(path, "save it as UTF-8")
            after = carried.text_of(path)
            if after != before:
                replace_file(path, after.encode())
    return carried.summary


class _Carried:
    """Counts the verdicts that hold while it goes through the files of reviews."""

    def __init__(
        self,
        old: OldReviews,
        images: LabelledImages | None,
        digests: Mapping[str, str],
        min_crop_pixels: int,
        *,
        keeps_gold_answers: bool,
    ) -> None:
        self._old = old
        self._find = _official_finder(old) if images is None else _finder(images, digests)
        self._min_crop_pixels = min_crop_pixels
        self._keeps_gold_answers = keeps_gold_answers
        self._total = 0
        self._left: Counter[str] = Counter()

    @property
    def summary(self) -> str:
        """How many verdicts hold, and why the others do not."""
        counts = ", ".join(f"{count:,} ({reason})" for reason, count in sorted(self._left.items()))
        why = f"; not {counts}" if counts else ""
        return f"{self._total - self._left.total():,} of {self._total:,} verdicts carried over{why}"

    def text_of(self, path: Path) -> str:
        """The text of a review file with the verdicts that hold, under the ids that their images have now."""
        text = read_text(path, "save it as UTF-8")
        stay: set[str] = set()
        # applied together, since one image may have moved to the old name of another
        moved: dict[str, Review] = {}
        gone: set[str] = set()
        for vote in votes_in(text, path, self._old.classes):
            key = (self._old.classes.indices[vote.wnid], vote.image_id)
            is_answer = is_gold_answer(vote, key, self._old.golds)
            if is_answer and self._keeps_gold_answers:
                stay.add(vote.image_id)
                continue
            self._total += 1
            image_id, reason = (None, "gold item") if is_answer else self._place_of(vote)
            if image_id is None:
                self._left[reason] += 1
            if image_id == vote.image_id:
                stay.add(image_id)
            else:
                gone.add(vote.image_id)
                if image_id is not None:
                    moved[image_id] = vote.review
        changes: dict[str, Review | None] = dict.fromkeys(gone)
        changes |= {image_id: review for image_id, review in moved.items() if image_id not in stay}
        return with_reviews(text, path.stem, changes, str(path)) if changes else text

    def _place_of(self, vote: Vote) -> tuple[str | None, str]:
        if _is_too_small(known_box(vote.review.box), self._min_crop_pixels):
            return None, "crop too small"
        return self._find(vote)


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
        same = ids.get((label, vote.review.sha256), [])
        if vote.image_id in same:
            return vote.image_id, ""
        if len(same) == 1:
            return same[0], ""
        return None, "other bytes" if images.class_of.get(vote.image_id) == label else "image not in the class"

    return find


def _is_too_small(box: Box | None, min_crop_pixels: int) -> bool:
    return box is not None and min(box[2] - box[0], box[3] - box[1]) < min_crop_pixels
