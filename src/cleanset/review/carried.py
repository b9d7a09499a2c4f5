"""Carry the verdicts of an older edition over into a new one if the reviewer saw the same; count the rest by reason."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cleanset.classes import ClassName, ClassTable
from cleanset.dataset.folder import LabelledImages
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, known_box
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import is_there, read_text, replace_file, write_text
from cleanset.review.gold import GoldKey, is_gold_answer
from cleanset.review.gold_files import GOLD_KEY, gold_key_text, read_gold_key
from cleanset.review.guidelines import GUIDELINES
from cleanset.review.renamed import RenamedClasses, check_answered
from cleanset.review.save import with_key, with_reviews
from cleanset.review.store import Votes, read_votes, review_files, votes_in
from cleanset.review.verdicts import Rejected, Review, Vote


@dataclass(frozen=True, slots=True)
class OldReviews:
    """The reviews of an edition, all files checked; the verdicts are read when they are carried."""

    edition: Edition
    classes: ClassTable
    """The classes that reviews may be of."""
    classes_before: ClassTable
    """The classes of the images, as the last dvc repro found them."""
    golds: GoldKey
    reviewed: Mapping[str, frozenset[str]]
    """The SHA-256 of all images with a verdict by class, those of gold items included."""

    guidelines: str | None
    are_official: bool
    """Whether the images are those of ImageNet's official archive."""


def read_old_reviews(folder: Path, further: ClassTable | None = None) -> OldReviews:
    """The reviews in the folder of an edition; every file is checked.

    `further`: classes that reviews may have in addition to those of the last dvc repro, under their new names.
    """
    old = Edition(folder)
    params = read_params(folder)
    if params.dataset.is_own and not is_there(old.classes):
        raise CleansetError(f"{old.classes}: missing; expected the class table of the old edition: run dvc repro there")
    before = old.read_classes()
    classes = before if further is None or before.is_imagenet else _both(before, further)
    path = old.reviews / GUIDELINES
    return OldReviews(
        edition=old,
        classes=classes,
        classes_before=before,
        golds=read_gold_key(old.reviews, classes),
        reviewed=_reviewed(read_votes(old.reviews, classes)),
        guidelines=read_text(path, "save it as UTF-8") if is_there(path) else None,
        are_official=images_are_official(old, params.dataset.images),
    )


def _both(before: ClassTable, further: ClassTable) -> ClassTable:
    # unchanged: names that differ by case alone are refused in one table, not in two
    names = {each.key: each.name for table in (before, further) for each in table.names}
    return ClassTable(tuple(ClassName(index, key, names[key]) for index, key in enumerate(sorted(names))))


def _reviewed(votes: Votes) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for by_reviewer in votes.values():
        for vote in by_reviewer.values():
            found[vote.wnid].add(vote.review.sha256)
    return {key: frozenset(digests) for key, digests in found.items()}


@dataclass(frozen=True, slots=True)
class NewImages:
    """The images that verdicts are carried over to, if they are your own."""

    images: LabelledImages
    digests: Mapping[str, str]
    """The SHA-256 by image id."""
    renamed: RenamedClasses

    def check(self, old: OldReviews | None) -> None:
        """Raise CleansetError for classes that may have a new name, and have verdicts, without an answer in `renamed`.

        Also for an answer that does not go with the classes. None: no older reviews exist.
        """
        if old is None:
            return
        self.renamed.check(old.classes_before, self.images.classes)
        classes_of: dict[str, set[str]] = defaultdict(set)
        for image_id, label in self.images.class_of.items():
            classes_of[self.digests[image_id]].add(self.images.classes.keys[label])
        gone = {key: found for key, found in old.reviewed.items() if key not in self.images.classes.indices}
        check_answered(gone, classes_of, self.renamed, old.classes_before)


def carry_over(old: OldReviews, new: Edition, to: NewImages | None) -> str:
    """Write the verdicts that still hold into a new edition, and return how many, and why the others do not.

    `to`: None for ImageNet's images, whose archive need not be there yet: its MD5 in raw.md5 names the bytes.
    """
    carried = _Carried(old, to, read_params(new.folder).review.min_crop_pixels, keeps_gold_answers=False)
    for source in review_files(old.edition.reviews, old.classes):
        path = new.reviews / source.parent.name / carried.name_of(source)
        if text := carried.text_of(source):
            path.parent.mkdir(exist_ok=True)
            with locked(path.parent):
                replace_file(path, text.encode())
    if old.guidelines is not None:
        write_text(new.reviews / GUIDELINES, old.guidelines)
    return carried.summary


def keep_what_holds(old: OldReviews, to: NewImages) -> str:
    """Remove the verdicts of an edition that no longer hold, and return as `carry_over` does.

    Reviewers may save meanwhile: each file is read and written under the lock that the review page takes, and only if
    something changes in it. Answers to gold items stay: they are on images of their own. Raises CleansetError for two
    files of a class that has a new name.
    """
    min_crop_pixels = read_params(old.edition.folder).review.min_crop_pixels
    carried = _Carried(old, to, min_crop_pixels, keeps_gold_answers=True)
    for path in review_files(old.edition.reviews, old.classes):
        with locked(path.parent):
            # listed before; somebody may have removed its last verdict
            if not path.exists():
                continue
            before = read_text(path, "save it as UTF-8")
            after = carried.text_of(path)
            target = path.with_name(carried.name_of(path))
            if target != path and after:
                # a killed call may have written it
                if target.exists() and read_text(target, "save it as UTF-8") != after:
                    raise CleansetError(
                        f"{target}: there already, and so is {path}; expected one of them: remove the other"
                    )
                replace_file(target, after.encode())
            if target == path:
                if after != before:
                    replace_file(path, after.encode())
            elif not (target.exists() and path.samefile(target)):  # as two names that differ by case can be one file
                replace_file(path, b"")
    _rename_golds(old, to)
    new_names = (f"{before} is {after} in the reviews now" for before, after in to.renamed.new_keys.items() if after)
    return "\n".join([carried.summary, *(f"{each}: run dvc repro before they continue" for each in new_names)])


def _rename_golds(old: OldReviews, to: NewImages) -> None:
    """Give the gold items of a class with a new name this name."""
    keys = old.classes.keys
    items = [
        replace(item, class_index=old.classes.indices[to.renamed.key_of(keys[item.class_index])])
        for item in old.golds.values()
    ]
    if items != list(old.golds.values()):
        write_text(old.edition.reviews / GOLD_KEY, gold_key_text(items, old.classes))


class _Carried:
    """Counts the verdicts that hold while it goes through the files of reviews."""

    def __init__(
        self,
        old: OldReviews,
        to: NewImages | None,
        min_crop_pixels: int,
        *,
        keeps_gold_answers: bool,
    ) -> None:
        self._old = old
        self._find = _official_finder(old) if to is None else _finder(to)
        self._renamed = RenamedClasses() if to is None else to.renamed
        self._classes = old.classes if to is None else to.images.classes
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

    def name_of(self, path: Path) -> str:
        """The name that a review file has now: that of its class."""
        return f"{self._renamed.key_of(path.stem)}.yaml"

    def text_of(self, path: Path) -> str:
        """The text of a review file with the verdicts that hold, under the ids and class that their images have now."""
        text = read_text(path, "save it as UTF-8")
        stay: set[str] = set()
        # applied together, since one image may have moved to the old name of another
        moved: dict[str, Review] = {}
        gone: set[str] = set()
        changed: dict[str, Review] = {}
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
            review = self._of_todays_class(vote.review)
            if image_id == vote.image_id:
                stay.add(image_id)
                if review is not vote.review:
                    changed[image_id] = review
            else:
                gone.add(vote.image_id)
                if image_id is not None:
                    moved[image_id] = review
        changes: dict[str, Review | None] = dict.fromkeys(gone)
        changes |= {image_id: review for image_id, review in moved.items() if image_id not in stay} | changed
        after = with_reviews(text, path.stem, changes, str(path)) if changes else text
        new = self._renamed.key_of(path.stem)
        return after if new == path.stem or not after else with_key(after, path.stem, new, str(path))

    def _of_todays_class(self, review: Review) -> Review:
        """The review with the new name of its correct class, or without it if that class is gone."""
        verdict = review.verdict
        if not isinstance(verdict, Rejected) or verdict.correct_class is None:
            return review
        key = self._renamed.key_of(verdict.correct_class)
        if key == verdict.correct_class and key in self._classes.indices:
            return review
        return replace(review, verdict=replace(verdict, correct_class=key if key in self._classes.indices else None))

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


def _finder(to: NewImages) -> Find:
    """Finds images by their bytes, also under another name."""
    images = to.images
    ids: dict[tuple[int, str], list[str]] = defaultdict(list)
    for image_id, label in images.class_of.items():
        ids[label, to.digests[image_id]].append(image_id)

    def find(vote: Vote) -> tuple[str | None, str]:
        label = images.classes.indices.get(to.renamed.key_of(vote.wnid))
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
