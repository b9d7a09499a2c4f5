"""The analysis of a study's ratings, and its result as tables."""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cleanset.errors import CleansetError
from cleanset.review import look_again
from cleanset.review.agreement import Agreement, Counts, overall
from cleanset.statistics.shares import wilson
from cleanset.studies.realness.equivalence import ALPHA, BOUND, Equivalence, equivalence
from cleanset.studies.realness.exclusions import ExclusionLimits, Exclusions, exclusions, leave_out
from cleanset.studies.realness.mixed import Degrees, MixedFit, RandomTerms, fit
from cleanset.studies.realness.ordinal import OrdinalFit, fit_ordinal
from cleanset.studies.realness.published_formula import PublishedFormula, published_formula
from cleanset.studies.realness.ratings import KINDS, SCALE, ImageKind, Rating, Stimulus, StudyAnswers

MIN_RATINGS = 5
"""Minimum number of ratings of an image for its majority to count."""


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """Mean and standard deviation (of a sample: n - 1; None for one rating) of n ratings of one type."""

    ratings: int
    mean: float | None
    deviation: float | None


@dataclass(frozen=True, slots=True)
class ImageRatings:
    """An image's number of ratings, number of negative ones (taken for modified), and mean."""

    kind: ImageKind
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
class RatingAgreements:
    """Agreement of people on images: on the rating, and on whether it is negative."""

    rating: Agreement
    negative: Agreement


def summary(ratings: Iterable[int]) -> RatingSummary:
    """Mean and deviation of ratings, from sums of integers, so that they are the same on any machine."""
    values = list(ratings)
    count, total, squares = len(values), sum(values), sum(value * value for value in values)
    if not count:
        return RatingSummary(0, None, None)
    # exact in integers up to the division; a sum of squared deviations would depend on the order
    deviation = math.sqrt((squares - total * total / count) / (count - 1)) if count > 1 else None
    return RatingSummary(count, total / count, deviation)


def by_image(ratings: Sequence[Rating]) -> list[ImageRatings]:
    """Each image's ratings: the real ones first, by name."""
    found: dict[tuple[ImageKind, str], list[int]] = defaultdict(list)
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


def agreements(ratings: Sequence[Rating]) -> RatingAgreements:
    """The agreement on images that two people or more rated."""
    images = {name: row for row, name in enumerate(sorted({(each.kind, each.image) for each in ratings}))}
    counts: Counts = np.zeros((len(images), len(SCALE)), np.int64)
    for each in ratings:
        counts[images[each.kind, each.image], SCALE.index(each.rating)] += 1
    # 0, undecided, counts as not taken for modified
    negative = counts[:, : SCALE.index(0)].sum(axis=1)
    return RatingAgreements(overall(counts), overall(np.stack([negative, counts.sum(axis=1) - negative], axis=1)))


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Options of an analysis: the model's, the tests', and the limits of exclusions."""

    random: RandomTerms = "slopes"
    degrees: Degrees = "satterthwaite"
    bound: float = BOUND
    alpha: float = ALPHA
    min_ratings: int = MIN_RATINGS
    limits: ExclusionLimits = field(default_factory=ExclusionLimits)
    ordinal: bool = False


@dataclass(frozen=True, slots=True)
class Analysis:
    """Results of an analysis; `exclusions` are already applied to everything else.

    `published`: what the published formula makes of the ratings; None but for one file of the published form.
    `ordinal`: None unless asked for.
    """

    settings: AnalysisSettings
    exclusions: Exclusions
    people: int
    summaries: Mapping[ImageKind, RatingSummary]
    agreements: Mapping[ImageKind, RatingAgreements]
    images: tuple[ImageRatings, ...]
    fit: MixedFit
    equivalence: Equivalence
    published: PublishedFormula | None = None
    ordinal: OrdinalFit | None = None

    @property
    def enough(self) -> int:
        """Number of real images with enough ratings."""
        return sum(each.kind == "real" and each.ratings >= self.settings.min_ratings for each in self.images)

    @property
    def taken_for_modified(self) -> list[ImageRatings]:
        """The real images with enough ratings that most people take for modified."""
        return taken_for_modified(self.images, self.settings.min_ratings)


def analyse(answers: StudyAnswers, settings: AnalysisSettings, list_sizes: Mapping[str, int] | None = None) -> Analysis:
    """Analyse all answers; `list_sizes`: number of trials of each list of the plan.

    Raises CleansetError if everyone is excluded, or if no model can be fitted to the ratings that remain.
    """
    excluded = exclusions(answers, settings.limits, list_sizes)
    ratings = leave_out(answers, excluded.people).ratings
    if answers.ratings and not ratings:
        raise CleansetError(_all_excluded(answers, excluded))
    of_kind = {kind: [each for each in ratings if each.kind == kind] for kind in KINDS}
    values, people = [each.rating for each in ratings], [each.person for each in ratings]
    images, modified = [each.image for each in ratings], [each.kind == "modified" for each in ratings]
    model = fit(values, people, images, modified, settings.random, settings.degrees)
    return Analysis(
        settings,
        excluded,
        model.people,
        {kind: summary(each.rating for each in of_kind[kind]) for kind in KINDS},
        {kind: agreements(of_kind[kind]) for kind in KINDS},
        tuple(by_image(ratings)),
        model,
        equivalence(model.modified, settings.bound, settings.alpha),
        published_formula(ratings) if answers.published == 1 and not answers.trials else None,
        fit_ordinal(values, people, modified) if settings.ordinal else None,
    )


def _all_excluded(answers: StudyAnswers, excluded: Exclusions) -> str:
    people = len({each.person for each in answers.ratings})
    rules = ", ".join(f"{rule} {len(found)}" for rule, found in excluded.by_rule.items() if found)
    plan = "check that --plan is the plan of these answers, or " if answers.trials else ""
    return (
        f"the ratings: all {people:,} people who rated images are excluded, by rule: {rules}; expected some who are "
        f"not: {plan}allow more (cleanset study analyse --help)"
    )


def images_csv(images: Iterable[ImageRatings], key: Iterable[Stimulus] = ()) -> str:
    """Images with their share of negative ratings and its interval; `key`: of the plan, for the wnids."""
    wnids = {(each.kind, each.image): each.wnid for each in key}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(look_again.COLUMNS)
    for each in images:
        numbers = (each.share, *each.interval, each.mean)
        counted = (each.kind, each.image, wnids.get((each.kind, each.image), ""), each.ratings, each.negative)
        writer.writerow((*counted, *(f"{number:.4f}" for number in numbers)))
    return out.getvalue()
