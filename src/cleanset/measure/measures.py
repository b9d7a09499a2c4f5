"""Measures of a model's predictions: accuracy, top-5 accuracy, calibration, confusions.

Pairs of models on the same images: the paired test, the interval of the difference, the images only one gets.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.statistics.paired import PairedCounts, difference_interval, holm, mcnemar_p, wilson
from cleanset.vocabulary import TIERS

MIN_FOR_CHANCE = 20
"""Images below which an accuracy is not called at chance: of fewer, a poor model may classify none correctly."""
MIN_EXPLAINED = 0.05
"""Accuracy above that of the most frequent class that a renumbering has to reach."""
OFFSET_SHARE = 0.5
"""Share of the renumbered classes that one offset has to explain."""
BINS = 15
"""Bins of confidence for the calibration error, all of the same width."""


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

    @property
    def is_at_chance(self) -> bool:
        """Whether the share is at most that of guessing one of ImageNet's classes."""
        return self.images >= MIN_FOR_CHANCE and self.interval[0] <= 1 / CLASSES


@dataclass(frozen=True, slots=True)
class Bin:
    """The images whose confidence lies above `low` and at most at `high`; `mean_confidence` is None without images."""

    low: float
    high: float
    images: int
    correct: int
    mean_confidence: float | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """A number of images of the class `label` for which the model predicts the class `prediction`."""

    label: int
    prediction: int
    images: int


@dataclass(frozen=True, slots=True)
class Renumbering:
    """A one-to-one renumbering of the predicted classes, fitted to half of the images, and the accuracy of the others.

    `offset`: what was added to nearly every label; None where no single number was.
    """

    accuracy: Accuracy
    offset: int | None


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one model on one set.

    `top5` counts the images whose label is among the five most probable classes; None where only one class is known.
    `mean_confidence` is the mean probability of the top-1 class, correct or not, and `bins` are BINS bins of it; None
    where no probabilities are known. `tiers` has the tiers that have images, in the order in which classes are filled;
    none where the set has no tiers. `classes` has the classes that have images, by class index, sorted. `confusions`
    has all pairs of a label and another prediction, the most frequent first, then by label and prediction. `renumbered`
    explains an accuracy at chance; None where nothing does.
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
        """The expected calibration error (ECE), 0 to 1; None where no probabilities are known."""
        return None if self.bins is None else expected_calibration_error(self.bins)


def measures(predictions: pd.DataFrame) -> Measures:
    """The measures of predictions: a row for each image, with class_index, tier (or None), prediction and correct.

    The columns confidence and top5_class may be missing.
    """
    confidences = predictions["confidence"].astype("float64").tolist() if "confidence" in predictions else None
    correct = predictions["correct"].tolist()
    overall = Accuracy(len(correct), sum(correct))
    tiers = {str(tier): accuracy for tier, accuracy in _by(predictions, "tier")}
    return Measures(
        overall,
        _top5(predictions) if "top5_class" in predictions else None,
        # fsum rounds once, so that the order of the images does not matter
        None if confidences is None else math.fsum(confidences) / len(correct),
        None if confidences is None else tuple(calibration_bins(confidences, correct)),
        {tier: tiers[tier] for tier in TIERS if tier in tiers},
        {int(str(each)): accuracy for each, accuracy in _by(predictions, "class_index")},
        tuple(_confusions(predictions)),
        _renumbering(predictions) if overall.is_at_chance else None,
    )


def _renumbering(predictions: pd.DataFrame) -> Renumbering | None:
    """The renumbering of classes under which the predictions are far better than by chance; None if there is none."""
    labels, predicted = predictions["class_index"].to_numpy(), predictions["prediction"].to_numpy()
    fitted = (predictions.groupby("class_index").cumcount() % 2 == 0).to_numpy()
    counts = Counter(zip(labels[fitted].tolist(), predicted[fitted].tolist(), strict=True))
    prediction_of: dict[int, int] = {}
    taken: set[int] = set()
    for (label, prediction), _ in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        if label not in prediction_of and prediction not in taken:
            prediction_of[label] = prediction
            taken.add(prediction)
    others = labels[~fitted]
    expected = np.array([prediction_of.get(label, -1) for label in others.tolist()])
    if not len(others):
        return None
    found = Accuracy(len(others), int((expected == predicted[~fitted]).sum()))
    # a model that always gives the same answer is as good as the largest class is frequent
    largest = max(Counter(labels.tolist()).values()) / len(labels)
    if found.interval[0] <= MIN_EXPLAINED + largest:
        return None
    offset, times = Counter(prediction - label for label, prediction in prediction_of.items()).most_common(1)[0]
    return Renumbering(found, offset if times >= OFFSET_SHARE * len(prediction_of) else None)


def _by(predictions: pd.DataFrame, column: str) -> Iterator[tuple[object, Accuracy]]:
    """The accuracy of the rows with each value of a column, values sorted; rows without one are left out."""
    for value, correct in predictions.groupby(column, dropna=True)["correct"]:
        yield value, Accuracy(len(correct), int(correct.sum()))


def _top5(predictions: pd.DataFrame) -> Accuracy:
    labels = predictions["class_index"].tolist()
    found = [label in five for label, five in zip(labels, predictions["top5_class"].tolist(), strict=True)]
    return Accuracy(len(found), sum(found))


def _confusions(predictions: pd.DataFrame) -> Iterator[Confusion]:
    wrong = predictions[~predictions["correct"].astype(bool)]
    counts = Counter(zip(wrong["class_index"].tolist(), wrong["prediction"].tolist(), strict=True))
    for (label, prediction), images in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        yield Confusion(label, prediction, images)


def calibration_bins(confidences: Sequence[float], correct: Sequence[bool]) -> Iterator[Bin]:
    """BINS bins of equal width, each open below and closed above, with the images whose confidence lies in it.

    A confidence of 0 belongs to the first.
    """
    edges = [number / BINS for number in range(BINS + 1)]
    # float32 confidences are compared with edges in float64
    places = np.digitize(np.asarray(confidences, np.float64), edges[1:-1], right=True)
    is_correct = np.asarray(correct, bool)
    for number in range(BINS):
        inside = places == number
        values = np.asarray(confidences, np.float64)[inside]
        mean = math.fsum(values) / len(values) if len(values) else None
        yield Bin(edges[number], edges[number + 1], len(values), int(is_correct[inside].sum()), mean)


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """The mean distance of accuracy and mean confidence of the bins, weighted by their images, 0 to 1.

    ECE of C. Guo et al., On Calibration of Modern Neural Networks (ICML 2017), equation 3.
    """
    images = sum(each.images for each in bins)
    gaps = (abs(each.correct - each.images * each.mean_confidence) for each in bins if each.mean_confidence is not None)
    return math.fsum(gaps) / images


TEST = "McNemar, exact, two-sided"
INTERVAL = "Newcombe 1998, method 10, 95 %"
CORRECTION = "Holm, over all pairs"


@dataclass(frozen=True, slots=True)
class Answers:
    """The name of a model, and whether it classifies each image of a set correctly, by file."""

    name: str
    correct: dict[str, bool]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models compared on the same images.

    `counts` are of both, of one and of neither; `p` is McNemar's exact p-value and `p_holm` the same, corrected for
    the number of pairs; `only_first` and `only_second` are the images that only one of them classifies correctly, by
    file, sorted.
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


def pairs_of(answers: Sequence[Answers]) -> list[Pair]:
    """Every two models, the earlier one first. Raises ValueError if they are of different images."""
    found = [(first, second, *_only(first, second)) for first, second in combinations(answers, 2)]
    counts = [_counts(first, only_first, only_second) for first, _, only_first, only_second in found]
    p = [mcnemar_p(each) for each in counts]
    rows = zip(found, counts, p, holm(p), strict=True)
    return [
        Pair(first.name, second.name, each, value, corrected, only_first, only_second)
        for (first, second, only_first, only_second), each, value, corrected in rows
    ]


def _only(first: Answers, second: Answers) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if first.correct.keys() != second.correct.keys():
        raise ValueError(f"{first.name} and {second.name}: predictions of different images")
    files = sorted(file for file in first.correct if first.correct[file] != second.correct[file])
    return tuple(each for each in files if first.correct[each]), tuple(each for each in files if second.correct[each])


def _counts(first: Answers, only_first: Sequence[str], only_second: Sequence[str]) -> PairedCounts:
    both = sum(first.correct.values()) - len(only_first)
    neither = len(first.correct) - both - len(only_first) - len(only_second)
    return PairedCounts(both, len(only_first), len(only_second), neither)
