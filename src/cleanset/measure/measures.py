"""Measures of predictions: accuracy, top-5 accuracy, calibration, confusions; and models side by side.

Models side by side have an order, pairs (paired test, interval of the difference, images that only one classifies
correctly), notes, a comparability card, and JSON.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.json_files import with_digest
from cleanset.measure.comparability import (
    CLEAN_ACCURACY,
    CardClasses,
    CardImages,
    CardInterval,
    ComparabilityCard,
    card_model,
    images_digest,
)
from cleanset.measure.sets import EvaluationSet
from cleanset.statistics.calibration import BIN_EDGES, CALIBRATION_BINS, bins_of
from cleanset.statistics.finite import in_percent
from cleanset.statistics.paired import PairedCounts, difference_interval, holm, mcnemar_p, wilson
from cleanset.vocabulary import TIERS

# images below which an accuracy is not called at chance: of fewer, a poor model may classify none correctly
MIN_FOR_CHANCE = 20
# accuracy above that of the most frequent class that a renumbering has to reach
MIN_EXPLAINED = 0.05
# share of the renumbered classes that one offset has to explain
OFFSET_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Number of images, at least one, and of those that are classified correctly."""

    images: int
    correct: int

    @property
    def share(self) -> float:
        """The share of the images that are classified correctly, 0 to 1."""
        return self.correct / self.images

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson(self.correct, self.images)

    def is_at_chance(self, classes: ClassTable) -> bool:
        """Whether the share is at most chance: that of predictions drawn from the classes at random."""
        return self.images >= MIN_FOR_CHANCE and self.interval[0] <= 1 / len(classes)

    def as_json(self) -> dict[str, Any]:
        """The numbers, the share and its interval."""
        return {**asdict(self), "accuracy": self.share, "interval": list(self.interval)}


@dataclass(frozen=True, slots=True)
class Bin:
    """The images whose confidence lies above `low` and at most at `high`; `mean_confidence` is None without images."""

    low: float
    high: float
    images: int
    correct: int
    mean_confidence: float | None


class Confusion(NamedTuple):
    """A number of images of the class `label` for which the model predicts the class `prediction`."""

    label: int
    prediction: int
    images: int


@dataclass(frozen=True, slots=True)
class Renumbering:
    """A one-to-one renumbering of the predicted classes, fitted to half of the images, and the accuracy of the others.

    `offset`: the number added to nearly every label; None without such a number.
    """

    accuracy: Accuracy
    offset: int | None


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one model on one set.

    `top5` counts the images whose label is among the five most probable classes; None where only one class is known, or
    fewer than five classes are known. `mean_confidence` is the mean probability of the top-1 class, correct or
    not, and `bins` are CALIBRATION_BINS bins of it; None where no probabilities are known. `tiers` has the tiers that
    have images, in the order of filling a class; empty if the set has no tiers. `classes` has the classes that have
    images, by class index, sorted. `confusions` has all pairs of a label and another prediction, the most frequent
    first, then by label and prediction. `renumbered` explains an accuracy at chance; None where nothing does.
    """

    overall: Accuracy
    top5: Accuracy | None
    mean_confidence: float | None
    bins: tuple[Bin, ...] | None
    tiers: dict[str, Accuracy]
    classes: dict[int, Accuracy]
    confusions: tuple[Confusion, ...]
    renumbered: Renumbering | None = None

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error (ECE), 0 to 1; None where no probabilities are known.

        The mean distance of accuracy and mean confidence of the bins, weighted by their images: C. Guo et al., On
        Calibration of Modern Neural Networks (ICML 2017), equation 3.
        """
        if self.bins is None:
            return None
        means = ((each, each.mean_confidence) for each in self.bins)
        gaps = (abs(each.correct - each.images * mean) for each, mean in means if mean is not None)
        return math.fsum(gaps) / self.overall.images


def measures(predictions: pd.DataFrame, classes: ClassTable) -> Measures:
    """The measures of predictions, a row for each image: with class_index, tier (or None), prediction and correct.

    `classes` are those that were predicted among. The columns confidence and top5_class may be missing.
    """
    confidences = predictions["confidence"].astype("float64").tolist() if "confidence" in predictions else None
    correct = predictions["correct"].astype(bool)
    labels = predictions["class_index"]
    overall = _accuracy(correct)
    tiers = _by(predictions, "tier")
    top5 = None
    if "top5_class" in predictions and classes.has_top5:
        top5 = _accuracy([label in five for label, five in zip(labels, predictions["top5_class"], strict=True)])
    wrong = _counts(labels[~correct], predictions["prediction"][~correct])
    return Measures(
        overall,
        top5,
        # fsum rounds once, so that the order of the images does not matter
        None if confidences is None else math.fsum(confidences) / len(correct),
        None if confidences is None else tuple(calibration_bins(confidences, correct.tolist())),
        {tier: tiers[tier] for tier in TIERS if tier in tiers},
        {int(each): accuracy for each, accuracy in _by(predictions, "class_index").items()},
        tuple(Confusion(*pair, images) for pair, images in wrong),
        _renumbering(predictions) if overall.is_at_chance(classes) else None,
    )


def _accuracy(correct: Iterable[bool]) -> Accuracy:
    values = [*map(bool, correct)]
    return Accuracy(len(values), sum(values))


def _by(predictions: pd.DataFrame, column: str) -> dict[Any, Accuracy]:
    """The accuracy of the rows with each value of a column, values sorted; rows without one are left out."""
    return {value: _accuracy(correct) for value, correct in predictions.groupby(column, dropna=True)["correct"]}


def _counts(labels: "pd.Series[Any]", predicted: "pd.Series[Any]") -> list[tuple[tuple[int, int], int]]:
    """The number of images of each pair of label and prediction, the most frequent first, then by both."""
    counts = Counter(zip(labels.tolist(), predicted.tolist(), strict=True))
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _renumbering(predictions: pd.DataFrame) -> Renumbering | None:
    """The renumbering of classes under which the predictions are far better than by chance; None if there is none."""
    labels = predictions["class_index"]
    predicted = predictions["prediction"]
    fitted = predictions.groupby("class_index").cumcount() % 2 == 0
    if fitted.all():
        return None
    prediction_of: dict[int, int] = {}
    for (label, prediction), _ in _counts(labels[fitted], predicted[fitted]):
        if label not in prediction_of and prediction not in prediction_of.values():
            prediction_of[label] = prediction
    found = _accuracy(labels[~fitted].map(prediction_of) == predicted[~fitted])
    # a model that always gives the same answer is as good as the largest class is frequent
    if found.interval[0] <= MIN_EXPLAINED + labels.value_counts(normalize=True).max():
        return None
    offset, times = Counter(prediction - label for label, prediction in prediction_of.items()).most_common(1)[0]
    return Renumbering(found, offset if times >= OFFSET_SHARE * len(prediction_of) else None)


def calibration_bins(confidences: Sequence[float], correct: Sequence[bool]) -> Iterator[Bin]:
    """The CALIBRATION_BINS bins, with the images whose confidence lies in each."""
    places = bins_of(confidences)
    is_correct = np.asarray(correct, bool)
    for number in range(CALIBRATION_BINS):
        inside = places == number
        values = np.asarray(confidences, np.float64)[inside]
        mean = math.fsum(values) / len(values) if len(values) else None
        yield Bin(BIN_EDGES[number], BIN_EDGES[number + 1], len(values), int(is_correct[inside].sum()), mean)


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model with its measures; `record` gives the provenance of its predictions, `path` where they are.

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

    @property
    def misses(self) -> Counter[str]:
        """The misclassified images, by file."""
        return Counter(file for file, is_correct in self.correct.items() if not is_correct)


def measured(
    name: str, predictions: pd.DataFrame, classes: ClassTable, record: dict[str, Any], path: Path | None = None
) -> MeasuredModel:
    """The measures of predictions that have the columns of `checked_table`."""
    correct = dict(zip(predictions["file"].tolist(), map(bool, predictions["correct"]), strict=True))
    return MeasuredModel(name, measures(predictions, classes), record, path, correct)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models compared on the same images.

    `counts` are of both, of one and of neither; `p` is McNemar's exact p-value and `p_holm` the same, corrected for
    the number of pairs; `only_first` and `only_second` are the images that only one of them classifies correctly, by
    file, or of stored results as in their `misclassified`, sorted.
    """

    first: str
    second: str
    counts: PairedCounts
    p: float
    p_holm: float
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference of the accuracies."""
        return difference_interval(self.counts)

    def as_json(self) -> dict[str, Any]:
        """The comparison for programs."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.counts.difference,
            "interval": list(self.interval),
            "p": self.p,
            "p_holm": self.p_holm,
            "both": self.counts.both,
            "neither": self.counts.neither,
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
        }


def pairs_of(models: Iterable[tuple[str, Counter[str]]], images: int) -> list[Pair]:
    """Every two models, the earlier one first. `models`: the name of each, and its misclassified images."""
    rows = []
    for (first, of_first), (second, of_second) in combinations(models, 2):
        only_first = of_second - of_first
        only_second = of_first - of_second
        only = (only_first.total(), only_second.total())
        neither = (of_first & of_second).total()
        counts = PairedCounts(images - sum(only) - neither, *only, neither)
        files = (tuple(sorted(each.elements())) for each in (only_first, only_second))
        rows.append(Pair(first, second, counts, p := mcnemar_p(counts), p, *files))
    corrected = holm([pair.p for pair in rows])
    return [replace(pair, p_holm=p) for pair, p in zip(rows, corrected, strict=True)]


def by_accuracy(rows: Sequence[MeasuredModel]) -> list[MeasuredModel]:
    """The models by accuracy, the highest first; equal ones in the given order."""
    return sorted(rows, key=lambda row: -row.measures.overall.share)


def pairs(rows: Sequence[MeasuredModel]) -> list[Pair]:
    """Every two models, the more accurate one first."""
    order = by_accuracy(rows)
    return pairs_of([(row.name, row.misses) for row in order], len(order[0].correct))


def not_deterministic(name: str) -> str:
    """The note on a model whose answers depend on more than the image."""
    return (
        f"{name} is not deterministic: the same images got other scores in a second run or another batch, so "
        "its numbers vary"
    )


def notes_of(row: MeasuredModel, classes: ClassTable) -> list[str]:
    """Notes for readers of a model's measures, in sentences."""
    notes = []
    found = row.measures.renumbered
    if row.is_deterministic is False:
        notes.append(not_deterministic(row.name))
    if row.measures.overall.is_at_chance(classes):
        order = "the order of the wnids" if classes.is_imagenet else "the order of classes.tsv"
        predicted = "ImageNet's classes, in the order of their wnids" if classes.is_imagenet else order
        why = f"expected a trained model that predicts {predicted}"
        if found is not None:
            by = "" if found.offset is None else f", each by {found.offset:+d}"
            why = (
                f"its classes are probably numbered otherwise: renumbered to fit half of the images{by}, "
                f"{in_percent(found.accuracy.share):.2f} % of the others are correct; expected {order}"
            )
        notes.append(f"{row.name}: accuracy at chance; {why}")
    return notes


def as_json(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> str:
    """The set, and every model with all of its measures, by accuracy."""
    return json.dumps(with_digest(content(images, rows)), indent=2)


def content(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> dict[str, Any]:
    """The content of the JSON; shares and confidences are between 0 and 1."""
    return {
        "set": {
            "name": images.name,
            "kind": images.kind,
            "images": len(images.items),
            "classes": images.class_count,
            "checked_against": images.checked,
            "notes": list(images.notes),
        },
        "interval": "Wilson, 95 %",
        "comparability": card(images, rows).as_json(),
        "models": [_model(images, row) for row in by_accuracy(rows)],
        "pairs": {
            "test": "McNemar, exact, two-sided",
            "interval": "Newcombe 1998, method 10, 95 %",
            "correction": "Holm, over all pairs",
            "of": [pair.as_json() for pair in pairs(rows)],
        },
    }


def card(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> ComparabilityCard:
    """The comparability card of the measures on a set."""
    digests = [(item.class_index, item.sha256) for item in images.items]
    return ComparabilityCard(
        measured=CLEAN_ACCURACY,
        images=CardImages(count=len(digests), sha256=images_digest(digests), manifest_sha256=images.manifest_sha256),
        classes=CardClasses(of_images=images.class_count, of_predictions=images.predicted_classes),
        # of predictions made elsewhere the record has none
        pixels_sha256=next(filter(None, (row.record.get("pixels_sha256") for row in rows)), None),
        interval=CardInterval(kind="Wilson", level=0.95),
        models={row.name: card_model(row.record) for row in rows},
    )


def _model(images: EvaluationSet, row: MeasuredModel) -> dict[str, Any]:
    found = row.measures
    column = images.classes.key_column
    keys = images.classes.keys
    # predictions made elsewhere have the digest of their file instead
    kept = ("source_sha256", "preprocessing", "weights_sha256", "precision", "against_float64", "versions")
    calibration = None
    if found.bins is not None:
        bins = [asdict(each) for each in found.bins]
        definition = "ECE of Guo et al. 2017, 15 bins of equal width"
        calibration = {"definition": definition, "error": found.calibration_error, "bins": bins}
    return {
        "model": row.name,
        **found.overall.as_json(),
        "top5": None if found.top5 is None else found.top5.as_json(),
        "mean_confidence": found.mean_confidence,
        "calibration": calibration,
        "tiers": {tier: accuracy.as_json() for tier, accuracy in found.tiers.items()},
        "classes": {keys[each]: accuracy.as_json() for each, accuracy in found.classes.items()},
        "confusions": [
            {column: keys[each.label], "predicted": keys[each.prediction], "images": each.images}
            for each in found.confusions
        ],
        # by class and bytes, so that results on the same images are compared whatever their names
        "misclassified": sorted(
            f"{item.class_index} {item.sha256[:16]}" for item in images.items if not row.correct[item.file]
        ),
        "deterministic": row.is_deterministic,
        "notes": notes_of(row, images.classes),
        **{key: row.record.get(key) for key in kept},
        "predictions": None if row.path is None else row.path.name,
    }
