"""One class as a few words, and an oracle of what has to be asked, written without the queue's bookkeeping."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, combinations

from cleanset.review.queue import Candidate, DecideInClass
from cleanset.selection.fill import UNREVIEWED, Decision

STEPS = (
    ("top5", "clean"), ("top5", "crop"),
    ("reserve", "clean"), ("reserve", "crop"),
    ("relaxed", "clean"), ("relaxed", "crop"),
)  # fmt: skip
"""In the order in which a class is filled."""

DECISIONS = {
    "clean": Decision("clean"),
    "crop": Decision("crop", "watermark", (0, 0, 9, 9)),
    "reject": Decision("reject", "blur"),
    "undecided": UNREVIEWED,
    "conflict": Decision("undecided", "conflict"),
    "too_few": Decision("undecided", "too_few_reviewers"),
    "boxless": Decision("undecided", "box_unknown"),
}

Ranked = tuple[tuple[str, str], ...]
"""One model's candidates by rank: image id and tier."""


def candidates_of(ranked: Ranked) -> list[Candidate]:
    return [Candidate(image_id, tier, rank, 1 - rank / 100) for rank, (image_id, tier) in enumerate(ranked, start=1)]


def decide_by(verdicts: Mapping[str, str]) -> DecideInClass:
    """An image that is not among the verdicts is unreviewed."""
    return lambda image_id: DECISIONS[verdicts.get(image_id, "undecided")]


# The oracle


def kept(ranked: Ranked, verdicts: Mapping[str, str], places: int) -> list[str]:
    """What fills the class: step after step, by rank."""
    ids = [image_id for step in STEPS for image_id, tier in ranked if (tier, verdicts.get(image_id)) == step]
    return ids[:places]


@cache
def is_known(ranked: Ranked, verdicts: tuple[str, ...], places: int) -> list[str] | None:
    """What fills the class if that is the same whatever the undecided verdicts will be, else None."""
    if "undecided" not in verdicts:
        return kept(
            ranked, {image_id: verdict for (image_id, _), verdict in zip(ranked, verdicts, strict=True)}, places
        )
    place = verdicts.index("undecided")
    ways = [
        is_known(ranked, (*verdicts[:place], verdict, *verdicts[place + 1 :]), places)
        for verdict in ("clean", "crop", "reject")
    ]
    return ways[0] if ways[0] == ways[1] == ways[2] else None


def fewest(models: Sequence[tuple[Ranked, Mapping[str, str]]], places: int) -> int:
    """The size of the smallest set of images whose verdicts alone say what fills the class, for every model.

    Each model comes with the true verdicts, as they count for it. All sets are tried.
    """
    ids = sorted({image_id for ranked, _ in models for image_id, _ in ranked})
    subsets = chain.from_iterable(combinations(ids, size) for size in range(len(ids) + 1))
    return next(len(asked) for asked in subsets if all(_enough(*model, asked, places) for model in models))


def _enough(ranked: Ranked, truth: Mapping[str, str], asked: Sequence[str], places: int) -> bool:
    seen = tuple(truth[image_id] if image_id in asked else "undecided" for image_id, _ in ranked)
    return is_known(ranked, seen, places) is not None


def must_be_asked(ranked: Ranked, truth: Mapping[str, str], places: int) -> set[str]:
    """The images that are kept in the end, and those that would be if they alone were clean instead."""
    return set(kept(ranked, truth, places)) | {
        image_id for image_id, _ in ranked if image_id in kept(ranked, {**truth, image_id: "clean"}, places)
    }
