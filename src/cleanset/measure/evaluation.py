"""The measures of models on a set, side by side: their order, pairs, notes, comparability card, and their JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.measure.comparability import CardInterval, ComparabilityCard, card_model, clean_card
from cleanset.measure.measures import (
    CORRECTION,
    INTERVAL,
    TEST,
    Accuracy,
    Answers,
    Bin,
    Confusion,
    Measures,
    Pair,
    Renumbering,
    measures,
    pairs_of,
)
from cleanset.measure.sets import EvaluationSet

CALIBRATION = "ECE of Guo et al. 2017, 15 bins of equal width"


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model with its measures; `record` says what its predictions were computed with, `path` where they are.

    `correct`: whether each image is classified correctly, by file.
    """

    name: str
    measures: Measures
    record: dict[str, Any]
    path: Path | None
    correct: dict[str, bool]

    @property
    def is_deterministic(self) -> bool | None:
        """Whether two runs over the same images gave the same scores; None for predictions made elsewhere."""
        return self.record.get("deterministic")


def measured(name: str, predictions: pd.DataFrame, record: dict[str, Any], path: Path | None = None) -> MeasuredModel:
    """The measures of predictions that have the columns of `checked_table`."""
    correct = dict(zip(predictions["file"].tolist(), map(bool, predictions["correct"]), strict=True))
    return MeasuredModel(name, measures(predictions), record, path, correct)


def by_accuracy(rows: Sequence[MeasuredModel]) -> list[MeasuredModel]:
    """The models by accuracy, the highest first; equal ones in the order in which they were given."""
    return sorted(rows, key=lambda row: -row.measures.overall.share)


def pairs(rows: Sequence[MeasuredModel]) -> list[Pair]:
    """Every two models, the more accurate one first."""
    return pairs_of([Answers(row.name, row.correct) for row in by_accuracy(rows)])


def notes_of(row: MeasuredModel) -> list[str]:
    """Notes for readers of a model's measures, in sentences."""
    notes = []
    if row.is_deterministic is False:
        notes.append(
            f"{row.name} is not deterministic: the same images got other scores in a second run or another batch, so "
            "its numbers vary"
        )
    if row.measures.overall.is_at_chance:
        notes.append(f"{row.name}: accuracy at chance; {_explanation(row.measures.renumbered)}")
    return notes


def _explanation(found: Renumbering | None) -> str:
    """A phrase on the probable cause of an accuracy at chance."""
    if found is None:
        return "expected a trained model that predicts ImageNet's classes, in the order of their wnids"
    by = "" if found.offset is None else f", each by {found.offset:+d}"
    return (
        f"its classes are probably numbered otherwise: renumbered to fit half of the images{by}, "
        f"{100 * found.accuracy.share:.2f} % of the others are correct; expected the order of the wnids"
    )


def as_json(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> str:
    """The set, and every model with all of its measures, by accuracy."""
    return json.dumps(content(images, rows), indent=2)


def content(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> dict[str, Any]:
    """The content of the JSON; shares and confidences are between 0 and 1."""
    return {
        "set": {
            "name": images.name,
            "kind": images.kind,
            "images": len(images.items),
            "classes": len({item.class_index for item in images.items}),
            "checked_against": images.checked,
            "notes": list(images.notes),
        },
        "interval": "Wilson, 95 %",
        "comparability": card(images, rows).as_json(),
        "models": [_model(row) for row in by_accuracy(rows)],
        "pairs": {
            "test": TEST,
            "interval": INTERVAL,
            "correction": CORRECTION,
            "of": [_pair(pair) for pair in pairs(rows)],
        },
    }


def card(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> ComparabilityCard:
    """The comparability card of the measures on a set."""
    # of predictions made elsewhere the record has none
    pixels = next(filter(None, (row.record.get("pixels_sha256") for row in rows)), None)
    return clean_card(
        [(item.class_index, item.sha256) for item in images.items],
        pixels,
        CardInterval(kind="Wilson", level=0.95),
        {row.name: card_model(row.record) for row in rows},
        images.manifest_sha256,
        of_predictions=images.predicted_classes,
    )


def _model(row: MeasuredModel) -> dict[str, Any]:
    measures, record = row.measures, row.record
    # predictions made elsewhere have the digest of their file instead
    kept = ("source_sha256", "preprocessing", "weights_sha256", "precision", "against_float64", "versions")
    return {
        "model": row.name,
        **_accuracy(measures.overall),
        "top5": None if measures.top5 is None else _accuracy(measures.top5),
        "mean_confidence": measures.mean_confidence,
        "calibration": None if measures.bins is None else _calibration(measures, measures.bins),
        "tiers": {tier: _accuracy(accuracy) for tier, accuracy in measures.tiers.items()},
        "classes": {wnids()[each]: _accuracy(accuracy) for each, accuracy in measures.classes.items()},
        "confusions": [_confusion(each) for each in measures.confusions],
        "deterministic": row.is_deterministic,
        "notes": notes_of(row),
        **{key: record.get(key) for key in kept},
        "predictions": None if row.path is None else row.path.name,
    }


def _calibration(measures: Measures, bins: Sequence[Bin]) -> dict[str, Any]:
    return {"definition": CALIBRATION, "error": measures.calibration_error, "bins": [asdict(each) for each in bins]}


def _confusion(confusion: Confusion) -> dict[str, Any]:
    return {
        "wnid": wnids()[confusion.label],
        "predicted": wnids()[confusion.prediction],
        "images": confusion.images,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "difference": pair.counts.difference,
        "interval": list(pair.interval),
        "p": pair.p,
        "p_holm": pair.p_holm,
        "both": pair.counts.both,
        "neither": pair.counts.neither,
        "only_first": list(pair.only_first),
        "only_second": list(pair.only_second),
    }


def _accuracy(accuracy: Accuracy) -> dict[str, Any]:
    return {
        "images": accuracy.images,
        "correct": accuracy.correct,
        "accuracy": accuracy.share,
        "interval": list(accuracy.interval),
    }
