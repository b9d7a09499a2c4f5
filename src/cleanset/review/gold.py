"""Gold items: images with a known verdict, mixed in unseen, and the answers that reviewers gave to them.

A gold item is shown under the id of the image that it was made from, with other bytes. An answer to it is among the
reviewer's other verdicts and differs from them in nothing but the SHA-256, which `reviews/gold.csv` lists.
It never decides anything, but shows how many flaws the reviewer finds: sensitivity and specificity with intervals.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from cleanset.classes import ClassOfKey
from cleanset.image_ids import ListedId
from cleanset.plumbing.validation import SHA256_FORM, EmptyIsNone, matching, one_of
from cleanset.review.verdicts import Clean, ImageKey, Review, Vote, votes_that
from cleanset.vocabulary import REASON_FORM


@dataclass(frozen=True, slots=True)
class GoldItem:
    """An image with a known verdict. `reason`: why it is flawed; None for a clean one.

    `source`: where the verdict comes from: a flaw that was drawn into the image, a published verdict, three reviewers.
    """

    class_index: ClassOfKey
    image_id: ListedId
    sha256: Annotated[str, matching(SHA256_FORM.pattern, "a SHA-256 of 64 hexadecimal digits")]
    reason: Annotated[Annotated[str, matching(REASON_FORM, "a reason, or nothing")] | None, EmptyIsNone]
    source: Annotated[str, one_of("planted", "published", "settled")]

    @property
    def key(self) -> ImageKey:
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
        return isinstance(self.review.verdict, Clean) != self.item.is_flawed


GoldKey = Mapping[ImageKey, GoldItem]
"""The gold items by class index and image id."""


def is_gold_answer(vote: Vote, key: ImageKey, golds: GoldKey) -> bool:
    """Whether a vote is on the gold item of its image, not on the image."""
    return key in golds and vote.review.sha256 == golds[key].sha256


def without_golds(votes: dict[ImageKey, dict[str, Vote]], golds: GoldKey) -> dict[ImageKey, dict[str, Vote]]:
    """The votes on the images themselves; the same object if no vote is on a gold item."""
    if not any(key in golds for key in votes):
        return votes
    return votes_that(votes, lambda key, _, vote: not is_gold_answer(vote, key, golds))


def gold_answers(votes: Mapping[ImageKey, Mapping[str, Vote]], golds: GoldKey) -> list[GoldAnswer]:
    """The answers to gold items among votes, by class, image id and reviewer."""
    return [
        GoldAnswer(reviewer, golds[key], vote.review)
        for key, by_reviewer in sorted(votes.items())
        for reviewer, vote in sorted(by_reviewer.items())
        if is_gold_answer(vote, key, golds)
    ]


def chosen_golds(
    golds: GoldKey,
    known: Collection[ImageKey],
    open_classes: Collection[int],
    answered: Collection[ImageKey],
    wanted: int,
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
    """The number of gold items that make up `share` of the shown images, next to `others`."""
    return round(share / (1 - share) * others)


def place_among(item: GoldItem, role: str, places: int) -> int:
    """The place of a gold item among a model's first images of its class, 0 to `places` - 1; always the same."""
    return int(hashlib.sha256(f"place {role} {item.sha256}".encode()).hexdigest(), 16) % max(1, places)
