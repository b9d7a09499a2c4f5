"""`cleanset study analyse`: the analysis of a study's ratings or answers, as files and text.

Equivalence is tested by two one-sided tests (D. J. Schuirmann, 1987): is an effect close enough to 0 to be irrelevant?

The published studies' formula is read as R reads it, rating ~ type + (1 + type | pid) + (1 + type | image_id), with the
published files, which number the real and the modified images each from 1. Two things follow that `mixed` avoids by
taking the images of the two types for different ones:

A cumulative link model of ratings, as a check of the linear one, which takes the scale's steps for equal.

A cumulative link model checks the linear one, which takes the steps of the scale as equal: logit P(rating <= k) =
threshold_k - effect * modified (McCullagh, "Regression Models for Ordinal Data", JRSS B 1980), fitted by statsmodels'
OrderedModel. It has no random effects: the standard error allows for correlated ratings of one person (clusters of
people), not for correlated ratings of one image.
"""

import json
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field
from rich.console import Group
from rich.table import Table
from rich.text import Text
from scipy.stats import t

from cleanset.csv_files import csv_text, parse_rows
from cleanset.errors import CleansetError, install_command
from cleanset.files import new_folder, write_text
from cleanset.measure.table import Cell, MeasureTable, cell
from cleanset.review.agreement import Agreement, VerdictCounts, overall
from cleanset.review.opinions import look_again_columns
from cleanset.statistics.paired import wilson
from cleanset.studies.realness.mixed import Degrees, Effect, MixedFit, RandomTerms, fit
from cleanset.studies.realness.plan_files import KEY, SHOWN_MILLISECONDS, TRIALS, read_plan
from cleanset.studies.realness.ratings import (
    CHECK_RULES,
    IMAGE_KINDS,
    SCALE,
    TRIAL_COLUMNS,
    Answer,
    AnswerKind,
    ExclusionLimits,
    Exclusions,
    ImageKind,
    Stimulus,
    StudyAnswers,
    class_column_of,
    exclusions,
    leave_out,
    parse_key,
    read_ratings,
    texts_of,
)
from cleanset.validation import first_names

BOUND = 0.2
"""Largest difference that counts as equivalent, in steps of the scale, as published (arXiv 2507.07776)."""
ALPHA = 0.05
Bound = Annotated[float, Field(ge=0.001, le=4)]
Alpha = Annotated[float, Field(ge=0.0001, le=0.4999)]


class Equivalence(NamedTuple):
    """The two one-sided tests of an effect against -bound and +bound.

    `p_above_lower_bound`: p-value of the null hypothesis that the effect is at most -bound; `p_below_upper_bound`: that
    it is at least +bound; `p`: the larger of the two. The interval has the level 1 - 2 alpha: it lies within the bounds
    exactly if the tests find equivalence.
    """

    bound: float
    alpha: float
    p_above_lower_bound: float
    p_below_upper_bound: float
    p: float
    interval: tuple[float, float]
    equivalent: bool


def equivalence(effect: Effect, bound: float = BOUND, alpha: float = ALPHA) -> Equivalence:
    """The two one-sided tests of an effect, with its degrees of freedom. Raises ValueError for a bound of 0 or less."""
    if bound <= 0 or not 0 < alpha < 0.5:
        raise ValueError(f"bound {bound}, alpha {alpha}; expected a bound above 0 and an alpha between 0 and 0.5")
    above = float(t.sf((effect.estimate + bound) / effect.standard_error, effect.degrees))
    below = float(t.sf((bound - effect.estimate) / effect.standard_error, effect.degrees))
    p = max(above, below)
    return Equivalence(bound, alpha, above, below, p, interval(effect, 1 - 2 * alpha), p < alpha)


def interval(effect: Effect, level: float) -> tuple[float, float]:
    """The confidence interval of an effect."""
    # with infinite degrees of freedom, scipy's t is the normal distribution
    half = float(t.ppf((1 + level) / 2, effect.degrees)) * effect.standard_error
    return effect.estimate - half, effect.estimate + half


class PublishedFormula(NamedTuple):
    """Random effects of images in the published formula, and numbers of both a real and a modified image.

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


MIN_CLUSTERED = 1e-3
"""Standard error by people, relative to the one for independent ratings, below which it counts as 0."""
_NOT_FITTED = (
    "the ratings: no ordinal model can be fitted to them; expected several people, and ratings of real and of modified "
    "images that overlap: leave out --ordinal"
)


class OrdinalFit(NamedTuple):
    """The effect of modified images in log-odds of a higher rating, its standard error, and the thresholds.

    `difference`: mean rating of modified minus real images that the model implies, in steps of the scale.
    `odds_ratio`: odds of a rating above any threshold, modified images to real ones. `interval`: the normal one of the
    effect, 95 %.
    """

    effect: float
    standard_error: float
    thresholds: tuple[float, ...]
    difference: float
    odds_ratio: float
    interval: tuple[float, float]


def fit_ordinal(ratings: Sequence[int], people: Sequence[str], modified: Sequence[bool]) -> OrdinalFit:
    """Fit the model to ratings, each with its person and the type of its image.

    Raises CleansetError without statsmodels, for a single person, for ratings of the two types that do not overlap, and
    if the fit does not converge.
    """
    try:
        from statsmodels.miscmodels.ordinal_model import OrderedModel
    except ImportError as error:
        raise CleansetError(
            f"--ordinal: statsmodels cannot be imported ({error}); {install_command('study')}"
        ) from None

    steps, codes = np.unique(np.asarray(ratings), return_inverse=True)
    types = np.asarray(modified, np.float64)
    groups = np.unique(np.asarray(people, object).astype(str), return_inverse=True)[1]
    real = codes[types == 0]
    changed = codes[types == 1]
    if len(set(groups.tolist())) < 2 or not len(real) or not len(changed):
        raise CleansetError(_NOT_FITTED)
    # without overlap the likelihood grows with the effect, without end
    if changed.max() <= real.min() or real.max() <= changed.min():
        raise CleansetError(_NOT_FITTED)
    model = OrderedModel(codes, types[:, None], distr="logit")
    with warnings.catch_warnings():
        # what they say is checked below
        warnings.simplefilter("ignore")
        found = model.fit(method="bfgs", disp=0, maxiter=500, cov_type="cluster", cov_kwds={"groups": groups})
    effect = float(found.params[0])
    deviation = float(found.bse[0])
    # the first and the last are infinite
    thresholds = model.transform_threshold_params(found.params)[1:-1]
    if not found.mle_retvals["converged"] or not np.isfinite([effect, deviation, *thresholds]).all():
        raise CleansetError(_NOT_FITTED)
    # the parts of people whose ratings are alike cancel, up to the search's tolerance
    if deviation < MIN_CLUSTERED * math.sqrt(found.normalized_cov_params[0, 0]):
        raise CleansetError(
            "the ratings: the ordinal model's standard error by people is 0, as people do not differ, and its interval "
            "would have no width; expected several people who rate differently: leave out --ordinal"
        )
    difference = _mean(steps, thresholds - effect) - _mean(steps, thresholds)
    ends = interval(Effect(effect, deviation, math.inf), 0.95)
    return OrdinalFit(effect, deviation, tuple(map(float, thresholds)), difference, math.exp(effect), ends)


def _mean(steps: npt.NDArray[np.int64], logits: npt.NDArray[np.float64]) -> float:
    """The mean rating for logits of P(rating <= k), k all steps but the last."""
    cumulative = np.concatenate([[0.0], 1 / (1 + np.exp(-logits)), [1.0]])
    return float(steps @ np.diff(cumulative))


MIN_RATINGS = 5
"""Minimum number of ratings of an image for its majority to count."""


class RatingSummary(NamedTuple):
    """Mean and standard deviation (of a sample: n - 1; None for one rating) of n ratings of one type."""

    ratings: int
    mean: float | None
    deviation: float | None


class ImageRatings(NamedTuple):
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
        ImageRatings(*key, len(values), sum(value < 0 for value in values), sum(values) / len(values))
        for key, values in sorted(found.items(), key=lambda each: (each[0][0] != "real", each[0][1]))
    ]


def taken_for_modified(images: Iterable[ImageRatings]) -> list[ImageRatings]:
    """The images with a negative majority, the largest share first, then by name."""
    # half is no majority
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
    return RatingAgreements(overall(counts), overall(np.stack([negative, counts.sum(axis=1) - negative], axis=1)))


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Options of an analysis: the model's, the tests', and the limits of exclusions."""

    random: RandomTerms = "slopes"
    degrees: Degrees = "satterthwaite"
    bound: Bound = BOUND
    alpha: Alpha = ALPHA
    min_ratings: Annotated[int, Field(ge=1)] = MIN_RATINGS
    limits: ExclusionLimits = field(default_factory=ExclusionLimits)
    ordinal: bool = False


class Analysis(NamedTuple):
    """Results of an analysis; `exclusions` are already applied to everything else.

    `published`: the result of the published formula; None but for one file of the published form.
    `ordinal`: None unless asked for. `invalid`: the message of each row left out because it is not valid. `fast`: the
    number of answers before the time after which today's page takes them.
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

    @property
    def enough(self) -> list[ImageRatings]:
        """The real images with enough ratings for their majority to count."""
        return [each for each in self.images if each.kind == "real" and each.ratings >= self.settings.min_ratings]


def analyse(answers: StudyAnswers, settings: AnalysisSettings, list_sizes: Mapping[str, int] | None = None) -> Analysis:
    """Analyse all answers; `list_sizes`: number of trials of each list of the plan.

    Raises CleansetError if everyone is excluded, or if no model can be fitted to the ratings that remain.
    """
    excluded = exclusions(answers, settings.limits, list_sizes)
    ratings = leave_out(answers, excluded.people).ratings
    if answers.ratings and not ratings:
        raise CleansetError(_all_excluded(answers, excluded))
    of_kind = {kind: [each for each in ratings if each.kind == kind] for kind in IMAGE_KINDS}
    values = [each.rating for each in ratings]
    people = [each.person for each in ratings]
    images = [each.image for each in ratings]
    modified = [each.kind == "modified" for each in ratings]
    model = fit(values, people, images, modified, settings.random, settings.degrees)
    return Analysis(
        settings,
        excluded,
        model.people,
        {kind: summary(each.rating for each in of_kind[kind]) for kind in IMAGE_KINDS},
        {kind: agreements(of_kind[kind]) for kind in IMAGE_KINDS},
        tuple(by_image(ratings)),
        model,
        equivalence(model.modified, settings.bound, settings.alpha),
        published_formula(ratings) if answers.published == 1 and not answers.trials else None,
        fit_ordinal(values, people, modified) if settings.ordinal else None,
        answers.invalid,
        sum(each.milliseconds is not None and each.milliseconds < SHOWN_MILLISECONDS for each in answers.trials),
    )


def _all_excluded(answers: StudyAnswers, excluded: Exclusions) -> str:
    people = len({each.person for each in answers.ratings})
    rules = ", ".join(f"{rule} {len(found)}" for rule, found in excluded.by_rule.items() if found)
    plan = "check that --plan is the plan of these answers, or " if answers.trials else ""
    return (
        f"the ratings: all {people:,} people who rated images are excluded, by rule: {rules}; expected some who are "
        f"not: {plan}allow more (cleanset study analyse --help)"
    )


def images_csv(images: Iterable[ImageRatings], key: Iterable[Stimulus], class_column: str) -> str:
    """Images with their share of negative ratings and its interval; `key`: of the plan, for the classes."""
    wnids = {(each.kind, each.image): each.wnid for each in key}
    rows = (
        (each.kind, each.image, wnids.get((each.kind, each.image), ""), each.ratings, each.negative,
         *(f"{number:.4f}" for number in (each.share, *each.interval, each.mean)))
        for each in images
    )  # fmt: skip
    return csv_text(look_again_columns(class_column), rows)


RESULT = "analysis.json"
"""File of `--out` with all numbers."""

IMAGES_CSV = "images.csv"
"""File of `--out` with every image."""

LOOK_AGAIN = "look_again.csv"
"""File of `--out` with the real images that most people take for modified."""

REPORT_DIGITS = 4
"""Decimals of a result; further ones differ between machines."""
MAX_TOLD = 20
"""Rows left out that are listed."""
FORMULAS = {
    "slopes": "rating ~ type + (1 + type | person) + (1 + type | image)",
    "intercepts": "rating ~ type + (1 | person) + (1 | image)",
}


def run(
    paths: Sequence[Path], settings: AnalysisSettings, plan: Path | None = None, out: Path | None = None
) -> Analysis:
    """Analyse the ratings in files; with `out`, a new or empty folder, write the results there."""
    texts = texts_of(paths)
    files = None
    key = None
    sizes = None
    if plan is None:
        answers = read_ratings(texts)
    else:
        files = read_plan(plan)
        key = parse_key(files.key, str(plan / KEY))
        answers = read_ratings(texts, key, files.shown_milliseconds or 0)
        if settings.limits.min_share:
            sizes = list_sizes(files.trials, str(plan / TRIALS))
    analysis = analyse(answers, settings, sizes)
    if out is not None:
        with new_folder(out) as folder:
            folder.mkdir()
            stimuli = () if key is None else tuple(key.values())
            column = class_column_of("" if files is None else files.key)
            write_text(folder / RESULT, as_json(analysis) + "\n")
            write_text(folder / IMAGES_CSV, images_csv(analysis.images, stimuli, column))
            write_text(folder / LOOK_AGAIN, images_csv(taken_for_modified(analysis.enough), stimuli, column))
    return analysis


def list_sizes(trials: str, where: str) -> dict[str, int]:
    """The number of trials of each list, by the list's number, from the text of a plan's lists."""
    rows = parse_rows(trials, TRIAL_COLUMNS, dict[str, str], where, remedy="name a plan's folder")
    return dict(Counter(cells["list"] for _, cells in rows))


def as_json(analysis: Analysis) -> str:
    """All numbers, rounded to DIGITS; degrees of freedom are null where they are infinite."""
    return json.dumps(_rounded(content(analysis)), indent=2)


def content(analysis: Analysis) -> dict[str, Any]:
    """The results as nested tables, in full precision."""
    settings = analysis.settings
    taken = taken_for_modified(analysis.enough)
    optional = {"ordinal": analysis.ordinal, "published_formula": analysis.published}
    return {
        "people": analysis.people,
        "invalid_rows": {"left_out": len(analysis.invalid), "first": list(analysis.invalid[:MAX_TOLD])},
        f"answers_before_{SHOWN_MILLISECONDS}_ms": analysis.fast,
        "excluded": analysis.exclusions.by_rule,
        "people_with_checks": analysis.exclusions.checked,
        "people_without_attention_checks": analysis.exclusions.without_attention,
        "lists_of_several_people": analysis.exclusions.repeated,
        "ratings": {kind: analysis.summaries[kind]._asdict() for kind in IMAGE_KINDS},
        "agreement": {kind: asdict(analysis.agreements[kind]) for kind in IMAGE_KINDS},
        "model": {
            "formula": FORMULAS[settings.random],
            "degrees_of_freedom": settings.degrees,
            "intercept": _effect(analysis.fit.intercept),
            "modified": _effect(analysis.fit.modified),
            "variances": analysis.fit.variances._asdict(),
            "reml_criterion": analysis.fit.criterion,
            "images": analysis.fit.images,
        },
        "equivalence": analysis.equivalence._asdict(),
        "taken_for_modified": {
            "min_ratings": settings.min_ratings,
            "images": len(analysis.enough),
            "negative_majority": len(taken),
        },
        **{name: found._asdict() for name, found in optional.items() if found is not None},
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return effect._asdict() | {"t": effect.estimate / effect.standard_error, "interval": interval(effect, 0.95)}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        # + 0.0 turns -0.0 into 0.0
        return round(value, REPORT_DIGITS) + 0.0 if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def as_text(analysis: Analysis) -> Group:
    """The results as text of at most 80 columns."""
    tests = analysis.equivalence
    low, high = tests.interval
    verdict = "equivalent" if tests.equivalent else "not shown to be equivalent"
    return Group(
        *(Text(line) for line in _people(analysis)),
        Text(),
        _summaries(analysis),
        Text(),
        Text(FORMULAS[analysis.settings.random]),
        Text(f"modified - real: {_shown(analysis.fit.modified)}"),
        Text(f"two one-sided tests, bounds ±{tests.bound:g}, alpha {tests.alpha:g}: {verdict}"),
        Text(f"p {tests.p:.4f}, {100 * (1 - 2 * tests.alpha):g} % interval {low:.3f} to {high:.3f}"),
        *(Text(line) for line in (*_ordinal_lines(analysis), *_published_lines(analysis))),
        Text(
            f"{len(taken_for_modified(analysis.enough)):,} of {len(analysis.enough):,} real images with "
            f"{analysis.settings.min_ratings} ratings or more have a negative majority"
        ),
    )


def _ordinal_lines(analysis: Analysis) -> list[str]:
    found = analysis.ordinal
    if found is None:
        return []
    low, high = found.interval
    return [
        f"ordinal model, log-odds: {found.effect:.3f} (95 % {low:.3f} to {high:.3f})",
        f"odds ratio {found.odds_ratio:.3f}; mean difference that it implies: {found.difference:.3f}",
    ]


def _published_lines(analysis: Analysis) -> list[str]:
    found = analysis.published
    if found is None or analysis.settings.random != "slopes":
        return []
    if found.stops:
        effects = f"{found.random_effects:,} effects of images, {found.ratings:,} ratings"
        return [f"the published formula stops in R: {effects}"]
    shared = f"the published formula takes real and modified images of {found.shared_numbers:,} numbers for one"
    return [shared] if found.shared_numbers else []


def _people(analysis: Analysis) -> list[str]:
    lines = [f"{analysis.people:,} people, {analysis.fit.images:,} images, {analysis.fit.ratings:,} ratings"]
    if analysis.invalid:
        lines.append(
            f"rows left out because they are not valid: {len(analysis.invalid):,}; the first: {analysis.invalid[0]}"
        )
    if analysis.fast:
        lines.append(f"answers before {SHOWN_MILLISECONDS} ms, too early to see an image: {analysis.fast:,}, kept")
    found = analysis.exclusions
    if not found.checked and len(found.by_rule) == len(CHECK_RULES):
        return [*lines, "no checks among the ratings: nobody excluded"]
    rules = ", ".join(f"{rule} {len(people)}" for rule, people in found.by_rule.items())
    lines.append(f"excluded by rule: {rules}; of {analysis.people + len(found.people):,} people")
    if found.without_attention and "unchecked" not in found.by_rule:
        lines.append(f"no attention check answered by {len(found.without_attention)}: --exclude min_attention=1")
    if found.repeated and "repeated_list" not in found.by_rule:
        lines.append(
            f"lists answered by several people: {first_names(list(found.repeated), 5)}: --exclude one_person_a_list=yes"
        )
    return lines


def _summaries(analysis: Analysis) -> Table:
    rows = []
    for kind in IMAGE_KINDS:
        found = analysis.summaries[kind]
        agreed = analysis.agreements[kind]
        values = (found.mean, found.deviation, agreed.rating.agreement, agreed.rating.kappa, agreed.negative.kappa)
        rows.append(((kind,), [Cell(f"{found.ratings:,}"), *(cell(each, factor=1, digits=3) for each in values)]))
    titles = ("n", "mean", "sd", "agreement", "kappa", "kappa of sign")
    return MeasureTable(("images",), titles, rows).in_terminal()


def _shown(effect: Effect) -> str:
    degrees = "normal" if math.isinf(effect.degrees) else f"df {effect.degrees:.1f}"
    low, high = interval(effect, 0.95)
    return f"{effect.estimate:.3f} (95 % {low:.3f} to {high:.3f}), se {effect.standard_error:.3f}, {degrees}"
