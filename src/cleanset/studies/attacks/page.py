"""The stages of a study that run no model: its CSV of measures of all attacks on all models, and the page on them.

The page shows measures, warnings, accuracy over coverage, images, and how few images a ball covers. torch is imported
when the page is made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, log10
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.folder import groups_of
from cleanset.edition.params import read_params
from cleanset.evaluation.measures import Measure, measures_frame, read_measures
from cleanset.plumbing.csv_files import read_frame, write_frame
from cleanset.plumbing.files import replacing, write_text
from cleanset.plumbing.metrics import write_metrics
from cleanset.report.pages import page_environment
from cleanset.scoring.logits import ScoreColumns, stored_columns
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.coverage import CONFIDENCES, CURVE_POINTS, AtCoverage, at_coverage, confidences, ranked
from cleanset.studies.attacks.base import LEVELS
from cleanset.studies.attacks.baselines import Baselines
from cleanset.studies.attacks.checklist import Evidence, checklist
from cleanset.studies.attacks.results import (
    ATTACKED,
    MEASURE_COLUMNS,
    attack_metrics,
    by_name,
    measure_lines,
    probe_text,
)
from cleanset.studies.attacks.shown_images import SheetImages, some_results
from cleanset.studies.attacks.signs import SIGNS
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy, read_attack_params
from cleanset.studies.attacks.threats import ball_text
from cleanset.studies.attacks.warnings import WarningRecord, attacked_model, read_warnings
from cleanset.studies.robustness.answers import answer_columns
from cleanset.studies.robustness.images import STUDY_IMAGES, files_of
from cleanset.studies.robustness.pages import TEMPLATES as SHARED_TEMPLATES
from cleanset.studies.robustness.params import further_roles
from cleanset.tables import read_table

REPORTED = 0.8
"""The coverage that Unrestricted Adversarial Examples reports next to the full one."""


@dataclass(frozen=True, slots=True)
class CoverageLine:
    """A model on some images: its accuracy at 80 % coverage by both rankings, and at 100 %.

    `points`: coverage and accuracy, 0 to 1, of the most confident image, of the two most confident ones, and so on;
    at most CURVE_POINTS of them, and equal accuracies in between left out.
    """

    name: str
    images: int
    plain: AtCoverage
    as_published: AtCoverage
    full: AtCoverage
    points: tuple[tuple[float, float], ...]


def coverage_line(name: str, confidence: Floats, correct: Flags, names: Sequence[str]) -> CoverageLine:
    """The line of a model; `names` break ties, the lower first. Raises CleansetError as `coverage.covered` does."""
    found = [
        at_coverage(confidence, correct, names, REPORTED, ranking=ranking) for ranking in ("plain", "as_published")
    ]
    full = at_coverage(confidence, correct, names, 1.0)
    counts = np.arange(1, len(correct) + 1)
    accuracies = np.cumsum(correct[ranked(confidence, names)]) / counts
    points = list(zip((counts / len(correct)).tolist(), accuracies.tolist(), strict=True))
    return CoverageLine(
        name=name,
        images=len(correct),
        plain=found[0],
        as_published=found[1],
        full=full,
        points=tuple(corner_points(limited_points(points))),
    )


def limited_points(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most CURVE_POINTS of the points of a line, evenly spread, with its ends."""
    last = len(points) - 1
    shown = min(len(points), CURVE_POINTS)
    return [points[place * last // max(shown - 1, 1)] for place in range(shown)]


def corner_points(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a line without those in the middle of a level part, which it passes anyway."""
    last = len(points) - 1
    return [
        point
        for place, point in enumerate(points)
        if place in (0, last) or not points[place - 1][1] == point[1] == points[place + 1][1]
    ]


COLORS = 256
"""Number of values that a color can take."""
OF_SOURCE = "ImageNet's test images, as in appendix D", 229, 32, 40_152
"""The example of Unrestricted Adversarial Examples: size, values of a color, images."""


@dataclass(frozen=True, slots=True)
class CoveredFraction:
    """A row of the table on the bound: its subject, the sizes, and the base-10 logarithm of the fraction."""

    what: str
    side: int
    values: int
    images: int
    log10: float


def linf_values(eps: float) -> int:
    """The largest number of values that a color can take within eps, in 0..1, of its own: 2 * 16 + 1 for 16/255.

    The source counts 32 for 16/255.
    """
    return min(COLORS, 2 * floor(min(eps, 1) * LEVELS) + 1)


def log10_covered(side: int, values: int, images: int) -> float:
    """The base-10 logarithm of an upper bound on the fraction of all square images that are near one of `images`.

    Near: every color of every pixel has one of `values` values, of 256. That no two neighborhoods overlap makes it a
    bound; it is at most 0, which is all images. Unrestricted Adversarial Examples, appendix D: 229 x 229 pixels, 32
    values and 40,152 images give -142072.2.
    """
    # in logarithms: the fraction itself is below the smallest float
    return min(0.0, log10(images) + 3 * side**2 * (log10(values) - log10(COLORS)))


TEMPLATES = Path(__file__).parent / "templates"
"""Folder of coverage.html and checks.html, which draw lines."""


MEAN_TITLES = {
    "l0": "L0",
    "l2": "L2",
    "linf": "Linf",
    "ssim": "SSIM",
    "lpips": "LPIPS",
    "from_center": "from center",
    "reached": "reached",
}
"""The titles of the mean distances, by their names."""
NOT_SHOWN = ("kind", "images", "group")
"""Parameters that do not say how strong an attack is."""


@dataclass(frozen=True, slots=True, eq=False)
class AttacksData:
    """All that the page shows.

    `models`: the edition's, then the further and the wrapped ones. `lines`: the rows of attack_measures.csv.
    `answers`: by attack and model, a frame with file, was_correct, is_error, and the columns that confidences are read
    from, of the logits before and, with the suffix `_after`, after the attack. `sheets`: by attack and model. `sizes`:
    by model, the side of its input in pixels. `probes`: by model, what the probe for warnings found. Missing entries
    were not run.
    """

    models: Sequence[str]
    settings: AttackParams
    lines: Sequence[Measure]
    answers: Mapping[tuple[str, str], pd.DataFrame]
    warnings: Sequence[WarningRecord]
    sheets: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
    sizes: Mapping[str, int]
    probes: Mapping[str, str]

    def models_of(self, attack: str) -> list[str]:
        """The models that an attack was run on."""
        return [model for model in self.models if (attack, model) in self.answers]


class CoverageSet(NamedTuple):
    """Clean images or the results of an attack: by confidence, a line for each model."""

    name: str
    images: str
    lines: Mapping[str, Sequence[CoverageLine]]


def attacks_page(data: AttacksData, classes: ClassTable) -> str:
    """The text of the page."""
    wrapped = data.settings.wrapped
    context = {
        "models": data.models,
        "wrapped": {name: each.text() for name, each in wrapped.items()},
        "grouped": [name for name, each in wrapped.items() if each.groups is not None],
        "random": [name for name, each in wrapped.items() if each.wrapper is not None],
        "attacks": {name: parameters(data.settings, name) for name in data.settings.names},
        "models_of": {name: data.models_of(name) for name in data.settings.names},
        "means": by_name(data.lines),
        "distances": {name: title for name, title in MEAN_TITLES.items() if name != "lpips" or data.settings.lpips},
        "threats": data.settings.threats,
        "signs": SIGNS,
        "warnings": data.warnings,
        "probes": data.probes,
        "baselines": baselines_of(data.warnings),
        "checklists": {
            record.role: checklist(
                Evidence(
                    params=data.settings,
                    model=record.role,
                    measures=by_name(data.lines),
                    record=record,
                    models=data.models,
                )
            )
            for record in data.warnings
        },
        "coverage_sets": _coverage_sets(data),
        "confidence_kinds": CONFIDENCES,
        "sheets": data.sheets,
        "covered": _covered_fractions(data),
    }
    return page_environment(classes, TEMPLATES, SHARED_TEMPLATES).get_template("attacks.html").render(context)


def baselines_of(records: Iterable[WarningRecord]) -> dict[str, Baselines]:
    """What the probe found in growing balls and by noise, by model; those of the probe that made searches."""
    return {each.role: each.baselines for each in records if each.baselines is not None}


def parameters(settings: AttackParams, name: str) -> str:
    """The parameters of an attack beyond attack `none`, as text; the radius in Linf as a fraction of 255."""
    attack = settings.attack(name)
    found = attack.model_dump(exclude_none=True)
    if "eps" in found and attack.ball is not None:
        found["eps"] = ball_text(attack.ball).removeprefix(f"{attack.ball.norm} ")
    if found.get("draws") == 1:
        del found["draws"]
    return _keys(found, NOT_SHOWN)


def _keys(section: Mapping[str, object], left_out: Sequence[str]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {_text(value)}" for key, value in section.items() if key not in left_out)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return f"({_keys(value, ['kind'])})"
    if isinstance(value, list):
        return " ".join(_text(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _coverage_sets(data: AttacksData) -> list[CoverageSet]:
    """The clean images of the attack that has most of them, then the results of each attack that changes something."""
    # budgets and limits may cut an attack off: the clean images of the most complete one
    largest = max(
        data.settings.names, key=lambda name: sum(len(data.answers[name, model]) for model in data.models_of(name))
    )
    changing = [name for name in data.settings.names if data.settings.attack(name).changes_images]
    clean = _coverage_set("clean", data, largest, "")
    return [clean, *(_coverage_set(name, data, name, "_after") for name in changing)]


def _coverage_set(name: str, data: AttacksData, attack: str, suffix: str) -> CoverageSet:
    lines: dict[str, list[CoverageLine]] = {kind: [] for kind in CONFIDENCES}
    for model in data.models_of(attack):
        answers = data.answers[attack, model]
        correct: Flags = answers["was_correct"].to_numpy(bool)
        if suffix:
            correct = ~answers["is_error"].to_numpy(bool)
        columns = answers.filter(regex="_after$" if suffix else ".").rename(
            columns=lambda each: each.removesuffix(suffix)
        )
        for kind in CONFIDENCES:
            lines[kind].append(coverage_line(model, confidences(columns, kind), correct, answers["file"].tolist()))
    counts = [str(each.images) for each in lines[CONFIDENCES[0]]]
    return CoverageSet(name, counts[0] if len(set(counts)) == 1 else ", ".join(counts), lines)


def _covered_fractions(data: AttacksData) -> list[CoveredFraction]:
    """The bound for each Linf ball that an attack searches, each size and number of images, then the source's own."""
    # a dict, since models of one size give equal rows, and their order counts
    found: dict[tuple[str, int, int, int], None] = {}
    for name in data.settings.names:
        ball = data.settings.attack(name).ball
        # the bound counts the values of each color, which only an Linf ball limits one by one; none's holds one image
        if ball is None or ball.norm != "Linf" or not ball.eps:
            continue
        for model in data.models_of(name):
            what = f"{name.replace('_', ' ')}, eps {ball_text(ball).removeprefix('Linf ')}"
            images = len(data.answers[name, model])
            found[what, data.sizes[model], linf_values(ball.eps), images] = None
    return [
        CoveredFraction(what=what, side=side, values=values, images=images, log10=log10_covered(side, values, images))
        for what, side, values, images in (*found, OF_SOURCE)
    ]


SHEET_FOLDER = "images"
READ_OFF = ("largest_logit", "second_logit", "log_sum_exp", "log_odds")


def write_measures(study: AttackStudy, params: AttackParams | None = None) -> None:
    """Read the results of all attacks and the warnings, write data/attack_measures.csv and attack_metrics/."""
    classes = study.edition.read_classes()
    roles = list(read_params(study.edition.folder).models)
    further = further_roles(study.robustness.params_yaml)
    if params is None:
        params = read_attack_params(study.params_yaml, roles, classes, others=further)
    attacked = {}
    for model in params.models(roles, further):
        names = [name for name, of in params.runs(roles, further) if of == model]
        results = {name: read_table(study.results(name, model).table, ATTACKED, classes) for name in names}
        attacked[model] = attacked_model(results, read_warnings(study.warnings(model)))
    groups = groups_of(study.robustness.images)
    tables = [table for each in attacked.values() for table in each.results.values()] if groups else []
    group_of = {
        file: groups.get(image_id, "")
        for table in tables
        for file, image_id in zip(table["file"], table["image_id"], strict=True)
    }
    lines = measure_lines(attacked, params.threats, params.resampling, group_of)
    write_frame(study.measures, measures_frame(lines, MEASURE_COLUMNS))
    # metrics are of the edition's models; the CSV file has the wrapped ones, too
    write_metrics(study.metrics, attack_metrics([line for line in lines if line.model in roles], params.threats))


def write_report(study: AttackStudy) -> None:
    """Read the results of the attacks and some images of the finished sets, write report/."""
    with replacing(study.report) as folder:
        write_text(folder / "index.html", attacks_page(attacks_data(study, folder), study.edition.read_classes()))


def attacks_data(study: AttackStudy, report: Path) -> AttacksData:
    """The contents of the page, with small copies of some images written below `report`."""
    from cleanset.evaluation.models import preprocessing_of_spec
    from cleanset.scoring.engine import settings_for

    every = AllParams.read(study)
    params = every.edition
    further = every.robustness.further_models
    settings = every.attacks
    roles = list(params.models)
    files = files_of(study.edition, read_table(study.robustness.images, STUDY_IMAGES, every.classes))
    models = settings.models(roles, further)
    score = settings_for(params.score)
    # the callable of a module is called for its preprocessing
    seen_by = {name: preprocessing_of_spec(every.spec_of(name), score, every.classes) for name in models}
    groups = {name: each.two_groups(every.classes) for name, each in settings.wrapped.items()}
    answers = {}
    sheets = {}
    tables = dict[str, dict[str, pd.DataFrame]]()
    (report / SHEET_FOLDER).mkdir(parents=True)
    for name, model in settings.runs(roles, further):
        folder = study.results(name, model)
        results = read_table(folder.table, ATTACKED, every.classes)
        tables.setdefault(model, {})[name] = results
        grouped = groups.get(model)
        class_list = params.dataset.class_list(every.classes)
        read = partial(answer_columns, classes=class_list) if grouped is None else stored_columns
        answers[name, model] = _with_columns(results, read)
        if settings.attack(name).changes_images:
            sheet = SheetImages(
                files=files,
                attacked=folder.folder,
                preprocessing=seen_by[model],
                classes=every.classes,
                groups=grouped,
                report=report,
                prefix=f"{SHEET_FOLDER}/{name}_{model}",
            )
            sheets[name, model] = [sheet.row(row, place) for place, row in enumerate(some_results(results))]
    sizes = {model: each.size for model, each in seen_by.items()}
    lines = read_measures(read_frame(study.measures, MEASURE_COLUMNS, "run dvc repro"), MEASURE_COLUMNS)
    warnings = [read_warnings(study.warnings(model)) for model in models]
    texts = {each.role: probe_text(attacked_model(tables[each.role], each), settings.threats) for each in warnings}
    return AttacksData(
        models=models,
        settings=settings,
        lines=lines,
        answers=answers,
        warnings=warnings,
        sheets=sheets,
        sizes=sizes,
        probes={model: text for model, text in texts.items() if text is not None},
    )


def _with_columns(results: pd.DataFrame, read: Callable[[Floats], ScoreColumns]) -> pd.DataFrame:
    """The rows of ATTACKED with the values behind confidences, from the logits before and after."""
    found = results[["file", "was_correct", "is_error"]].copy()
    for column, suffix in (("logits_before", ""), ("logits_after", "_after")):
        columns = read(np.stack(results[column].tolist()).astype(np.float64))
        for name in READ_OFF:
            found[f"{name}{suffix}"] = columns[name]
    return found
