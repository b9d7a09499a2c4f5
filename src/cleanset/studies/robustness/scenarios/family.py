"""The `Family` of scenarios, images with another background or object: params, images, answers, measures and page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.plumbing.validation import check_known, shown
from cleanset.statistics.basics import Flags
from cleanset.statistics.formats import decimal
from cleanset.studies.robustness.answer_arrays import Answers
from cleanset.studies.robustness.family import Changing, Family, PagesData, ReferencedModel, page_texts
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.results import FamilyStudy, StudiedImages, percentages, records
from cleanset.studies.robustness.scenarios.by_image import ANOVA_COLUMNS, TERM_COLUMNS
from cleanset.studies.robustness.scenarios.mask_files import counts_by_value, has_scenarios
from cleanset.studies.robustness.scenarios.mask_formats import FORMATS
from cleanset.studies.robustness.scenarios.params import MATTES, Baselines, ScenarioMeasures, Scenarios
from cleanset.studies.robustness.sections import UNCHANGED

CLASSES_IN_MAP = 40
"""Classes in a map of accuracies; with more, those that the models are worst at."""

ANSWERS_COLUMN = "answers"
"""The column with the criterion of correctness."""


def _by_origin(table: pd.DataFrame | None) -> dict[tuple[str, str, str], float]:
    """Accuracy in percent by origin of the masks, scenario and model; empty for masks of one origin."""
    if table is None:
        return {}
    rows = zip(table["origin"], table["scenario"], table["model"], table["accuracy"], strict=True)
    return {(origin, scenario, model): 100 * accuracy for origin, scenario, model, accuracy in rows}


def _score_parts(table: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Squared deviations in percent by model, part and level; level "" has their variance."""
    from cleanset.studies.robustness.scenarios.measures import spread

    rows = zip(table["model"], table["part"], table["level"].astype(str), table["squared_deviation"], strict=True)
    found = {tuple(key): value for *key, value in rows}
    for (model, part), squares in table.groupby(["model", "part"], sort=False)["squared_deviation"]:
        found[model, part, ""] = (
            float(spread(squares.to_numpy("float64"), "as_published")) if len(squares) > 1 else np.nan
        )
    return {(a, b, c): decimal(value, 2, 100) for (a, b, c), value in found.items()}


def _baseline_names(base: Baselines, first_role: str, cells: pd.DataFrame, classes: ClassTable) -> list[str]:
    """The levels that the regression compares with, as text."""
    class_index = base.class_index if base.class_index is not None else int(cells["class_index"].min())
    return [base.model or first_role, base.scenario or UNCHANGED, classes.names[class_index].name]


def _terms(estimates: pd.DataFrame, classes: ClassTable) -> list[dict[str, object]]:
    """The rows of the regression's table, with class indices as names."""
    rows = records(estimates)
    for row in rows:
        if row["factor"] == "class_index":
            row["level"] = classes.names[int(row["level"])].name
    return rows


# simulated by bench/estimators.py
SCORE_IS_LOW = (
    "Score is too low with few images a class: in simulations with three, by .02 as published and by .03 to .04 as "
    "written, and the 95 % interval covers 80 % (12 classes of 6 images) to 93 % (1,000 of 3)."
)


class ScenarioFamily(Family):
    """The scenarios of XIMAGENET-12."""

    def named_models(self, params: CommonParams) -> list[ReferencedModel]:
        measures = params.section(ScenarioMeasures)
        model = measures.baselines.model
        trained = [ReferencedModel(key="trained", name=name) for name in measures.trained]
        return trained if model is None else [ReferencedModel(key="baselines.model", name=model), *trained]

    def problem(self, params: CommonParams) -> str | None:
        for place, masks in enumerate(params.masks):
            try:
                check_known("mask format", masks.format, FORMATS)
            except CleansetError as error:
                return f"masks.{place}.format: {error}"
        wanted = params.section(Scenarios)
        if wanted.names and wanted.published is None and not params.masks:
            return "scenarios.names: scenarios need masks; expected folders of them in masks"
        scenario = params.section(ScenarioMeasures).baselines.scenario
        known = [UNCHANGED, *wanted.names]
        if wanted.names and scenario is not None and scenario not in known:
            return (
                f"measures.scenarios.baselines.scenario: unknown scenario {shown(scenario)}; expected one of "
                f"{', '.join(known)}"
            )
        return None

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
        return has_scenarios(images, masks) if params.section(Scenarios).published is None else images

    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        from cleanset.studies.robustness.scenarios.changes import scene_images, settings_of

        wanted = params.section(Scenarios)
        scenes = scene_images(sources, wanted)
        return Changing(scenes, settings_of(wanted, scenes))

    def read_images(self, folder: Path, images: Sequence[ImageFile], params: CommonParams) -> Changing:
        from cleanset.studies.robustness.published_images import PublishedImages, find_published

        wanted = params.section(Scenarios)
        places = {change: change[0] for change in wanted.changes()}
        files = find_published(folder, self, list(places.values()), images)
        # unlike ImageNet-C's, these images are of any size, and some are transparent
        change = PublishedImages(files, places, MATTES[wanted.matte], any_size=True)
        return Changing(change, {"matte": wanted.matte, **files.settings()})

    def remark(self, params: CommonParams) -> str:
        classes = {"all": "all 1,000", "restricted": "the edition's classes"}
        answers = params.section(ScenarioMeasures).answers
        correct = (
            f"A prediction is correct if the class is the most probable of {classes[answers]} (answers: {answers})."
        )
        return f"{SCORE_IS_LOW} {correct}"

    def read(self, answers: pd.DataFrame, params: CommonParams) -> Flags:
        """Whether the class is the most probable of all 1,000, or of the edition's classes (restricted)."""
        is_restricted = params.section(ScenarioMeasures).answers == "restricted"
        predicted = answers["class_of_edition"] if is_restricted else answers["top5_class"].str[0]
        return (predicted == answers["class_index"]).to_numpy(np.bool_)

    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        from cleanset.studies.robustness.scenarios.measures import ScenarioStudy

        return ScenarioStudy(images, answers, params.section(Scenarios), params.section(ScenarioMeasures))

    def labels(self, params: CommonParams) -> dict[str, str]:
        return {ANSWERS_COLUMN: params.section(ScenarioMeasures).answers}

    def page_context(self, data: PagesData) -> dict[str, object]:
        wanted = data.params.section(Scenarios)
        cells = data.tables["scenario_accuracies"]
        masks = data.masks
        baselines = data.params.section(ScenarioMeasures).baselines
        # over all models and scenarios: a map for each model has the same classes
        totals = cells.groupby("class_index")[["correct", "images"]].sum()
        worst = (totals["correct"] / totals["images"]).sort_values(kind="stable").index[:CLASSES_IN_MAP]
        regression = data.tables.get("scenario_regression")
        fitted = data.tables.get("scenario_fitted")
        by_images = data.tables.get("scenario_by_image")
        counts = cells[(cells["model"] == data.roles[0]) & (cells["scenario"] == UNCHANGED)]
        scores = data.tables.get("scenario_scores")
        models = data.tables["models"]
        anova = [] if regression is None else records(data.tables["scenario_anova"])
        return {
            "scenarios": [UNCHANGED, *wanted.names],
            "classes": [(index, data.classes.names[index].name) for index in sorted(worst.tolist())],
            "all_classes": len(totals),
            "total_images": int(counts["images"].sum()),
            "cells": percentages(cells, ["model", "scenario", "class_index"], "correct"),
            "class_images": dict(zip(counts["class_index"].tolist(), counts["images"].tolist(), strict=True)),
            "baselines": [] if by_images is None else _baseline_names(baselines, data.roles[0], cells, data.classes),
            "parts_of_score": {} if scores is None else _score_parts(scores),
            "regression": [] if regression is None else _terms(regression, data.classes),
            "anova": anova,
            "by_image": [] if by_images is None else _terms(by_images, data.classes),
            "by_image_anova": [] if by_images is None else records(data.tables["scenario_by_image_anova"]),
            "fitted": [] if fitted is None else list(zip(fitted["accuracy"], fitted["fitted"], strict=True)),
            "parameters": dict(zip(models["model"], models["parameters"], strict=True)),
            "origins": counts_by_value(masks[masks["left_out"].isna()]["origin"]),
            "by_origin": _by_origin(data.tables.get("scenario_origins")),
            "left_out": counts_by_value(masks["left_out"]),
            "published_top1": data.published_top1,
        }


SCENARIO_FAMILY = ScenarioFamily(
    name="scenarios",
    section=Scenarios,
    measures_section=ScenarioMeasures,
    layout="<scenario>/<wnid>/<image>",
    notice_if_made="The scenarios of XIMAGENET-12, made from the images that have a mask; not its published images.",
    files={
        "scenario_accuracies": ("model", "scenario", "class_index", "images", "correct", "accuracy"),
        "scenario_origins": ("model", "scenario", "origin", "images", "correct", "accuracy"),
        "scenario_scores": ("model", "part", "level", "accuracy", "squared_deviation"),
        "scenario_regression": (
            "factor", "level", "estimate", "standard_error", "low", "high", "t", "p",
        ),
        "scenario_anova": ("source", "ss", "df", "ms", "f", "p"),
        "scenario_by_image": TERM_COLUMNS,
        "scenario_by_image_anova": ANOVA_COLUMNS,
        "scenario_fitted": ("model", "scenario", "class_index", "accuracy", "fitted"),
    },
    optional_files=(
        "scenario_origins", "scenario_scores", "scenario_regression", "scenario_anova", "scenario_fitted",
        "scenario_by_image", "scenario_by_image_anova",
    ),
    label_columns=(ANSWERS_COLUMN,),
    with_intervals=("mean_accuracy", "score_as_published", "score_as_written"),
    page="scenarios.html",
    **page_texts("scenarios"),
)  # fmt: skip
