"""Gold items: images with a known verdict, mixed in unseen, and the answers that reviewers gave to them.

A gold item is shown under the id of the image that it was made from, with other bytes. An answer to it lies among the
reviewer's other verdicts and differs from them in nothing but the SHA-256, which `reviews/gold.csv` lists.
It never decides anything, but shows how many flaws the reviewer finds: sensitivity and specificity with intervals.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cleanset.classes import ClassOfKey, ClassTable
from cleanset.csv_files import csv_text, parse_rows
from cleanset.dataset.folder import ImageId
from cleanset.files import is_there, read_text
from cleanset.review.verdicts import Review, Vote, votes_that
from cleanset.statistics.finite import exact_interval, likelihood_ratio
from cleanset.validation import EmptyIsNone, matching, one_of
from cleanset.vocabulary import REASONS

GOLD_KEY = "gold.csv"
"""The file in `reviews/` that lists the gold items with their verdicts."""

GOLD_COLUMNS = ("image_id", "sha256", "reason", "source")
_REMEDY = "correct the line, or make the items with cleanset review gold"

Key = tuple[int, str]
"""Class index and image id."""


@dataclass(frozen=True, slots=True)
class GoldItem:
    """An image with a known verdict. `reason`: why it is flawed; None for a clean one.

    `source`: where the verdict comes from: a flaw that was drawn into the image, a published verdict, three reviewers.
    """

    class_index: ClassOfKey
    image_id: ImageId
    sha256: Annotated[str, matching("[0-9a-f]{64}", "a SHA-256 of 64 hexadecimal digits")]
    reason: Annotated[str | None, one_of(*REASONS, None), EmptyIsNone]
    source: Annotated[str, one_of("planted", "published", "settled")]

    @property
    def key(self) -> Key:
        """Class index and image id."""
        return self.class_index, self.image_id

    @property
    def is_flawed(self) -> bool:
        """Whether the known verdict is another than clean."""
        return self.reason is not None


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A reviewer's verdict on a gold item."""

    reviewer: str
    item: GoldItem
    review: Review

    @property
    def is_correct(self) -> bool:
        """Whether the verdict is clean for a clean item, and any other for a flawed one."""
        return (self.review.verdict == "clean") != self.item.is_flawed


GoldKey = Mapping[Key, GoldItem]
"""The gold items by class index and image id."""


def read_gold_key(reviews: Path, classes: ClassTable) -> dict[Key, GoldItem]:
    """The gold items that `reviews/gold.csv` lists; empty without the file. Raises CleansetError for a bad line."""
    path = reviews / GOLD_KEY
    if not is_there(path):
        return {}
    return parse_gold_key(read_text(path, "save it as UTF-8"), str(path), classes)


def parse_gold_key(text: str, where: str, classes: ClassTable) -> dict[Key, GoldItem]:
    """The gold items in the text of a gold.csv. Raises CleansetError, naming `where` and the line."""
    columns = (classes.key_column, *GOLD_COLUMNS)
    rows = parse_rows(text, columns, GoldItem, where, remedy=_REMEDY, key=("image_id",), context=classes)
    return {item.key: item for _, item in rows}


def gold_key_text(items: Iterable[GoldItem], classes: ClassTable) -> str:
    """The text of a gold.csv, sorted by class and image id."""
    rows = [
        (classes.keys[item.class_index], item.image_id, item.sha256, item.reason, item.source)
        for item in sorted(items, key=lambda item: item.key)
    ]
    return csv_text((classes.key_column, *GOLD_COLUMNS), rows)


def gold_file(folder: Path, image_id: str) -> Path:
    """The image of a gold item."""
    return folder / f"{image_id}.JPEG"


def is_gold_answer(vote: Vote, key: Key, golds: GoldKey) -> bool:
    """Whether a vote is on the gold item of its image, not on the image."""
    return key in golds and vote.review.sha256 == golds[key].sha256


def without_golds(votes: dict[Key, dict[str, Vote]], golds: GoldKey) -> dict[Key, dict[str, Vote]]:
    """The votes on the images themselves; the same object where no vote is on a gold item."""
    if not any(key in golds for key in votes):
        return votes
    return votes_that(votes, lambda key, _, vote: not is_gold_answer(vote, key, golds))


def gold_answers(votes: Mapping[Key, Mapping[str, Vote]], golds: GoldKey) -> list[GoldAnswer]:
    """The answers to gold items among votes, by class, image id and reviewer."""
    return [
        GoldAnswer(reviewer, golds[key], vote.review)
        for key, by_reviewer in sorted(votes.items())
        for reviewer, vote in sorted(by_reviewer.items())
        if is_gold_answer(vote, key, golds)
    ]


def chosen_golds(
    golds: GoldKey, known: Collection[Key], open_classes: Collection[int], answered: Collection[Key], wanted: int
) -> list[GoldItem]:
    """The gold items that one reviewer is shown: the answered ones, and further ones up to `wanted` in all.

    `known`: the images that the reviewer has judged, whose gold items would be recognised. A further item needs a class
    with another question to the reviewer (`open_classes`), one in each at most; flawed ones come first.
    """
    chosen = [golds[key] for key in sorted(answered)]
    taken = {item.class_index for item in chosen}
    further: dict[int, GoldItem] = {}
    for item in priority(golds.values()):
        if item.class_index in open_classes and item.class_index not in taken and item.key not in known:
            further.setdefault(item.class_index, item)
    # one for each class, then the flawed ones of all classes before the clean ones
    return chosen + priority(further.values())[: max(0, wanted - len(chosen))]


def priority(items: Iterable[GoldItem]) -> list[GoldItem]:
    """Flawed items before clean ones, each in an order that looks random and is always the same."""
    return sorted(items, key=lambda item: (not item.is_flawed, hashlib.sha256(item.sha256.encode()).digest()))


def number_of_golds(share: float, others: int) -> int:
    """The number of gold items that make up `share` of the shown images, beside `others`."""
    return round(share / (1 - share) * others)


def place_among(item: GoldItem, role: str, places: int) -> int:
    """The place of a gold item among a model's first images of its class, 0 to `places` - 1; always the same."""
    return int(hashlib.sha256(f"place {role} {item.sha256}".encode()).hexdigest(), 16) % max(1, places)


ACCEPTABLE_MISSES = 0.15
"""Share of missed flaws with which a reviewer counts as careful."""

MANY_MISSES = 0.30
"""Share of missed flaws with which a reviewer is to be found."""

# evidence that counts: it is reached wrongly by 1 in 100 at most, however often one looks
ALARM = 100.0

Finding = Literal["misses many", "careful", "not known yet"]


@dataclass(frozen=True, slots=True)
class GoldScore:
    """`correct` of `golds` gold items were judged as is known."""

    correct: int
    golds: int

    @property
    def share(self) -> float | None:
        """The share that was judged correctly; None without a gold item."""
        return self.correct / self.golds if self.golds else None

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval (Clopper and Pearson)."""
        return exact_interval(self.correct, self.golds)


@dataclass(frozen=True, slots=True)
class Calibration:
    """One reviewer's answers to gold items.

    `sensitivity`: of the flawed ones, also by reason; `specificity`: of the clean ones. Any verdict but clean finds a
    flaw, whatever reason it gives.
    """

    reviewer: str
    sensitivity: GoldScore
    specificity: GoldScore
    by_reason: Mapping[str, GoldScore]

    @property
    def against(self) -> float:
        """The evidence that more than ACCEPTABLE_MISSES are missed: an e-value, valid whenever one looks."""
        return evidence_of_misses(self.sensitivity.golds - self.sensitivity.correct, self.sensitivity.golds)

    @property
    def in_favour(self) -> float:
        """The evidence that fewer than MANY_MISSES are missed, likewise."""
        return 1 / self.against

    @property
    def finding(self) -> Finding:
        """Which of the two has reached ALARM."""
        if self.against >= ALARM:
            return "misses many"
        return "careful" if self.in_favour >= ALARM else "not known yet"


def evidence_of_misses(missed: int, golds: int) -> float:
    """The likelihood of the misses at MANY_MISSES, divided by that at ACCEPTABLE_MISSES.

    The sequential probability ratio test of A. Wald (1945).
    """
    return likelihood_ratio(missed, golds, MANY_MISSES, ACCEPTABLE_MISSES)


def calibrations(answers: Iterable[GoldAnswer]) -> list[Calibration]:
    """The calibration of each reviewer who has answered a gold item, by name."""
    by_reviewer: dict[str, list[GoldAnswer]] = {}
    for answer in answers:
        by_reviewer.setdefault(answer.reviewer, []).append(answer)
    return [_calibration(reviewer, by_reviewer[reviewer]) for reviewer in sorted(by_reviewer)]


def _calibration(reviewer: str, answers: Sequence[GoldAnswer]) -> Calibration:
    flawed = [answer for answer in answers if answer.item.is_flawed]
    clean = [answer for answer in answers if not answer.item.is_flawed]
    of_reasons = {reason: [answer for answer in flawed if answer.item.reason == reason] for reason in REASONS}
    by_reason = {reason: _share(of_reason) for reason, of_reason in of_reasons.items() if of_reason}
    return Calibration(reviewer, _share(flawed), _share(clean), by_reason)


def _share(answers: Sequence[GoldAnswer]) -> GoldScore:
    return GoldScore(sum(answer.is_correct for answer in answers), len(answers))
