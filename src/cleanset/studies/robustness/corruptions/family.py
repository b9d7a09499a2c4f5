"""The family of corruptions: its params, and what the study knows about it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field, field_validator

from cleanset.sections import Section
from cleanset.studies.robustness.changed_images import StudyFile
from cleanset.studies.robustness.family import Changing, FamilyStudy, NamedModel, Sheet
from cleanset.studies.robustness.names import CORRUPTION_GROUPS, SEVERITIES, corruptions_of, known_names
from cleanset.studies.robustness.names import CORRUPTIONS as TEST_CORRUPTIONS
from cleanset.tables import SEVERITY

if TYPE_CHECKING:
    from cleanset.studies.robustness.families import Sources
    from cleanset.studies.robustness.measuring import Studied
    from cleanset.studies.robustness.pages import PagesData
    from cleanset.studies.robustness.settings import StudyParams

_Severity = Annotated[int, Field(ge=1, le=5)]
PUBLISHED_REFERENCE = "alexnet"
"""The table of AlexNet's errors that source 003 published."""


class Corruptions(Section):
    """The corruptions of source 003 that are measured, by name or group.

    `published`: a folder of ImageNet-C's images, which are read instead of made; None: they are made.
    """

    names: Annotated[list[str], Field(min_length=1, default_factory=lambda: list(TEST_CORRUPTIONS))]
    severities: Annotated[list[_Severity], Field(min_length=1, default_factory=lambda: list(SEVERITIES))]
    published: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return known_names(names, corruptions_of)

    def changes(self) -> list[tuple[str, int]]:
        """Each corruption at each severity, in the order of the benchmark."""
        return [(name, severity) for name in corruptions_of(self.names) for severity in self.sorted_severities()]

    def sorted_severities(self) -> list[int]:
        """The severities, each once."""
        return sorted(set(self.severities))


class CorruptionMeasures(Section):
    """The reference of CE, and the corruptions that models were trained with.

    `reference`: `alexnet`, the published table, or a role of the edition. `trained_on`: by role, the corruptions that
    a model was trained with; mCE is given without them, too.
    """

    reference: str = PUBLISHED_REFERENCE
    trained_on: Annotated[dict[str, list[str]], Field(default_factory=dict)]

    @field_validator("trained_on")
    @classmethod
    def _all_known(cls, trained_on: dict[str, list[str]]) -> dict[str, list[str]]:
        return {role: known_names(names, corruptions_of) for role, names in trained_on.items()}


class CorruptionFamily:
    """Corruptions of ImageNet-C, each at several severities."""

    name, singular = "corruptions", "corruption"
    section = Corruptions
    measures_section = CorruptionMeasures
    default_names: tuple[str, ...] = tuple(CORRUPTION_GROUPS)
    steps: Mapping[str, Any] = {"severity": SEVERITY}
    changing_modules: tuple[str, ...] = (
        "cleanset.studies.robustness.corruptions.changes",
        "cleanset.studies.robustness.published_images",
    )
    reserved_names: tuple[str, ...] = (PUBLISHED_REFERENCE,)
    layout = "<corruption>/<severity>/<wnid>/<image id>.JPEG"
    benchmark = "ImageNet-C"
    notice_if_made = (
        "No official ImageNet-C numbers: a subset of the validation images, and an own implementation of the "
        "corruptions."
    )
    files: Mapping[str, tuple[str, ...]] = {
        "corruption_errors": ("model", "change", "severity", "class_index", "images", "errors"),
        "errors_by_severity": ("model", "change", "severity", "error"),
    }
    optional_files: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    with_intervals = ("mean_error", "mce")
    summary: Mapping[str, str] = {
        "error_clean": "clean",
        "error_unchanged": "unchanged",
        "mean_error": "mean error",
        "mce": "mCE",
    }
    unit = "error in percent"
    headlines: Mapping[str, str] = {
        "error_clean": "error, clean",
        "error_unchanged": "error, unchanged",
        "mean_error": "mean error",
        "mce": "mCE",
        "mce_unseen": "mCE, unseen",
        "relative_mce": "relative mCE",
    }
    shown_differences = ("mean_error", "mce")
    not_shares: tuple[str, ...] = ()
    page = "index.html"
    sheet = Sheet(3, has_unchanged=True, caption="Unchanged, then severity by severity.")

    def of(self, params: "StudyParams") -> Corruptions:
        """The section of the params."""
        section: Corruptions = params.section(self.name)
        return section

    def measures_of(self, params: "StudyParams") -> CorruptionMeasures:
        """Its section of `measures`."""
        section: CorruptionMeasures = params.measures_section(self.name)
        return section

    def remark(self, params: "StudyParams") -> str:
        return ""

    def labels(self, params: "StudyParams") -> dict[str, str]:
        return {}

    def named_models(self, params: "StudyParams") -> list[NamedModel]:
        wanted = self.measures_of(params)
        reference = NamedModel("reference", wanted.reference, is_reference=True, also=(PUBLISHED_REFERENCE,))
        return [reference, *(NamedModel("trained_on", role, may_be_unmeasured=True) for role in wanted.trained_on)]

    def problem(self, params: "StudyParams") -> str | None:
        return None

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: "StudyParams") -> pd.DataFrame:
        return images

    def making(self, sources: "Sources", images: pd.DataFrame, params: "StudyParams") -> Changing:
        from cleanset.studies.robustness.corruptions.changes import corrupted_image

        return Changing(corrupted_image, {})

    def published(self, folder: Path, images: Sequence[StudyFile], params: "StudyParams") -> Changing:
        from cleanset.studies.robustness.published_images import PublishedImages, find_published

        changes = self.of(params).changes()
        places = {(name, severity): f"{name}/{severity}" for name, severity in changes}
        files = find_published(folder, self, list(places.values()), images)
        has_all = {(name, severity) for name in TEST_CORRUPTIONS for severity in SEVERITIES} <= set(changes)
        return Changing(PublishedImages(files, places), files.settings(), has_all and files.has_all_images())

    def study(self, studied: "Studied", images: pd.DataFrame) -> FamilyStudy:
        from cleanset.studies.robustness.corruptions.results import read_study

        wanted, measures = self.of(studied.params), self.measures_of(studied.params)
        return read_study(wanted, measures, studied.answers(self, images), studied.images_of(self, images))

    def page_context(self, data: "PagesData") -> dict[str, Any]:
        from cleanset.studies.robustness.corruptions.published import PUBLISHED_MODELS
        from cleanset.studies.robustness.results import percentages

        wanted, lines = self.of(data.params), data.tables[self.name]
        trained_on = self.measures_of(data.params).trained_on
        largest_published = max(mce for _, mce in PUBLISHED_MODELS.values())
        return {
            "corruptions": corruptions_of(wanted.names),
            "severities": wanted.sorted_severities(),
            "cells": percentages(data.tables["corruption_errors"], ["model", "change", "severity"], "errors"),
            "seen": {role: set(corruptions_of(names)) for role, names in trained_on.items()},
            "largest_ce": _axis_end(lines, "ce"),
            "largest_mce": max(_axis_end(lines, "mce"), largest_published),
            "published": PUBLISHED_MODELS,
        }

    def sheet_changes(self, params: "StudyParams") -> Sequence[str]:
        return corruptions_of(self.of(params).names)


def _axis_end(lines: pd.DataFrame, measure: str) -> float:
    """The end of the axis of CE or mCE in percent: a multiple of 25 that no interval exceeds."""
    is_shown = (lines["selection"] == lines["selection"].iloc[0]) & (lines["measure"] == measure)
    largest = lines[is_shown][["value", "high"]].max().max()
    return 25 * float(np.ceil(4 * largest)) if np.isfinite(largest) else 0.0


CORRUPTIONS = CorruptionFamily()
