"""What ratings show without a model: means, the share of negative ratings by image, agreement."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cleanset.review.agreement import Agreement, Counts, overall
from cleanset.statistics.shares import wilson
from cleanset.studies.realness.ratings import SCALE, Kind, Rating

MIN_RATINGS = 5
"""Of an image, before people are said to take it for modified."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and standard deviation (of a sample: n - 1; None for one rating) of n ratings of one type."""

    ratings: int
    mean: float | None
    deviation: float | None


@dataclass(frozen=True, slots=True)
class ImageRatings:
    """How an image was rated: how often, how often negatively (taken for modified), and the mean."""

    kind: Kind
    image: str
    ratings: int
    negative: int
    mean: float

    @property
    def share(self) -> float:
        """The share of negative ratings, 0 to 1."""
        return self.negative / self.ratings

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share, Wilson's."""
        return wilson(self.negative, self.ratings)

    @property
    def is_taken_for_modified(self) -> bool:
        """Whether more than half of the ratings are negative."""
        return 2 * self.negative > self.ratings


@dataclass(frozen=True, slots=True)
class Agreements:
    """Agreement of people on images: on the rating, and on whether it is negative."""

    rating: Agreement
    negative: Agreement


def summary(ratings: Iterable[int]) -> Summary:
    """Mean and deviation of some ratings, from sums of whole numbers: the same on any machine."""
    values = list(ratings)
    count, total, squares = len(values), sum(values), sum(value * value for value in values)
    if not count:
        return Summary(0, None, None)
    deviation = math.sqrt((squares - total * total / count) / (count - 1)) if count > 1 else None
    return Summary(count, total / count, deviation)


def by_image(ratings: Sequence[Rating]) -> list[ImageRatings]:
    """Each image's ratings: the real ones first, by name."""
    found: dict[tuple[Kind, str], list[int]] = defaultdict(list)
    for each in ratings:
        found[each.kind, each.image].append(each.rating)
    order = sorted(found, key=lambda key: (key[0] != "real", key[1]))
    return [
        ImageRatings(*key, len(values), sum(value < 0 for value in values), sum(values) / len(values))
        for key in order
        for values in [found[key]]
    ]


def taken_for_modified(images: Iterable[ImageRatings], min_ratings: int = MIN_RATINGS) -> list[ImageRatings]:
    """The real images with a negative majority, of those with enough ratings; the largest share first, then by name."""
    found = [each for each in images if each.kind == "real" and each.ratings >= min_ratings]
    return sorted(
        (each for each in found if each.is_taken_for_modified),
        key=lambda each: (-each.share, -each.ratings, each.image),
    )


def agreements(ratings: Sequence[Rating]) -> Agreements:
    """The agreement on images that two people or more rated."""
    images = {name: row for row, name in enumerate(sorted({(each.kind, each.image) for each in ratings}))}
    counts: Counts = np.zeros((len(images), len(SCALE)), np.int64)
    for each in ratings:
        counts[images[each.kind, each.image], SCALE.index(each.rating)] += 1
    negative = counts[:, : SCALE.index(0)].sum(axis=1)
    return Agreements(overall(counts), overall(np.stack([negative, counts.sum(axis=1) - negative], axis=1)))
