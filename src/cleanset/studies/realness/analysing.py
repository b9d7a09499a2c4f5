"""`cleanset study analyse`: reads ratings or answers, and writes the results of their analysis."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from cleanset.errors import CleansetError
from cleanset.files import new_folder, read_text, write_text
from cleanset.parsing import parse_csv
from cleanset.studies.realness.analysis import (
    Analysis,
    AnalysisSettings,
    analyse,
    images_csv,
    interval,
    taken_for_modified,
)
from cleanset.studies.realness.mixed import Effect
from cleanset.studies.realness.plan import TRIAL_COLUMNS
from cleanset.studies.realness.ratings import CHECK_RULES, KINDS, Stimulus, class_column_of, parse_key, read_ratings

RESULT, IMAGES, LOOK_AGAIN = "analysis.json", "images.csv", "look_again.csv"
"""Files of `--out`: all numbers, every image, and the real images that most people take for modified."""
DIGITS = 4
"""Decimals of a result; further ones differ between machines."""
MAX_TOLD = 20
"""Rows left out that are listed."""
MODELS = {
    "slopes": "rating ~ type + (1 + type | person) + (1 + type | image)",
    "intercepts": "rating ~ type + (1 | person) + (1 | image)",
}


def run(
    paths: Sequence[Path], settings: AnalysisSettings, plan: Path | None = None, out: Path | None = None
) -> Analysis:
    """Analyse the ratings in files; with `out`, a new or empty folder, write the results there."""
    text = "" if plan is None else read_text(plan / "key.csv", "expected a plan's folder")
    key = None if plan is None else parse_key(text, "key.csv")
    sizes = None if plan is None or not settings.limits.min_share else list_sizes(plan)
    analysis = analyse(read_ratings(texts_of(paths), key), settings, sizes)
    if out is not None:
        with new_folder(out) as folder:
            folder.mkdir()
            write_results(folder, analysis, () if key is None else key.values(), class_column_of(text))
    return analysis


def list_sizes(plan: Path) -> dict[str, int]:
    """The number of trials of each list of a plan, by the list's number."""
    path = plan / "trials.csv"
    text = read_text(path, "expected a plan's folder")
    return dict(Counter(row["list"] for _, row in parse_csv(text, TRIAL_COLUMNS, str(path))))


def texts_of(paths: Iterable[Path]) -> dict[str, str]:
    """The texts of files of ratings, by name without suffix. Raises CleansetError for two files of one name."""
    texts: dict[str, str] = {}
    for path in paths:
        if path.stem in texts:
            raise CleansetError(f"{path}: a second file of the name {path.stem}; expected each study's file once")
        texts[path.stem] = read_text(path, "expected a CSV file of ratings").replace("\r\n", "\n")
    return texts


def write_results(folder: Path, analysis: Analysis, key: Iterable[Stimulus], class_column: str) -> None:
    """Write the results into a folder; `class_column`: the name of the column of classes."""
    stimuli = tuple(key)
    write_text(folder / RESULT, as_json(analysis) + "\n")
    write_text(folder / IMAGES, images_csv(analysis.images, stimuli, class_column))
    write_text(folder / LOOK_AGAIN, images_csv(taken_for_modified(analysis.enough), stimuli, class_column))


def as_json(analysis: Analysis) -> str:
    """All numbers, rounded to DIGITS; degrees of freedom are null where they are infinite."""
    return json.dumps(_rounded(content(analysis)), indent=2)


def content(analysis: Analysis) -> dict[str, Any]:
    """The results as nested tables, in full precision."""
    settings, taken = analysis.settings, taken_for_modified(analysis.enough)
    optional = {"ordinal": analysis.ordinal, "published_formula": analysis.published}
    return {
        "people": analysis.people,
        "invalid_rows": {"left_out": len(analysis.invalid), "first": list(analysis.invalid[:MAX_TOLD])},
        "excluded": analysis.exclusions.by_rule,
        "people_with_checks": analysis.exclusions.checked,
        "people_without_attention_checks": analysis.exclusions.without_attention,
        "lists_of_several_people": analysis.exclusions.repeated,
        "ratings": {kind: asdict(analysis.summaries[kind]) for kind in KINDS},
        "agreement": {kind: asdict(analysis.agreements[kind]) for kind in KINDS},
        "model": {
            "formula": MODELS[settings.random],
            "degrees_of_freedom": settings.degrees,
            "intercept": _effect(analysis.fit.intercept),
            "modified": _effect(analysis.fit.modified),
            "variances": asdict(analysis.fit.variances),
            "reml_criterion": analysis.fit.criterion,
            "images": analysis.fit.images,
        },
        "equivalence": asdict(analysis.equivalence),
        "taken_for_modified": {
            "min_ratings": settings.min_ratings,
            "images": len(analysis.enough),
            "negative_majority": len(taken),
        },
        **{name: asdict(found) for name, found in optional.items() if found is not None},
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return asdict(effect) | {"t": effect.estimate / effect.standard_error, "interval": interval(effect, 0.95)}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        # + 0.0 turns -0.0 into 0.0
        return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
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
        Text(MODELS[analysis.settings.random]),
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
    found = analysis.exclusions
    if not found.checked and len(found.by_rule) == len(CHECK_RULES):
        return [*lines, "no checks among the ratings: nobody excluded"]
    rules = ", ".join(f"{rule} {len(people)}" for rule, people in found.by_rule.items())
    lines.append(f"excluded by rule: {rules}; of {analysis.people + len(found.people):,} people")
    if found.without_attention and "unchecked" not in found.by_rule:
        lines.append(f"no attention check answered by {len(found.without_attention)}: --exclude min_attention=1")
    if found.repeated and "repeated_list" not in found.by_rule:
        lines.append(f"lists answered by several people: {_some(found.repeated)}: --exclude one_person_a_list=yes")
    return lines


def _some(names: Iterable[str]) -> str:
    chosen = list(names)
    return ", ".join(chosen[:5]) + (f" and {len(chosen) - 5} more" if len(chosen) > 5 else "")


def _summaries(analysis: Analysis) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("images")
    for header in ("n", "mean", "sd", "agreement", "kappa", "kappa of sign"):
        table.add_column(header, justify="right", no_wrap=True)
    for kind in KINDS:
        found, agreed = analysis.summaries[kind], analysis.agreements[kind]
        numbers = (found.mean, found.deviation, agreed.rating.agreement, agreed.rating.kappa, agreed.negative.kappa)
        table.add_row(kind, f"{found.ratings:,}", *("-" if each is None else f"{each:.3f}" for each in numbers))
    return table


def _shown(effect: Effect) -> str:
    degrees = "normal" if math.isinf(effect.degrees) else f"df {effect.degrees:.1f}"
    low, high = interval(effect, 0.95)
    return f"{effect.estimate:.3f} (95 % {low:.3f} to {high:.3f}), se {effect.standard_error:.3f}, {degrees}"
