"""A study's pages: tables, heat maps, curves, the regression, and sheets of changed images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cleanset.dataset.class_names import class_names
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.coverage_lines import TEMPLATES as COVERAGE_TEMPLATES
from cleanset.studies.attacks.page import AttacksData, attacks_context
from cleanset.studies.robustness.corruptions.published import PUBLISHED_MODELS
from cleanset.studies.robustness.names import UNCHANGED, corruptions_of, perturbations_of
from cleanset.studies.robustness.results import MIN_IMAGES
from cleanset.studies.robustness.scenarios.measures import spread
from cleanset.studies.robustness.settings import StudyParams

TEMPLATES = Path(__file__).parent / "templates"

HEADLINES = {
    "error_clean": "error, clean",
    "error_unchanged": "error, unchanged",
    "mean_error": "mean error",
    "mce": "mCE",
    "mce_unseen": "mCE, unseen",
    "relative_mce": "relative mCE",
    "mean_fp": "mean FP",
    "mean_fp_as_published": "mean FP, noise against frame 1",
    "mfr": "mFR",
    "mfr_as_published": "mFR, noise against frame 1",
    "mean_t5d": "mean T5D",
    "mean_t5d_as_published": "mean T5D, noise against frame 1",
    "mt5d": "mT5D",
    "mt5d_as_published": "mT5D, noise against frame 1",
    "accuracy_clean": "accuracy, clean",
    "accuracy_unchanged": "accuracy, unchanged",
    "mean_accuracy": "mean accuracy",
    "score_as_published": "Score, as published",
    "score_as_written": "Score, as written",
}
"""The titles of the measures over all changes, by their names."""

SHOWN_DIFFERENCES = (
    "mean_error", "mce", "mean_fp", "mean_t5d", "mean_accuracy", "score_as_published", "score_as_written",
)  # fmt: skip
"""The measures whose differences between models are on the pages; the CSV files have those of all."""

IN_UNITS = ("mean_t5d", "t5d", "score")
"""How the names of measures begin that are no shares, and are not shown in percent."""

LARGEST_PUBLISHED_MCE = max(mce for _, mce in PUBLISHED_MODELS.values())

SHOWN_CLASSES = 40
"""Classes in a map of accuracies; of more, those that the models are worst at."""


@dataclass(frozen=True, slots=True)
class SheetImage:
    """An image on the sheets: its number, its class by name, and its files by change and step."""

    image_id: str
    name: str
    files: Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class PagesData:
    """All that the pages show: the CSV files of stage measure as tables by name, params, and images.

    `sheets` and `notices`: by family. `origins` and `left_out`: how many masks each origin has, and images each reason.
    `published_top1`: of the models that have one, in percent. `attacks`: None where nothing was attacked.
    """

    roles: Sequence[str]
    params: StudyParams
    tables: Mapping[str, pd.DataFrame]
    sheets: Mapping[str, Sequence[SheetImage]]
    notices: Mapping[str, str]
    origins: Mapping[str, int]
    left_out: Mapping[str, int]
    published_top1: Mapping[str, float]
    attacks: AttacksData | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A measure with the ends of its interval, shares in percent; None where it is not defined, and why."""

    value: float | None
    low: float | None
    high: float | None
    problem: str


def pages(data: PagesData) -> dict[str, str]:
    """The text of each page, by its name; a family without changes has none."""
    environment = page_environment(TEMPLATES, COVERAGE_TEMPLATES)
    contexts = {"index.html": _corruptions(data), "images.html": _images(data)}
    if data.params.perturbations.names:
        contexts["perturbations.html"] = _perturbations(data)
    if data.params.scenarios.names:
        contexts["scenarios.html"] = _scenarios(data)
    if data.attacks is not None:
        contexts["attacks.html"] = attacks_context(data.attacks)
    common = {
        "roles": data.roles,
        "params": data.params,
        "headlines": HEADLINES,
        "pages": list(contexts),
        "notices": data.notices,
    }
    return {
        name: environment.get_template(f"study_{name}").render(common | {"page": name} | context)
        for name, context in contexts.items()
    }


def _corruptions(data: PagesData) -> dict[str, Any]:
    wanted, lines = data.params.corruptions, data.tables["corruptions"]
    return _measures(data, "corruption") | {
        "corruptions": corruptions_of(wanted.names),
        "severities": sorted(set(wanted.severities)),
        "cells": _shares(data.tables["corruption_errors"], ["model", "change", "severity"], "errors"),
        "seen": {role: set(corruptions_of(names)) for role, names in wanted.trained_on.items()},
        "largest_ce": _largest(lines, lines["selection"].iloc[0], "ce"),
        "largest_mce": max(_largest(lines, lines["selection"].iloc[0], "mce"), LARGEST_PUBLISHED_MCE),
        "published": PUBLISHED_MODELS,
    }


def _images(data: PagesData) -> dict[str, Any]:
    wanted = data.params
    columns = {
        "corruptions": [(0, "none")] + [(each, str(each)) for each in sorted(set(wanted.corruptions.severities))],
        "scenarios": [(0, "")],
    }
    return {
        "sheets": data.sheets,
        "changes": {
            "corruptions": corruptions_of(wanted.corruptions.names),
            "perturbations": perturbations_of(wanted.perturbations.names),
            "scenarios": [UNCHANGED, *wanted.scenarios.expanded()],
        },
        "columns": columns,
    }


def _perturbations(data: PagesData) -> dict[str, Any]:
    names = perturbations_of(data.params.perturbations.names)
    curves = _shares(data.tables["perturbation_frames"], ["change", "definition", "model", "frame"], "flips")
    lines: dict[str, dict[str, list[tuple[int, float]]]] = {name: {role: [] for role in data.roles} for name in names}
    for (name, definition, role, frame), share in sorted(curves.items()):
        if definition == "as_written":
            lines[name][role].append((frame, share))
    largest = max([share for (_, definition, _, _), share in curves.items() if definition == "as_written"], default=0)
    return _measures(data, "perturbation") | {
        "perturbations": names,
        "curves": lines,
        "largest": max(10.0, 10 * float(np.ceil(largest / 10))),
        "frames": data.params.perturbations.frame_counts(),
    }


def _scenarios(data: PagesData) -> dict[str, Any]:
    cells = data.tables["scenario_accuracies"]
    totals = cells.groupby("class_index")[["correct", "images"]].sum()
    worst = (totals["correct"] / totals["images"]).sort_values(kind="stable").index[:SHOWN_CLASSES]
    regression, fitted = data.tables.get("scenario_regression"), data.tables.get("scenario_fitted")
    counts = cells[(cells["model"] == data.roles[0]) & (cells["scenario"] == UNCHANGED)]
    return _measures(data, "scenario") | {
        "scenarios": [UNCHANGED, *data.params.scenarios.expanded()],
        "classes": [(index, class_names()[index].name) for index in sorted(worst.tolist())],
        "all_classes": len(totals),
        "total_images": int(counts["images"].sum()),
        "cells": _shares(cells, ["model", "scenario", "class_index"], "correct"),
        "class_images": dict(zip(counts["class_index"].tolist(), counts["images"].tolist(), strict=True)),
        "baselines": [] if fitted is None else _baselines(data, cells),
        "parts_of_score": _score_parts(data.tables["scenario_scores"]) if "scenario_scores" in data.tables else {},
        "regression": [] if regression is None else _terms(regression),
        "anova": [] if regression is None else data.tables["scenario_anova"].replace({np.nan: None}).to_dict("records"),
        "fitted": [] if fitted is None else list(zip(fitted["accuracy"], fitted["fitted"], strict=True)),
        "parameters": dict(zip(data.tables["models"]["model"], data.tables["models"]["parameters"], strict=True)),
        "origins": data.origins,
        "left_out": data.left_out,
        "published_top1": data.published_top1,
    }


def _score_parts(table: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Of Score, in percent, by model and part: the squared deviation of each level, and their variance for level ""."""
    rows = zip(table["model"], table["part"], table["level"].astype(str), table["squared_deviation"], strict=True)
    found = {tuple(key): value for *key, value in rows}
    for (model, part), squares in table.groupby(["model", "part"], sort=False)["squared_deviation"]:
        found[model, part, ""] = (
            float(spread(squares.to_numpy("float64"), "as_published")) if len(squares) > 1 else np.nan
        )
    return {(a, b, c): f"{100 * value:.2f}" if np.isfinite(value) else "–" for (a, b, c), value in found.items()}


def _baselines(data: PagesData, cells: pd.DataFrame) -> list[str]:
    """The levels that the regression compares with, as text."""
    base = data.params.scenarios.baselines
    class_index = base.class_index if base.class_index is not None else int(cells["class_index"].min())
    return [base.model or data.roles[0], base.scenario or UNCHANGED, class_names()[class_index].name]


def _terms(estimates: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of the regression's table, with class indices as names."""
    table = estimates.astype(object).where(estimates.notna(), None)
    rows = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
    for row in rows:
        if row["factor"] == "class_index":
            row["level"] = class_names()[int(row["level"])].name
    return rows


def _measures(data: PagesData, family: str) -> dict[str, Any]:
    """What every family's page has: its lines, the selections and the differences."""
    lines, differences = data.tables[f"{family}s"], data.tables[f"{family}_differences"]
    selections = list(dict.fromkeys(lines["selection"]))
    return {
        "selections": {name: _selected(lines, name) for name in selections},
        "of": _by_key(lines),
        "first": selections[0],
        "differences": [
            row | {"factor": _factor(row["measure"])}
            for row in differences[differences["measure"].isin(SHOWN_DIFFERENCES)].to_dict("records")
        ],
    }


class Selected(NamedTuple):
    """How many images a selection has, as text, and whether they are enough for any model."""

    counts: str
    is_measured: bool


def _selected(lines: pd.DataFrame, selection: str) -> Selected:
    """One number, or one for each model where they differ."""
    of_models = lines[lines["selection"] == selection].drop_duplicates("model")
    counts = dict(zip(of_models["model"], of_models["images"], strict=True))
    text = ", ".join(f"{model} {count:,}" for model, count in counts.items())
    if len(set(counts.values())) == 1:
        text = f"{next(iter(counts.values())):,}"
    is_measured = max(counts.values()) >= MIN_IMAGES
    return Selected(text if is_measured else f"{text}; intervals need {MIN_IMAGES} or more", is_measured)


def _by_key(lines: pd.DataFrame) -> dict[tuple[str, str, str, str], Value]:
    """Each line by selection, model, measure and change."""
    texts = lines.astype({"change": object, "problem": object}).fillna({"change": "", "problem": ""}).to_dict("records")
    found = {}
    for row in texts:
        factor = _factor(row["measure"])
        ends = [None if np.isnan(row[end]) else factor * row[end] for end in ("value", "low", "high")]
        key = row["selection"], row["model"], row["measure"], row["change"]
        found[key] = Value(ends[0], ends[1], ends[2], row["problem"])
    return found


def _factor(measure: str) -> int:
    """100 for shares, which are shown in percent, else 1."""
    return 1 if measure.startswith(IN_UNITS) else 100


def _shares(table: pd.DataFrame, keys: list[str], counted: str) -> dict[tuple[Any, ...], float]:
    """A count's share of the images in percent, by the keys."""
    sums = table.groupby(keys, sort=False)[[counted, "images"]].sum().reset_index()
    named = zip(*(sums[key].tolist() for key in keys), strict=True)
    return dict(zip(named, (100 * sums[counted] / sums["images"]).tolist(), strict=True))


def _largest(lines: pd.DataFrame, selection: str, measure: str) -> float:
    """Where the axis of CE or mCE ends, in percent: a multiple of 25 that no interval exceeds."""
    ces = lines[(lines["selection"] == selection) & (lines["measure"] == measure)][["value", "high"]].max().max()
    return 25 * float(np.ceil(4 * ces)) if np.isfinite(ces) else 0.0
