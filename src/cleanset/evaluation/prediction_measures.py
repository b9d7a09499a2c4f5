"""The measures of one model's predictions: accuracy, top-5 accuracy, calibration, confusions, accuracy at chance."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import pandas as pd
from pydantic import JsonValue

from cleanset.evaluation.measures import Measure
from cleanset.scoring.logits import TOP
from cleanset.statistics.basics import LEVEL, Interval, t_quantile
from cleanset.statistics.calibration import (
    ConfidenceBin,
    calibration_bins,
    calibration_error,
    debiased_calibration_error,
)
from cleanset.statistics.formats import decimal
from cleanset.statistics.groups import Units, mean_interval, share_interval
from cleanset.statistics.numbering import OtherNumbering, other_numbering
from cleanset.statistics.shares import wilson
from cleanset.vocabulary import TIERS

# images below which an accuracy is not called at chance: with fewer, a poor model may classify none correctly
MIN_FOR_CHANCE = 20
# images from which the mean confidence has an interval
MIN_FOR_MEAN = 10


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Number of images, at least one, and of those that are classified correctly."""

    images: int
    correct: int
    by_groups: Interval | None = None
    """The interval by the groups of the images; None if no two images share one."""

    @classmethod
    def of(cls, correct: Iterable[bool], units: Units | None) -> Self:
        """The share of the images that are flagged as correct; `units`: their groups."""
        flags = [*map(bool, correct)]
        return cls(len(flags), sum(flags), None if units is None else share_interval(flags, units))

    @property
    def measure(self) -> Measure:
        """The share with its interval."""
        return Measure.of(self.share, self.interval, images=self.images)

    @property
    def share(self) -> float:
        """The share of the images that are classified correctly, 0 to 1."""
        return self.correct / self.images

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the share; NaN ends if there are too few groups for one."""
        return wilson(self.correct, self.images) if self.by_groups is None else self.by_groups

    def is_at_chance(self, classes: int) -> bool:
        """Whether the share is not above that of predictions drawn from this many classes at random, beyond doubt."""
        return self.images >= MIN_FOR_CHANCE and self.interval[0] <= 1 / classes

    def as_json(self) -> dict[str, JsonValue]:
        """The numbers, the share and its interval."""
        found = self.measure.as_json()
        return {
            "images": self.images,
            "correct": self.correct,
            "accuracy": found["value"],
            "interval": found["interval"],
        }


@dataclass(frozen=True, slots=True, order=True)
class Confusion:
    """A number of images of one class for which a model predicts another."""

    label: int
    """The class index of the images."""

    prediction: int
    """The class index that is predicted."""

    images: int


FAR_BELOW = 20
"""How many times the mean confidence an accuracy has to be before the confidences are noted."""
NEARLY_CERTAIN = 0.999
"""Mean confidence that is noted at an accuracy that is lower by more than FAR_ABOVE."""
FAR_ABOVE = 0.1


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one model on one set."""

    overall: Accuracy
    top5: Accuracy | None
    """The images whose label is among the five most probable classes; None where only one class of each image is known,
    or with fewer than five classes."""

    mean_confidence: float | None
    """The mean probability of the top-1 class, correct or not, 0 to 1; None if no probabilities are known."""

    bins: tuple[ConfidenceBin, ...] | None
    """Bins of the confidence; None if no probabilities are known."""

    tiers: dict[str, Accuracy]
    """The tiers that have images, in the order of filling a class; empty if the set has no tiers."""

    classes: dict[int, Accuracy]
    """The classes that have images, by class index, sorted."""

    confusions: tuple[Confusion, ...]
    """All pairs of a label and another prediction, the most frequent first, then by label and prediction."""

    renumbered: OtherNumbering | None = None
    """A numbering of the classes that explains the predictions far better; None if there is none."""

    confidence_interval: tuple[float, float] | None = None
    """The 95 % interval of the mean confidence over images, by t; None from fewer than MIN_FOR_MEAN images."""

    calibration_error: float | None = None
    """The debiased expected calibration error, 0 to 1; None if no probabilities are known."""

    @property
    def unlikely_confidence(self) -> str | None:
        """Confidences so far from the accuracy that the outputs are likely on another scale, in words; else None."""
        found = self.mean_confidence
        if found is None or self.overall.images < MIN_FOR_CHANCE:
            return None
        share = self.overall.share
        if found < share / FAR_BELOW or (found > NEARLY_CERTAIN and share < 1 - FAR_ABOVE):
            return (
                f"mean confidence {decimal(found, 4)} at an accuracy of {decimal(share, 4)}: its outputs are likely on "
                "another scale than logits"
            )
        return None

    @property
    def published_calibration_error(self) -> float | None:
        """The expected calibration error as published, 0 to 1, too high for few images; None without probabilities."""
        return None if self.bins is None else calibration_error(self.bins)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredMeasure:
    """A measure that every table, the page and the results of `evaluate` have."""

    name: str
    """Its key in the results."""

    title: str
    """The title of its column."""

    of: Callable[[Measures], Measure]
    """The measure, without a value if it is not known."""

    factor: float = 100
    """Shown is the value times it: 100 for percent."""

    unit: str = ""
    """Behind the value in a terminal."""

    meaning: str = ""
    """A sentence below the tables."""

    needs_five_classes: bool = False
    """Whether its column is left out with fewer classes."""


NO_TOP5 = "one predicted class of each image is known"
NO_PROBABILITIES = "no probabilities are known"
"""Reasons for missing measures."""

MEASURES = (
    DeclaredMeasure(
        name="accuracy",
        title="accuracy",
        of=lambda found: found.overall.measure,
        unit=" %",
        meaning="Interval: Wilson's; for confidence, the mean probability of the top-1 class, by t.",
    ),
    DeclaredMeasure(
        name="top5",
        title="top-5",
        of=lambda found: Measure(problem=NO_TOP5) if found.top5 is None else found.top5.measure,
        needs_five_classes=True,
    ),
    DeclaredMeasure(
        name="mean_confidence",
        title="confidence",
        of=lambda found: Measure.of(found.mean_confidence, found.confidence_interval, NO_PROBABILITIES),
        factor=1,
    ),
    DeclaredMeasure(
        name="calibration",
        title="ECE",
        # without an interval, and biased by some hundredths where images are few
        of=lambda found: Measure.of(found.calibration_error, problem=NO_PROBABILITIES),
        factor=1,
        meaning="ECE: expected calibration error, 15 bins, debiased; of few images still some hundredths too high.",
    ),
)
"""The measures of `evaluate`, in the order of its columns."""


def measure_predictions(predictions: pd.DataFrame, classes: int, units: Units | None = None) -> Measures:
    """The measures of predictions, a row for each image: with class_index, tier (or None), prediction and correct.

    The columns confidence and top5_class may be missing. `classes`: the number of classes that were predicted among.
    `units`: the groups of the images.
    """
    predictions = predictions.reset_index(drop=True)
    correct = predictions["correct"].astype(bool)
    labels = predictions["class_index"]
    overall = Accuracy.of(correct, units)
    top5 = None
    if "top5_class" in predictions and classes >= TOP:
        pairs = zip(labels, predictions["top5_class"], strict=True)
        top5 = Accuracy.of((label in five for label, five in pairs), units)
    mean_confidence = None
    interval = None
    bins = None
    error = None
    if "confidence" in predictions:
        confidences = predictions["confidence"].astype("float64").tolist()
        # fsum rounds once, so that the order of the images does not matter
        mean_confidence = math.fsum(confidences) / len(correct)
        interval = _interval_of_mean(confidences, mean_confidence, units)
        bins = calibration_bins(confidences, correct.tolist())
        error = debiased_calibration_error(confidences, correct.tolist())
    of_tier = {str(tier): each for tier, each in _by(predictions, "tier", units)}
    of_class = {int(str(index)): each for index, each in _by(predictions, "class_index", units)}
    return Measures(
        overall=overall,
        top5=top5,
        mean_confidence=mean_confidence,
        bins=bins,
        tiers={tier: of_tier[tier] for tier in TIERS if tier in of_tier},
        classes=of_class,
        confidence_interval=interval,
        calibration_error=error,
        confusions=tuple(_pair_counts(labels[~correct], predictions["prediction"][~correct])),
        renumbered=other_numbering(labels.tolist(), predictions["prediction"].tolist()),
    )


def _by(predictions: pd.DataFrame, column: str, units: Units | None) -> Iterator[tuple[object, Accuracy]]:
    """Yield the accuracy on the rows of each value of a column."""
    for value, of_rows in predictions.groupby(column, dropna=True)["correct"]:
        yield value, Accuracy.of(of_rows, None if units is None else units.only(of_rows.index))


def _interval_of_mean(values: list[float], mean: float, units: Units | None) -> tuple[float, float] | None:
    """The interval of a mean over images, by t, within 0 to 1; None from fewer than MIN_FOR_MEAN images or groups."""
    count = len(values)
    if (count if units is None else units.count) < MIN_FOR_MEAN:
        return None
    if units is not None:
        low, high = mean_interval(values, units)
        return max(0.0, low), min(1.0, high)
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = t_quantile((1 + LEVEL) / 2, count - 1) * error
    return max(0.0, mean - half), min(1.0, mean + half)


def _pair_counts(labels: "pd.Series[int]", predicted: "pd.Series[int]") -> list[Confusion]:
    """The number of images of each pair of label and prediction, the most frequent first, then by both."""
    counts = Counter(zip(labels.tolist(), predicted.tolist(), strict=True))
    found = [Confusion(label, prediction, images) for (label, prediction), images in counts.items()]
    return sorted(found, key=lambda each: (-each.images, each.label, each.prediction))
