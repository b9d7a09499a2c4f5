"""The `Family` of corruptions: params, images, answers, measures and page."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.plumbing.validation import join_names
from cleanset.statistics.basics import Floats
from cleanset.studies.robustness.answer_arrays import Answers
from cleanset.studies.robustness.corruptions.params import (
    BENCHMARKS,
    C_BAR_AMOUNTS,
    CORRUPTION_GROUPS,
    CORRUPTIONS_3DCC,
    PUBLISHED_NUMBERS,
    PUBLISHED_REFERENCE,
    SEVERITIES,
    CorruptionMeasures,
    Corruptions,
    corruptions_of,
    custom_corruptions,
)
from cleanset.studies.robustness.family import Changing, Family, PagesData, ReferencedModel, page_texts
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.results import FamilyStudy, StudiedImages, percentages
from cleanset.tables import SEVERITY

SHOWN_CLASSES = 40
"""Classes in the table of robust accuracies; with more, those that the models are worst at."""


def _by_class(errors: pd.DataFrame, table: ClassTable) -> dict[str, Any]:
    """Robust accuracy by model and class in percent: over all corruptions and severities; the worst classes of all."""
    counts = errors.groupby(["model", "class_index"], sort=False)[["errors", "images"]].sum()
    accuracies = 100 * (1 - counts["errors"] / counts["images"])
    # a model may see no image of a class, and has no accuracy there
    known = accuracies.dropna()
    worst = known.groupby("class_index").mean().sort_values(kind="stable").index[:SHOWN_CLASSES]
    first = errors.drop_duplicates(["model", "class_index"]).groupby("class_index")["images"].max()
    return {
        "classes": [(index, table.names[index].name, int(first[index])) for index in worst],
        "all_classes": known.index.unique("class_index").size,
        "class_accuracies": known.to_dict(),
    }


def _place_in(folder: Path, names: Sequence[str]) -> str:
    """The name that is there, of those that a place may have in a folder; the first one if none is.

    Raises CleansetError for two of them.
    """
    found = [name for name in names if (folder / name).is_dir()]
    if len(found) > 1:
        raise CleansetError(
            f"{folder}: {' and '.join(found)}, which are the same severity; expected one of them: move the other away"
        )
    return found[0] if found else names[0]


def _benchmarks(names: Iterable[str]) -> list[str]:
    """The benchmarks that some of the corruptions are of."""
    return [title for title, members in BENCHMARKS.items() if set(members) & set(names)]


def _axis_end(lines: pd.DataFrame, measure: str) -> float:
    """The end of the axis of CE or mCE in percent: a multiple of 25 that no interval exceeds."""
    is_shown = (lines["selection"] == lines["selection"].iloc[0]) & (lines["measure"] == measure)
    largest = lines[is_shown][["value", "high"]].max().max()
    return 25 * float(np.ceil(4 * largest)) if np.isfinite(largest) else 0.0


class CorruptionFamily(Family):
    """The corruptions of ImageNet-C, ImageNet-C-bar and ImageNet-3DCC."""

    def named_models(self, params: CommonParams) -> list[ReferencedModel]:
        measures = params.section(CorruptionMeasures)
        reference = ReferencedModel(
            key="reference", name=measures.reference, is_reference=True, also=(PUBLISHED_REFERENCE,)
        )
        line = (ReferencedModel(key="line", name=role, is_reference=True) for role in measures.line)
        trained_on = (
            ReferencedModel(key="trained_on", name=role, may_be_unmeasured=True) for role in measures.trained_on
        )
        return [reference, *line, *trained_on]

    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        from cleanset.scoring.own_code import code_digests
        from cleanset.studies.robustness.corruptions.changes import CustomCorrupted, corrupted_image

        if not (custom := custom_corruptions(params.section(Corruptions).names)):
            return Changing(corrupted_image, {})
        folder = sources.study.folder
        return Changing(CustomCorrupted(folder), {"code": code_digests(custom, "corruptions.names", folder)})

    def read_images(self, folder: Path, images: Sequence[ImageFile], params: CommonParams) -> Changing:
        from cleanset.studies.robustness.published_images import PublishedImages, find_published

        wanted = params.section(Corruptions)
        changes = wanted.changes()
        places = {change: _place_in(folder, wanted.places(*change)) for change in changes}
        files = find_published(folder, self, list(places.values()), images)
        # validation corruptions are of no benchmark: not part of the official mean
        members = {name for title in _benchmarks(wanted.names) for name in BENCHMARKS[title]}
        whole = {(name, severity) for name in members for severity in SEVERITIES}
        has_all = bool(whole) and whole <= set(changes)
        return Changing(PublishedImages(files, places), files.settings(), has_all and files.has_all_images())

    def benchmark_of(self, params: CommonParams) -> str | None:
        return " and ".join(_benchmarks(params.section(Corruptions).names)) or self.benchmark

    def remark(self, params: CommonParams) -> str:
        names = set(params.section(Corruptions).names)
        custom = custom_corruptions(params.section(Corruptions).names)
        sentences = [f"{join_names(custom)}: custom corruptions, of no benchmark."] if custom else []
        if params.section(CorruptionMeasures).reference != PUBLISHED_REFERENCE:
            return " ".join(sentences)
        if names & set(C_BAR_AMOUNTS):
            sentences.append(
                "The corruptions of ImageNet-C-bar have no CE: AlexNet's errors on them were not published."
            )
        if names & set(CORRUPTIONS_3DCC):
            sentences.append(
                "CE on ImageNet-3DCC is relative to AlexNet's errors on 5,000 of its images (RobustBench)."
            )
        return " ".join(sentences)

    def read(self, answers: pd.DataFrame, params: CommonParams) -> Floats:
        """Whether the image is misclassified, the confidence of the prediction, 0 to 1, and the NLL in nats."""
        total = answers["log_sum_exp"]
        wrong = answers["top5_class"].str[0] != answers["class_index"]
        confidence = np.exp(answers["largest_logit"].astype(np.float64) - total).clip(0, 1)
        # the loss of a float32 that is rounded up may be a little below 0
        return np.stack([wrong, confidence, (total.astype(np.float64) - answers["class_logit"]).clip(0)], axis=1)

    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        from cleanset.studies.robustness.corruptions.measures import CorruptionStudy

        return CorruptionStudy(images, answers, params.section(Corruptions), params.section(CorruptionMeasures))

    def page_context(self, data: PagesData) -> dict[str, object]:
        wanted = data.params.section(Corruptions)
        lines = data.tables[self.name]
        measures = data.params.section(CorruptionMeasures)
        # an mCE relative to another model, or of other classes, cannot be compared with published ones
        is_comparable = measures.reference == PUBLISHED_REFERENCE and data.classes.is_imagenet
        largest_published = max(mce for _, mce in PUBLISHED_NUMBERS["models"].values())
        return {
            "corruptions": wanted.names,
            "severities": wanted.severities,
            "cells": percentages(data.tables["corruption_errors"], ["model", "change", "severity"], "errors"),
            "seen": {role: set(corruptions_of(names)) for role, names in measures.trained_on.items()},
            "largest_ce": _axis_end(lines, "ce"),
            "largest_mce": max(_axis_end(lines, "mce"), largest_published),
            "published": PUBLISHED_NUMBERS["models"] if is_comparable else {},
            **_by_class(data.tables["corruption_errors"], data.classes),
        }


CORRUPTION_FAMILY = CorruptionFamily(
    name="corruptions",
    section=Corruptions,
    measures_section=CorruptionMeasures,
    default_names=tuple(CORRUPTION_GROUPS),
    steps={"severity": SEVERITY},
    answer_columns=("largest_logit", "log_sum_exp", "class_logit"),
    # a model of this name would be taken for the published table
    reserved_names=(PUBLISHED_REFERENCE,),
    layout="<corruption>/<severity>/<wnid>/<image id>.JPEG",
    benchmark="ImageNet-C",
    notice_if_made=(
        "No official {benchmark} numbers: a subset of the validation images, corrupted here with other draws than the "
        "published ones."
    ),
    files={
        "corruption_errors": ("model", "change", "severity", "class_index", "images", "errors"),
        "errors_by_severity": ("model", "change", "severity", "error"),
    },
    with_intervals=("mean_error", "mce"),
    page="index.html",
    **page_texts("corruptions"),
)
