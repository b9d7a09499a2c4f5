"""The analysis of a study's answers: people excluded, means, agreement, images taken for modified, model and tests."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import AtLeastOne
from cleanset.review.agreement import Agreement, VerdictCounts, overall
from cleanset.statistics.basics import most_first
from cleanset.statistics.formats import decimal
from cleanset.statistics.raters import Coefficient, ordinal_alpha
from cleanset.statistics.shares import wilson
from cleanset.studies.realness.equivalence import ALPHA, BOUND, Alpha, Bound, Equivalence, equivalence
from cleanset.studies.realness.exclusions import ExclusionLimits, Exclusions, exclusions, leave_out
from cleanset.studies.realness.mixed import Degrees, MixedFit, RandomTerms, fit
from cleanset.studies.realness.ordinal import OrdinalFit, fit_ordinal
from cleanset.studies.realness.protocol import SHOWN_MILLISECONDS, Protocol
from cleanset.studies.realness.ratings import IMAGE_KINDS, SCALE, Answer, AnswerKind, ImageKind, StudyAnswers

MIN_RATINGS = 5
"""Minimum number of ratings of an image for its majority to count."""


class PublishedFormula(NamedTuple):
    """Random effects of images in the published formula, and numbers of both a real and a modified image.

    Read as R reads it, the formula is rating ~ type + (1 + type | pid) + (1 + type | image_id), and the published files
    number the real and the modified images each from 1. So a real and a modified image of one number are taken for the
    same image, and lme4 refuses the model where the images have as many random effects as there are ratings. `mixed`
    avoids both by taking the images of the two types for different ones.

    `stops`: whether lme4 refuses the model, "number of observations <= number of random effects".
    """

    ratings: int
    random_effects: int
    shared_numbers: int
    stops: bool


def published_formula(ratings: Iterable[Answer]) -> PublishedFormula:
    """Random effects and shared numbers in one study's ratings."""
    rows = list(ratings)
    real, modified = ({each.image for each in rows if each.kind == kind} for kind in IMAGE_KINDS)
    effects = 2 * len(real | modified)
    return PublishedFormula(len(rows), effects, len(real & modified), len(rows) <= effects)


class RatingSummary(NamedTuple):
    """Mean and standard deviation (of a sample: n - 1; None for one rating) of n ratings of one type."""

    ratings: int
    mean: float | None
    deviation: float | None


@dataclass(frozen=True, slots=True)
class ImageRatings:
    """An image's number of ratings, number of negative ones (taken for modified), and mean."""

    kind: AnswerKind
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


@dataclass(frozen=True, slots=True)
class RatingAgreements:
    """Agreement of people on images: on the rating, and on whether it is negative."""

    rating: Agreement
    negative: Agreement
    ordinal: Coefficient | None
    """Krippendorff's alpha of the rating, whose scale is ordered; None from too few images."""


def summary(ratings: Iterable[int]) -> RatingSummary:
    """Mean and deviation of ratings, computed exactly and rounded once, so that they are the same on any machine."""
    values = list(map(float, ratings))
    deviation = stdev(values) if len(values) > 1 else None
    return RatingSummary(len(values), mean(values) if values else None, deviation)


def by_image(ratings: Sequence[Answer]) -> list[ImageRatings]:
    """Each image's ratings: the real ones first, by name."""
    found: dict[tuple[AnswerKind, str], list[int]] = defaultdict(list)
    for each in ratings:
        found[each.kind, each.image].append(each.rating)
    return [
        ImageRatings(
            kind=kind,
            image=image,
            ratings=len(values),
            negative=sum(value < 0 for value in values),
            mean=sum(values) / len(values),
        )
        for (kind, image), values in sorted(found.items(), key=lambda each: (each[0][0] != "real", each[0][1]))
    ]


def taken_for_modified(images: Iterable[ImageRatings]) -> list[ImageRatings]:
    """The images with a negative majority, the largest share first, then by name."""
    # half is not a majority
    found = (each for each in images if 2 * each.negative > each.ratings)
    return sorted(found, key=lambda each: (-each.share, -each.ratings, each.image))


def agreements(ratings: Sequence[Answer]) -> RatingAgreements:
    """The agreement on images that two people or more rated."""
    images = {name: row for row, name in enumerate(sorted({(each.kind, each.image) for each in ratings}))}
    counts: VerdictCounts = np.zeros((len(images), len(SCALE)), np.int64)
    for each in ratings:
        counts[images[each.kind, each.image], SCALE.index(each.rating)] += 1
    # 0, undecided, counts as not taken for modified
    negative = counts[:, : SCALE.index(0)].sum(axis=1)
    return RatingAgreements(
        rating=overall(counts),
        negative=overall(np.stack([negative, counts.sum(axis=1) - negative], axis=1)),
        ordinal=ordinal_alpha(counts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSizes:
    """How many ratings were given to images of each size on a screen."""

    sizes: Mapping[str, int]
    """Ratings by width x height in device pixels, most first."""

    pixel_ratios: Mapping[str, int]
    """Ratings by device pixels for each CSS pixel, most first."""

    unknown: int
    """Ratings without a size."""

    widths_mm: Mapping[str, int] = field(default_factory=dict)
    """Ratings by width in whole millimetres, most first, of screens that were measured."""

    darkened: int = 0
    """Ratings on a page whose colours the browser had replaced, as in an automatic dark mode."""


def shown_sizes(answers: StudyAnswers) -> ShownSizes | None:
    """The sizes at which images were rated; None for ratings that no page took."""
    views = [each.view for each in answers.trials if each.kind in IMAGE_KINDS]
    if not views:
        return None
    known = [each for each in views if each is not None]
    sizes = Counter(f"{each.shown_width} x {each.shown_height}" for each in known)
    ratios = Counter(f"{each.pixel_ratio:g}" for each in known)
    widths = Counter(decimal(each.shown_width / each.pixels_per_mm, 0) for each in known if each.pixels_per_mm)
    return ShownSizes(
        sizes=most_first(sizes),
        pixel_ratios=most_first(ratios),
        unknown=len(views) - len(known),
        widths_mm=most_first(widths),
        darkened=sum(each.darkened for each in known),
    )


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Options of an analysis: the model's, the tests', and the limits of exclusions."""

    random: RandomTerms = "slopes"
    degrees: Degrees = "satterthwaite"
    bound: Bound = BOUND
    alpha: Alpha = ALPHA
    min_ratings: AtLeastOne = MIN_RATINGS
    limits: ExclusionLimits = field(default_factory=ExclusionLimits)
    ordinal: bool = False


@dataclass(frozen=True, slots=True)
class Analysis:
    """Results of an analysis; `exclusions` are already applied to everything else but `invalid` and `revised`.

    `published`: the result of the published formula; None but for one file of the published form.
    `ordinal`: None unless asked for. `invalid`: the message of each row left out because it is not valid. `fast`: the
    number of ratings before the time after which today's page takes them. `shown`: widths for those who are not
    excluded; None for ratings that no page took. `protocol`: the plan's. `revised`: number of answers that were
    changed.
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
    invalid: tuple[str, ...] = ()
    fast: int = 0
    shown: ShownSizes | None = None
    protocol: Protocol | None = None
    revised: int = 0

    @property
    def enough(self) -> list[ImageRatings]:
        """The real images with enough ratings for their majority to count."""
        return [each for each in self.images if each.kind == "real" and each.ratings >= self.settings.min_ratings]


def analyse(
    answers: StudyAnswers,
    settings: AnalysisSettings,
    list_sizes: Mapping[str, int] | None = None,
    protocol: Protocol | None = None,
) -> Analysis:
    """Analyse all answers; `list_sizes`: number of trials of each list of the plan, which follows `protocol`.

    Raises CleansetError if everyone is excluded, or if no model can be fitted to the ratings that remain.
    """
    excluded = exclusions(answers, settings.limits, list_sizes)
    kept = leave_out(answers, excluded.people)
    ratings = kept.ratings
    if answers.ratings and not ratings:
        raise CleansetError(_all_excluded(answers, excluded))
    of_kind = {kind: [each for each in ratings if each.kind == kind] for kind in IMAGE_KINDS}
    values = [each.rating for each in ratings]
    people = [each.person for each in ratings]
    modified = [each.kind == "modified" for each in ratings]
    model = fit_ratings(ratings, settings.random, settings.degrees)
    return Analysis(
        settings=settings,
        exclusions=excluded,
        people=model.people,
        summaries={kind: summary(each.rating for each in of_kind[kind]) for kind in IMAGE_KINDS},
        agreements={kind: agreements(of_kind[kind]) for kind in IMAGE_KINDS},
        images=tuple(by_image(ratings)),
        fit=model,
        equivalence=equivalence(model.modified, settings.bound, settings.alpha),
        published=published_formula(ratings) if answers.published == 1 and not answers.trials else None,
        ordinal=fit_ordinal(values, people, modified) if settings.ordinal else None,
        invalid=answers.invalid,
        fast=_too_fast(kept),
        shown=shown_sizes(kept),
        protocol=protocol,
        revised=answers.revised,
    )


def fit_ratings(
    ratings: Sequence[Answer], random: RandomTerms = "slopes", degrees: Degrees = "satterthwaite"
) -> MixedFit:
    """The mixed model of ratings. Raises CleansetError as `fit` does."""
    return fit(
        [each.rating for each in ratings],
        [each.person for each in ratings],
        [each.image for each in ratings],
        [each.kind == "modified" for each in ratings],
        random=random,
        degrees=degrees,
    )


def _too_fast(answers: StudyAnswers) -> int:
    times = [each.milliseconds for each in answers.trials if each.kind in IMAGE_KINDS]
    return sum(each is not None and each < SHOWN_MILLISECONDS for each in times)


def _all_excluded(answers: StudyAnswers, excluded: Exclusions) -> str:
    people = len({each.person for each in answers.ratings})
    rules = ", ".join(f"{rule} {len(found)}" for rule, found in excluded.by_rule.items() if found)
    plan = "check that --plan is the plan of these answers, or " if answers.trials else ""
    return (
        f"the ratings: all {people:,} people who rated images are excluded, by rule: {rules}; expected some who are "
        f"not: {plan}allow more (cleanset study analyse --help)"
    )
