"""Models measured on one set, side by side: their order, pairs, notes, comparability card, and JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import JsonValue

from cleanset.evaluation.class_order import STATE_IT, in_other_order, order_in_words
from cleanset.evaluation.comparability import (
    CLEAN_ACCURACY,
    RESULTS_FORMAT,
    CardClasses,
    CardImages,
    CardInterval,
    ComparabilityCard,
    card_model,
    images_digest,
)
from cleanset.evaluation.custom_measures import CustomMeasure, custom_measures
from cleanset.evaluation.factors import FactorMeasures, measure_factors
from cleanset.evaluation.multilabel import MultiLabelAccuracy, multilabel_accuracies
from cleanset.evaluation.pairs import Pair, answers_text, compare_pairwise
from cleanset.evaluation.prediction_measures import MEASURES, Measures, measure_predictions
from cleanset.evaluation.sets import EvaluationSet
from cleanset.plumbing.json_files import JsonObject, with_digest
from cleanset.statistics.basics import LEVEL, Flags
from cleanset.statistics.groups import Units

Provenance = Mapping[str, JsonValue]
"""The record of a model's predictions: preprocessing, weights, precision, versions; or `source_sha256` of a file."""
PROVENANCE_IN_RESULTS = (
    "source_sha256", "preprocessing", "weights_sha256", "precision", "against_float64", "versions",
)  # fmt: skip
"""The keys of a record that the JSON has for each model, null if the record lacks them."""
# the largest difference between a model's confidences in another precision or on another machine
SAME_CONFIDENCE = 1e-3


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model with its measures on a set."""

    name: str
    measures: Measures
    record: Provenance
    path: Path | None
    """Where its predictions are; None if they are not kept."""

    correct: dict[str, bool]
    """Whether each image is classified correctly, by file."""

    multilabel: Sequence[MultiLabelAccuracy] = ()
    """Its multi-label accuracies, by the sources that the set has."""

    chose_images: bool = False
    """Whether the images were chosen by this model: then its accuracy says nothing about it, and no test compares it
    with others."""

    custom: Sequence[CustomMeasure] = ()
    """Measures of the user's own functions."""

    factors: FactorMeasures | None = None
    """Its errors by factor, where the set has factors."""

    group_of: Mapping[str, str] = field(default_factory=dict)
    """The group of each image, by file; empty if no two images share one."""

    @property
    def is_deterministic(self) -> bool | None:
        """Whether two runs over the same images gave the same scores; None for predictions made elsewhere."""
        found = self.record.get("deterministic")
        return found if isinstance(found, bool) else None

    def answers(self, files: Iterable[str]) -> Flags:
        """Whether each of these images is classified correctly."""
        return np.array([self.correct[file] for file in files], bool)


def measured_model(
    name: str, predictions: pd.DataFrame, images: EvaluationSet, record: Provenance, path: Path | None = None
) -> MeasuredModel:
    """A model with the measures of its predictions on a set, which have the columns of `checked_table`."""
    correct = dict(zip(predictions["file"].tolist(), map(bool, predictions["correct"]), strict=True))
    group_of = images.group_of
    return MeasuredModel(
        name=name,
        measures=measure_predictions(
            predictions, images.predicted_classes, Units.of([group_of.get(file, "") for file in predictions["file"]])
        ),
        record=record,
        path=path,
        multilabel=multilabel_accuracies(
            dict(zip(predictions["file"].tolist(), predictions["prediction"].tolist(), strict=True)),
            images.labels,
            group_of,
        ),
        correct=correct,
        chose_images=name == images.selected_by or _has_confidences(predictions, images),
        group_of=group_of,
        custom=custom_measures(images.measures, predictions, name) if images.measures else (),
        factors=None if images.factors is None else measure_factors(correct, images.factors, name),
    )


def _has_confidences(predictions: pd.DataFrame, images: EvaluationSet) -> bool:
    """Whether a model is as confident in every image as the one that chose the set, whatever either is called."""
    known = images.confidences
    if not known or "confidence" not in predictions or not predictions["correct"].all():
        return False
    pairs = zip(predictions["file"].tolist(), predictions["confidence"].tolist(), strict=True)
    return all(file in known and abs(known[file] - value) <= SAME_CONFIDENCE for file, value in pairs)


def by_accuracy(rows: Sequence[MeasuredModel]) -> list[MeasuredModel]:
    """The models by accuracy, the highest first; equal ones in the given order."""
    return sorted(rows, key=lambda row: -row.measures.overall.share)


def ranked_pairs(rows: Sequence[MeasuredModel]) -> list[Pair]:
    """Pairs of models, the more accurate one first, without one that chose the images: it classifies all of them."""
    files = list(rows[0].correct)
    order = [row for row in by_accuracy(rows) if not row.chose_images]
    groups = [rows[0].group_of.get(file, "") for file in files]
    return compare_pairwise([(row.name, row.answers(files)) for row in order], files, groups)


def not_deterministic(name: str) -> str:
    """The note on a model whose answers depend on more than the image."""
    return (
        f"{name} is not deterministic: the same images got other scores in a second run or another batch, so "
        "its numbers vary"
    )


def untested(name: str) -> str:
    """The note on a model that chose the images it is measured on."""
    return f"{name} chose these images by its own correct predictions: nothing is tested against it"


def notes_of(row: MeasuredModel, images: EvaluationSet) -> list[str]:
    """Notes for readers of a model's measures on a set, in sentences."""
    notes = []
    if row.is_deterministic is False:
        notes.append(not_deterministic(row.name))
    outputs = row.record.get("outputs")
    if isinstance(outputs, str):
        notes.append(outputs)
    elif (unlikely := row.measures.unlikely_confidence) is not None:
        notes.append(f"{row.name}: {unlikely}")
    if row.chose_images:
        notes.append(untested(row.name))
    at_chance = row.measures.overall.is_at_chance(images.predicted_classes)
    if (found := row.measures.renumbered) is not None:
        chance = "accuracy at chance; " if at_chance else ""
        notes.append(f"{row.name}: {chance}{in_other_order(found, images.classes)}; {STATE_IT}")
    elif at_chance:
        order = order_in_words(images.classes)
        predicted = "ImageNet's classes, in the order of their wnids" if images.classes.is_imagenet else order
        notes.append(f"{row.name}: accuracy at chance; expected a trained model that predicts {predicted}")
    return notes


def results_json(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> str:
    """The text of a result file: the set, and every model with all of its measures, by accuracy."""
    return json.dumps(with_digest(results_content(images, rows)), indent=2)


def results_content(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> JsonObject:
    """The content of a result file; shares and confidences are between 0 and 1."""
    return {
        "format": RESULTS_FORMAT,
        "set": {
            **images.facts.as_json(),
            "kind": images.kind,
            "images": len(images.items),
            "classes": images.class_count,
            "checked_against": images.checked,
        },
        "interval": f"{_interval_kind(images)}, 95 %",
        "comparability": accuracy_card(images, rows).as_json(),
        **({} if images.factors is None else {"factors": images.factors.as_json()}),
        **_groups_content(images),
        "image_keys": sorted(item.key for item in images.items),
        "models": [_model_content(images, row) for row in by_accuracy(rows)],
    }


def _interval_kind(images: EvaluationSet) -> str:
    """The kind of the intervals of shares, and their unit where it is not the image."""
    return "Wilson" if images.units is None else f"Wilson {images.units.text}"


def _groups_content(images: EvaluationSet) -> JsonObject:
    """The group of each image for a result file, by class and bytes; empty if no two images share one."""
    return {} if images.units is None else {"groups": {item.key: item.group for item in images.items}}


def accuracy_card(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> ComparabilityCard:
    """The comparability card of the measures on a set."""
    # further labels decide a result, too
    digests = [(item.class_index, " ".join(map(str, (item.sha256, *item.others)))) for item in images.items]
    # of predictions made elsewhere the record has none
    of_pixels = [found for row in rows if isinstance(found := row.record.get("pixels_sha256"), str)]
    return ComparabilityCard(
        measured=CLEAN_ACCURACY,
        images=CardImages(count=len(digests), sha256=images_digest(digests), manifest_sha256=images.manifest_sha256),
        classes=CardClasses(of_images=images.class_count, of_predictions=images.predicted_classes),
        pixels_sha256=next(iter(of_pixels), None),
        interval=CardInterval(kind=_interval_kind(images), level=LEVEL),
        models={row.name: card_model(row.record) for row in rows},
    )


def _model_content(images: EvaluationSet, row: MeasuredModel) -> JsonObject:
    found = row.measures
    keys = images.classes.keys
    calibration: JsonValue = None
    if found.bins is not None:
        calibration = {
            "definition": "ECE of Guo et al. 2017, 15 bins of equal width, debiased as Kumar et al. 2019",
            "error": found.calibration_error,
            "error_as_published": found.published_calibration_error,
            "bins": [asdict(each) for each in found.bins],
        }
    confusions: dict[str, JsonObject] = {}
    for each in found.confusions:
        confusions.setdefault(keys[each.label], {})[keys[each.prediction]] = each.images
    content: JsonObject = {
        "model": row.name,
        **found.overall.as_json(),
        "top5": None if found.top5 is None else found.top5.as_json(),
        "mean_confidence": found.mean_confidence,
        "confidence_interval": None if found.confidence_interval is None else list(found.confidence_interval),
        "calibration": calibration,
        "tiers": {tier: accuracy.as_json() for tier, accuracy in found.tiers.items()},
        **({"multilabel": {each.definition.name: each.as_json() for each in row.multilabel}} if row.multilabel else {}),
        "classes": {keys[each]: accuracy.as_json() for each, accuracy in found.classes.items()},
        "confusions": confusions,
        "answers": answers_text([item.key for item in images.items], row.answers(item.file for item in images.items)),
        **({} if row.factors is None else {"by_factor": row.factors.as_json()}),
        **({"custom_measures": {each.name: each.as_json() for each in row.custom}} if row.custom else {}),
        "chose_images": row.chose_images,
        "deterministic": row.is_deterministic,
        "notes": notes_of(row, images),
        **{key: row.record.get(key) for key in PROVENANCE_IN_RESULTS},
        "predictions": None if row.path is None else row.path.name,
    }
    return content | {each.name: each.of(found).as_json() for each in MEASURES if each.name not in content}
