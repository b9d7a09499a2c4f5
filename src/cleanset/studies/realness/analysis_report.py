"""`cleanset study analyse`: the analysis of a study's files of ratings or answers, written as files and as text."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.evaluation.table import Cell, MeasureTable, cell
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.files import new_folder, write_text
from cleanset.plumbing.json_files import write_json
from cleanset.plumbing.validation import first_names
from cleanset.review.opinions import look_again_columns
from cleanset.statistics.formats import counted, decimal, interval_text, p_value, rounded, rounded_p
from cleanset.statistics.raters import MIN_RATED
from cleanset.studies.realness.analysis import (
    Analysis,
    AnalysisSettings,
    ImageRatings,
    ShownSizes,
    analyse,
    taken_for_modified,
)
from cleanset.studies.realness.exclusions import CHECK_RULES
from cleanset.studies.realness.mixed import Effect
from cleanset.studies.realness.plan import read_trials
from cleanset.studies.realness.plan_files import KEY, TRIALS, read_plan
from cleanset.studies.realness.protocol import SHOWN_MILLISECONDS, protocol_in_words
from cleanset.studies.realness.ratings import (
    IMAGE_KINDS,
    Stimulus,
    class_column_of,
    parse_key,
    read_ratings,
    texts_of,
)

RESULT = "analysis.json"
"""File of `--out` with all numbers."""

IMAGES_CSV = "images.csv"
"""File of `--out` with every image."""

LOOK_AGAIN = "look_again.csv"
"""File of `--out` with the real images that most people take for modified."""

REPORT_DIGITS = 4
"""Decimals of a result; further ones differ between machines."""
MIN_IMAGES_OF_KIND = 5
"""Images of each kind from which the model's intervals keep their promise, in simulations (docs/study.md)."""
MAX_TOLD = 20
"""Rows left out that are listed."""
FORMULAS = {
    "slopes": "rating ~ type + (1 + type | person) + (1 + type | image)",
    "intercepts": "rating ~ type + (1 | person) + (1 | image)",
}


def images_csv(images: Iterable[ImageRatings], key: Iterable[Stimulus], class_column: str) -> str:
    """Images with their share of negative ratings and its interval; `key`: the plan's key, for the classes."""
    wnids = {(each.kind, each.image): each.wnid for each in key}
    rows = (
        (each.kind, each.image, wnids.get((each.kind, each.image), ""), each.ratings, each.negative,
         *(decimal(number, 4) for number in (each.share, *each.interval, each.mean)))
        for each in images
    )  # fmt: skip
    return csv_text(look_again_columns(class_column), rows)


def analyse_files(
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
            lists = read_trials(files.trials, str(plan / TRIALS))
            sizes = {str(number): len(trials) for number, trials in lists.items()}
    if files is not None and settings.limits.comprehension is None:
        limits = replace(settings.limits, comprehension=files.protocol.failed_pairs_allowed)
        settings = replace(settings, limits=limits)
    analysis = analyse(answers, settings, sizes, None if files is None else files.protocol)
    if out is not None:
        with new_folder(out) as folder:
            folder.mkdir()
            stimuli = () if key is None else tuple(key.values())
            column = class_column_of("" if files is None else files.key)
            write_json(folder / RESULT, _rounded(content(analysis)))
            write_text(folder / IMAGES_CSV, images_csv(analysis.images, stimuli, column))
            write_text(folder / LOOK_AGAIN, images_csv(taken_for_modified(analysis.enough), stimuli, column))
    return analysis


def analysis_json(analysis: Analysis) -> str:
    """All numbers, rounded to REPORT_DIGITS; degrees of freedom are null if they are infinite."""
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
    return effect._asdict() | {"t": effect.estimate / effect.standard_error, "interval": effect.interval(0.95)}


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return rounded(value, REPORT_DIGITS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {
            key: rounded_p(each, REPORT_DIGITS) if key.startswith("p_") or key == "p" else _rounded(each)
            for key, each in value.items()
        }
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def analysis_text(analysis: Analysis) -> Group:
    """The results as text of at most 80 columns."""
    tests = analysis.equivalence
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
        Text(f"p {p_value(tests.p)}, {100 * (1 - 2 * tests.alpha):g} % interval {interval_text(tests.interval, 3)}"),
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
    few = [counted(count, f"{kind} image") for kind, count in counts.items() if count < MIN_IMAGES_OF_KIND]
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
    return [
        f"ordinal model, log-odds: {decimal(found.effect, 3)} (95 % {interval_text(found.interval, 3)})",
        f"odds ratio {decimal(found.odds_ratio, 3)}; mean difference that it implies: {decimal(found.difference, 3)}",
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
        lines.append(f"ratings before {SHOWN_MILLISECONDS} ms, too early to see an image: {analysis.fast:,}, kept")
    if analysis.protocol is not None:
        changed = f"; {analysis.revised:,} answers were changed" if analysis.protocol.revision else ""
        lines.append(f"protocol: {protocol_in_words(analysis.protocol)}{changed}")
    if analysis.shown is not None:
        lines += _sizes(analysis.shown)
    found = analysis.exclusions
    if not found.checked and found.by_rule.keys() <= CHECK_RULES.keys():
        return [*lines, "no checks among the ratings: nobody excluded"]
    rules = ", ".join(f"{rule} {len(people)}" for rule, people in found.by_rule.items())
    lines.append(f"excluded by rule: {rules}, of {analysis.people + len(found.people):,} people")
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
        return ["the size at which images were shown is not known"]
    sizes = ", ".join(f"{size} ({count:,} ratings)" for size, count in shown.sizes.items())
    unknown = f"; not known of {shown.unknown:,}" if shown.unknown else ""
    ratios = ", ".join(f"{ratio} ({count:,})" for ratio, count in shown.pixel_ratios.items())
    lines = [f"images shown at {sizes} device pixels{unknown}; pixel ratios: {ratios}"]
    if shown.widths_mm:
        widths = ", ".join(f"{width} mm ({count:,})" for width, count in shown.widths_mm.items())
        lines.append(f"widths on screens that were measured: {widths}")
    if shown.darkened:
        lines.append(f"on pages whose colours the browser had replaced: {shown.darkened:,} ratings")
    return lines


def _summaries(analysis: Analysis) -> RenderableType:
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
            *(cell(each, factor=1, digits=3, problem="too few ratings") for each in values),
            *(
                cell(
                    *each, factor=1, digits=2, problem=f"fewer than {MIN_RATED} images rated twice, or one rating alone"
                )
                for each in coefficients
            ),
        ]
        rows.append(((kind,), cells))
    titles = ("n", "mean", "sd", "agreement", "alpha", "sign, kappa", "sign, AC1")
    return MeasureTable(("images",), titles, rows).in_terminal("\n")


def _shown(effect: Effect) -> str:
    degrees = "normal" if math.isinf(effect.degrees) else f"df {decimal(effect.degrees, 1)}"
    shown = f"{decimal(effect.estimate, 3)} (95 % {interval_text(effect.interval(0.95), 3)})"
    return f"{shown}, se {decimal(effect.standard_error, 3)}, {degrees}"
