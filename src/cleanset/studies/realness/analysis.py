"""`cleanset study analyse`: the analysis of a study's ratings or answers, as files and text."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.csv_files import csv_text, parse_rows
from cleanset.errors import CleansetError
from cleanset.files import new_folder, write_text
from cleanset.measure.table import Cell, MeasureTable, cell
from cleanset.review.agreement import Agreement, VerdictCounts, overall
from cleanset.review.opinions import look_again_columns
from cleanset.statistics.raters import Coefficient, ordinal_alpha
from cleanset.statistics.shares import wilson
from cleanset.studies.realness.equivalence import ALPHA, BOUND, Alpha, Bound, Equivalence, equivalence, interval
from cleanset.studies.realness.mixed import Degrees, Effect, MixedFit, RandomTerms, fit
from cleanset.studies.realness.ordinal import OrdinalFit, fit_ordinal
from cleanset.studies.realness.plan_files import KEY, SHOWN_MILLISECONDS, TRIALS, read_plan
from cleanset.studies.realness.protocol import Protocol, protocol_in_words
from cleanset.studies.realness.published_formula import PublishedFormula, published_formula
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
    ShownSizes,
    Stimulus,
    StudyAnswers,
    class_column_of,
    exclusions,
    leave_out,
    parse_key,
    read_ratings,
    shown_sizes,
    texts_of,
)
from cleanset.validation import first_names

MIN_RATINGS = 5
"""Minimum number of ratings of an image for its majority to count."""


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
    return RatingAgreements(
        rating=overall(counts),
        negative=overall(np.stack([negative, counts.sum(axis=1) - negative], axis=1)),
        ordinal=ordinal_alpha(counts),
    )


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


@dataclass(frozen=True, slots=True)
class Analysis:
    """Results of an analysis; `exclusions` are already applied to everything else.

    `published`: the result of the published formula; None but for one file of the published form.
    `ordinal`: None unless asked for. `invalid`: the message of each row left out because it is not valid. `fast`: the
    number of answers before the time after which today's page takes them. `shown`: of those who are not excluded; None
    for ratings that no page took. `protocol`: of the plan. `revised`: number of answers that were changed.
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
    images = [each.image for each in ratings]
    modified = [each.kind == "modified" for each in ratings]
    model = fit(values, people, images, modified, random=settings.random, degrees=settings.degrees)
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
        fast=sum(each.milliseconds is not None and each.milliseconds < SHOWN_MILLISECONDS for each in answers.trials),
        shown=shown_sizes(kept),
        protocol=protocol,
        revised=answers.revised,
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
MIN_IMAGES_OF_KIND = 5
"""Images of each kind from which the model's intervals keep their promise: bench/realness.py simulates it."""
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
        answers = read_ratings(texts, key, files.shown_milliseconds, revision=files.protocol.revision)
        if settings.limits.min_share:
            sizes = list_sizes(files.trials, str(plan / TRIALS))
    if files is not None and settings.limits.comprehension is None:
        limits = replace(settings.limits, comprehension=files.protocol.failed_pairs_allowed)
        settings = replace(settings, limits=limits)
    analysis = analyse(answers, settings, sizes, None if files is None else files.protocol)
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
    """All numbers, rounded to REPORT_DIGITS; degrees of freedom are null where they are infinite."""
    return json.dumps(_rounded(content(analysis)), indent=2)


def content(analysis: Analysis) -> dict[str, Any]:
    """The results as nested tables, in full precision."""
    settings = analysis.settings
    taken = taken_for_modified(analysis.enough)
    optional: dict[str, dict[str, object]] = {}
    if analysis.ordinal is not None:
        optional["ordinal"] = asdict(analysis.ordinal)
    if analysis.published is not None:
        optional["published_formula"] = analysis.published._asdict()
    if analysis.shown is not None:
        optional["shown"] = asdict(analysis.shown)
    if analysis.protocol is not None:
        optional["protocol"] = {"name": protocol_in_words(analysis.protocol), **asdict(analysis.protocol)}
        optional["revised_answers"] = {"replaced": analysis.revised}
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
            "variances": asdict(analysis.fit.variances),
            "reml_criterion": analysis.fit.criterion,
            "images": analysis.fit.images,
        },
        "equivalence": asdict(analysis.equivalence),
        "warnings": warnings_of(analysis),
        "taken_for_modified": {
            "min_ratings": settings.min_ratings,
            "images": len(analysis.enough),
            "negative_majority": len(taken),
        },
        **optional,
    }


def _effect(effect: Effect) -> dict[str, object]:
    return effect._asdict() | {"t": effect.estimate / effect.standard_error, "interval": interval(effect, 0.95)}


def _rounded(value: object) -> object:
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
    parts: list[RenderableType] = [
        *(Text(line) for line in _people(analysis)),
        Text(),
        _summaries(analysis),
        Text(),
        Text(FORMULAS[analysis.settings.random]),
        Text(f"modified - real: {_shown(analysis.fit.modified)}"),
        *(Text(line, style="red") for line in warnings_of(analysis)),
        Text(f"two one-sided tests, bounds ±{tests.bound:g}, alpha {tests.alpha:g}: {verdict}"),
        Text(f"p {tests.p:.4f}, {100 * (1 - 2 * tests.alpha):g} % interval {low:.3f} to {high:.3f}"),
        *(Text(line) for line in (*_ordinal_lines(analysis), *_published_lines(analysis))),
        Text(
            f"{len(taken_for_modified(analysis.enough)):,} of {len(analysis.enough):,} real images with "
            f"{analysis.settings.min_ratings} ratings or more have a negative majority"
        ),
    ]
    return Group(*parts)


def warnings_of(analysis: Analysis) -> list[str]:
    """What makes the model's degrees of freedom, intervals and verdict unreliable, in sentences."""
    counts = {kind: sum(each.kind == kind for each in analysis.images) for kind in IMAGE_KINDS}
    few = [
        f"{count} {kind} {'image' if count == 1 else 'images'}"
        for kind, count in counts.items()
        if count < MIN_IMAGES_OF_KIND
    ]
    if not few:
        return []
    return [
        f"{' and '.join(few)}: their variance, and with it degrees of freedom, intervals and the verdict, is a guess; "
        f"expected {MIN_IMAGES_OF_KIND} or more of each kind"
    ]


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
    if analysis.protocol is not None:
        changed = f"; {analysis.revised:,} answers were changed" if analysis.protocol.revision else ""
        lines.append(f"protocol: {protocol_in_words(analysis.protocol)}{changed}")
    if analysis.shown is not None:
        lines += _sizes(analysis.shown)
    found = analysis.exclusions
    if not found.checked and found.by_rule.keys() <= CHECK_RULES.keys():
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


def _sizes(shown: ShownSizes) -> list[str]:
    """At which sizes the images were rated, if any are known."""
    if not shown.sizes:
        return ["at which size images were shown is not known"]
    sizes = ", ".join(f"{size} ({count:,} ratings)" for size, count in shown.sizes.items())
    unknown = f"; not known of {shown.unknown:,}" if shown.unknown else ""
    ratios = ", ".join(f"{ratio} ({count:,})" for ratio, count in shown.pixel_ratios.items())
    lines = [f"images shown at {sizes} device pixels{unknown}; pixel ratios: {ratios}"]
    if shown.widths_mm:
        widths = ", ".join(f"{width} mm ({count:,})" for width, count in shown.widths_mm.items())
        lines.append(f"widths on screens that were measured: {widths}")
    return lines


def _summaries(analysis: Analysis) -> Table:
    rows = []
    for kind in IMAGE_KINDS:
        found = analysis.summaries[kind]
        agreed = analysis.agreements[kind]
        values = (found.mean, found.deviation, agreed.rating.agreement)
        alpha = (None, None) if agreed.ordinal is None else (agreed.ordinal.value, agreed.ordinal.interval)
        negative = agreed.negative
        coefficients = (alpha, (negative.kappa, negative.kappa_interval), (negative.ac1, negative.ac1_interval))
        cells = [
            Cell(f"{found.ratings:,}"),
            *(cell(each, factor=1, digits=3) for each in values),
            *(cell(*each, factor=1, digits=2) for each in coefficients),
        ]
        rows.append(((kind,), cells))
    titles = ("n", "mean", "sd", "agreement", "alpha", "sign, kappa", "sign, AC1")
    return MeasureTable(("images",), titles, rows).in_terminal("\n")


def _shown(effect: Effect) -> str:
    degrees = "normal" if math.isinf(effect.degrees) else f"df {effect.degrees:.1f}"
    low, high = interval(effect, 0.95)
    return f"{effect.estimate:.3f} (95 % {low:.3f} to {high:.3f}), se {effect.standard_error:.3f}, {degrees}"
