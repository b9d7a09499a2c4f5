"""The family of scenarios: its params, and what the study knows about it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, ValidationInfo, field_validator, model_validator

from cleanset.sections import Section
from cleanset.studies.robustness.changed_images import StudyFile
from cleanset.studies.robustness.family import Changing, FamilyStudy, NamedModel, Sheet
from cleanset.studies.robustness.names import (
    CLEAN,
    SCENARIO_GROUPS,
    UNCHANGED,
    known_names,
    scenarios_of,
)
from cleanset.studies.robustness.names import SCENARIOS as BENCHMARK_SCENARIOS
from cleanset.studies.robustness.scenarios.changes import MATTES, ScenarioDefinition
from cleanset.studies.robustness.scenarios.image_masks import has_scenarios
from cleanset.validation import shown

if TYPE_CHECKING:
    from cleanset.studies.robustness.families import Sources
    from cleanset.studies.robustness.measuring import Studied
    from cleanset.studies.robustness.pages import PagesData
    from cleanset.studies.robustness.settings import StudyParams

_FOLDER_NAME = re.compile("[a-z][a-z0-9_]*")
"""The form of changes' names in tables."""

SHOWN_CLASSES = 40
"""Classes in a map of accuracies; of more, those that the models are worst at."""

ANSWERS = "answers"
"""The column that says what counts as correct."""


class Scenarios(Section):
    """The scenarios of source 002 that are measured, by name or group, on the images that have a mask.

    `published`: a folder of images, which are read instead of made, of all images of the sets that are whole; `names`
    are then of its folders; None: they are made.

    `definition`: the paper's text or its published code. `matte`: what transparent_image is seen over.
    `object_scales`, `object_weight` and `object_moved` are those of random_background.
    """

    published: Annotated[str, Field(min_length=1)] | None = None  # before names, which are checked by it
    names: Annotated[list[str], Field(default_factory=list)]
    definition: ScenarioDefinition = "as_written"
    matte: str = "black"
    object_scales: Annotated[list[float], Field(min_length=2, max_length=2, default_factory=lambda: [0.5, 1.0])]
    object_weight: Annotated[float, Field(gt=0, le=1)] = 1.0
    object_moved: bool = True

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        if info.data.get("published") is None:
            return known_names(names, scenarios_of)
        for name in names:
            if name in (CLEAN, UNCHANGED) or not _FOLDER_NAME.fullmatch(name):
                raise ValueError(
                    f"{shown(name)} cannot name a scenario; expected a folder in published, of small letters, digits "
                    f"and _, other than {CLEAN} and {UNCHANGED}"
                )
        return names

    @model_validator(mode="after")
    def _consistent(self) -> "Scenarios":
        if self.matte not in MATTES:
            raise ValueError(f"matte: unknown matte {self.matte!r}; expected one of {', '.join(MATTES)}")
        if not 0 < self.object_scales[0] <= self.object_scales[1]:
            raise ValueError(f"object_scales: {self.object_scales}; expected a smallest above 0, and a largest")
        return self

    def changes(self) -> list[tuple[str, int]]:
        """Each scenario, in the order of `expanded`."""
        return [(name, 0) for name in self.expanded()]

    def expanded(self) -> tuple[str, ...]:
        """The scenarios, groups replaced by their members: in the order of the benchmark, others of a folder last."""
        others = [name for name in self.names if name not in (*BENCHMARK_SCENARIOS, *SCENARIO_GROUPS)]
        return (*scenarios_of(name for name in self.names if name not in others), *dict.fromkeys(others))


class Baselines(Section):
    """The levels that the regression compares all others with."""

    model: str | None = None
    scenario: str | None = None
    class_index: Annotated[int, Field(ge=0, le=999)] | None = None


class ScenarioMeasures(Section):
    """The definition of a correct answer, and the baselines of the regression.

    `answers`: correct if the class is the most probable one of all 1,000 (all), or of the edition's classes
    (restricted). `baselines`: the model, scenario and class index that the regression compares with; those left out
    are the first ones.
    """

    answers: Literal["all", "restricted"] = "all"
    baselines: Baselines = Field(default_factory=lambda: Baselines())


class ScenarioFamily:
    """Scenarios of XIMAGENET-12: another background or object."""

    name, singular = "scenarios", "scenario"
    section = Scenarios
    measures_section = ScenarioMeasures
    default_names: tuple[str, ...] = ()
    steps: Mapping[str, Any] = {}
    changing_modules: tuple[str, ...] = (
        "cleanset.studies.robustness.scenarios.scenes",
        "cleanset.studies.robustness.published_images",
    )
    reserved_names: tuple[str, ...] = ()
    layout = "<scenario>/<wnid>/<image>"
    benchmark = None
    notice_if_made = "The scenarios of XIMAGENET-12, made from the images that have a mask; not its published images."
    files: Mapping[str, tuple[str, ...]] = {
        "scenario_accuracies": ("model", "scenario", "class_index", "images", "correct", "accuracy"),
        "scenario_scores": ("model", "part", "level", "accuracy", "squared_deviation"),
        "scenario_regression": (
            "factor", "level", "estimate", "standard_error", "low", "high", "t", "p", "stars",
        ),
        "scenario_anova": ("source", "ss", "df", "ms", "f", "p"),
        "scenario_fitted": ("model", "scenario", "class_index", "accuracy", "fitted"),
    }  # fmt: skip
    optional_files: tuple[str, ...] = ("scenario_scores", "scenario_regression", "scenario_anova", "scenario_fitted")
    label_columns: tuple[str, ...] = (ANSWERS,)
    with_intervals = ("mean_accuracy", "score_as_published", "score_as_written")
    summary: Mapping[str, str] = {
        "accuracy_clean": "clean",
        "accuracy_unchanged": "unchanged",
        "mean_accuracy": "mean accuracy",
        "score_as_published": "Score",
    }
    unit = "accuracy in percent"
    headlines: Mapping[str, str] = {
        "accuracy_clean": "accuracy, clean",
        "accuracy_unchanged": "accuracy, unchanged",
        "mean_accuracy": "mean accuracy",
        "score_as_published": "Score, as published",
        "score_as_written": "Score, as written",
    }
    shown_differences = ("mean_accuracy", "score_as_published", "score_as_written")
    not_shares = ("score",)
    page = "scenarios.html"
    sheet = Sheet(3, has_unchanged=True, is_tiled=True)

    def of(self, params: "StudyParams") -> Scenarios:
        """The section of the params."""
        section: Scenarios = params.section(self.name)
        return section

    def measures_of(self, params: "StudyParams") -> ScenarioMeasures:
        """Its section of `measures`."""
        section: ScenarioMeasures = params.measures_section(self.name)
        return section

    def remark(self, params: "StudyParams") -> str:
        classes = {"all": "all 1,000", "restricted": "the edition's classes"}
        answers = self.measures_of(params).answers
        return f"A prediction is correct if the class is the most probable of {classes[answers]} (answers: {answers})."

    def labels(self, params: "StudyParams") -> dict[str, str]:
        return {ANSWERS: self.measures_of(params).answers}

    def named_models(self, params: "StudyParams") -> list[NamedModel]:
        model = self.measures_of(params).baselines.model
        return [] if model is None else [NamedModel("baselines.model", model)]

    def problem(self, params: "StudyParams") -> str | None:
        wanted = self.of(params)
        if wanted.names and wanted.published is None and not params.masks:
            return "scenarios.names: scenarios need masks; expected folders of them in masks"
        return None

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: "StudyParams") -> pd.DataFrame:
        return has_scenarios(images, masks) if self.of(params).published is None else images

    def making(self, sources: "Sources", images: pd.DataFrame, params: "StudyParams") -> Changing:
        from cleanset.studies.robustness.scenarios.scenes import scene_images, settings_of

        wanted = self.of(params)
        scenes = scene_images(sources, wanted)
        return Changing(scenes, settings_of(wanted, scenes))

    def published(self, folder: Path, images: Sequence[StudyFile], params: "StudyParams") -> Changing:
        from cleanset.studies.robustness.published_images import PublishedImages, find_published

        wanted = self.of(params)
        places = {change: change[0] for change in wanted.changes()}
        files = find_published(folder, self, list(places.values()), images)
        change = PublishedImages(files, places, wanted.matte, any_size=True)
        return Changing(change, {"matte": wanted.matte, **files.settings()})

    def study(self, studied: "Studied", images: pd.DataFrame) -> FamilyStudy:
        from cleanset.studies.robustness.scenarios.results import read_study

        wanted, measures = self.of(studied.params), self.measures_of(studied.params)
        return read_study(wanted, measures, studied.answers(self, images), studied.images_of(self, images))

    def page_context(self, data: "PagesData") -> dict[str, Any]:
        from cleanset.dataset.class_names import class_names
        from cleanset.studies.robustness.results import percentages

        wanted, cells = self.of(data.params), data.tables["scenario_accuracies"]
        baselines = self.measures_of(data.params).baselines
        totals = cells.groupby("class_index")[["correct", "images"]].sum()
        worst = (totals["correct"] / totals["images"]).sort_values(kind="stable").index[:SHOWN_CLASSES]
        regression, fitted = data.tables.get("scenario_regression"), data.tables.get("scenario_fitted")
        counts = cells[(cells["model"] == data.roles[0]) & (cells["scenario"] == UNCHANGED)]
        scores, models = data.tables.get("scenario_scores"), data.tables["models"]
        anova = [] if regression is None else data.tables["scenario_anova"].replace({np.nan: None}).to_dict("records")
        return {
            "scenarios": [UNCHANGED, *wanted.expanded()],
            "classes": [(index, class_names()[index].name) for index in sorted(worst.tolist())],
            "all_classes": len(totals),
            "total_images": int(counts["images"].sum()),
            "cells": percentages(cells, ["model", "scenario", "class_index"], "correct"),
            "class_images": dict(zip(counts["class_index"].tolist(), counts["images"].tolist(), strict=True)),
            "baselines": [] if fitted is None else _baseline_names(baselines, data.roles[0], cells),
            "parts_of_score": {} if scores is None else _score_parts(scores),
            "regression": [] if regression is None else _terms(regression),
            "anova": anova,
            "fitted": [] if fitted is None else list(zip(fitted["accuracy"], fitted["fitted"], strict=True)),
            "parameters": dict(zip(models["model"], models["parameters"], strict=True)),
            "origins": data.origins,
            "left_out": data.left_out,
            "published_top1": data.published_top1,
        }

    def sheet_changes(self, params: "StudyParams") -> Sequence[str]:
        return [UNCHANGED, *self.of(params).expanded()]


def _score_parts(table: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Squared deviations in percent by model, part and level; level "" has their variance."""
    from cleanset.studies.robustness.scenarios.measures import spread

    rows = zip(table["model"], table["part"], table["level"].astype(str), table["squared_deviation"], strict=True)
    found = {tuple(key): value for *key, value in rows}
    for (model, part), squares in table.groupby(["model", "part"], sort=False)["squared_deviation"]:
        found[model, part, ""] = (
            float(spread(squares.to_numpy("float64"), "as_published")) if len(squares) > 1 else np.nan
        )
    return {(a, b, c): f"{100 * value:.2f}" if np.isfinite(value) else "–" for (a, b, c), value in found.items()}


def _baseline_names(base: Baselines, first_role: str, cells: pd.DataFrame) -> list[str]:
    """The levels that the regression compares with, as text."""
    from cleanset.dataset.class_names import class_names

    class_index = base.class_index if base.class_index is not None else int(cells["class_index"].min())
    return [base.model or first_role, base.scenario or UNCHANGED, class_names()[class_index].name]


def _terms(estimates: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of the regression's table, with class indices as names."""
    from cleanset.dataset.class_names import class_names

    table = estimates.astype(object).where(estimates.notna(), None)
    rows = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
    for row in rows:
        if row["factor"] == "class_index":
            row["level"] = class_names()[int(row["level"])].name
    return rows


SCENARIOS = ScenarioFamily()
