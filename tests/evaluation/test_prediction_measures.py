import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cleanset.evaluation.prediction_measures import (
    Accuracy,
    Confusion,
    measure_predictions,
)
from cleanset.statistics.calibration import CALIBRATION_BINS, ConfidenceBin, calibration_bins


def test_the_measures_of_five_predictions() -> None:
    rows = [
        (7, "relaxed", 7, 0.5, [7, 1, 2, 3, 4]),
        (7, "top5", 7, 0.75, [7, 1, 2, 3, 4]),
        (999, "top5", 3, 1.0, [3, 999, 2, 1, 4]),
        (7, "top5", 0, 0.25, [0, 1, 2, 3, 4]),
        (0, "relaxed", 0, 0.5, [0, 1, 2, 3, 4]),
    ]
    frame = pd.DataFrame(rows, columns=["class_index", "tier", "prediction", "confidence", "top5_class"])
    found = measure_predictions(frame.assign(correct=frame["prediction"] == frame["class_index"]), 1000)
    assert found.overall == Accuracy(5, 3)
    assert found.top5 == Accuracy(5, 4)
    assert found.mean_confidence == 0.6
    assert found.tiers == {"top5": Accuracy(3, 1), "relaxed": Accuracy(2, 2)}
    assert found.classes == {0: Accuracy(1, 1), 7: Accuracy(3, 2), 999: Accuracy(1, 0)}
    assert list(found.tiers) == ["top5", "relaxed"]
    assert list(found.classes) == [0, 7, 999]
    assert found.overall.share == 0.6
    assert math.isclose(found.overall.interval[0], 0.2307, abs_tol=5e-5)
    assert found.confusions == (Confusion(7, 0, 1), Confusion(999, 3, 1))
    assert found.bins is not None
    assert [(each.images, each.correct) for each in found.bins if each.images] == [(1, 0), (2, 2), (1, 1), (1, 0)]
    # each bin has one confidence: (|0 - .25| + 2 |1 - .5| + |1 - .75| + |0 - 1|) / 5
    assert found.published_calibration_error == 0.5
    # of single images, whose variance is that of a calibrated model: s = sqrt(.25 * .75) = .433 of the gaps .25 and s,
    # by hand with a table of the normal distribution; two images at .5 are all correct; a sure one has no variance
    folded = 0.433013 * math.sqrt(2 / math.pi) * math.exp(-(0.57735**2) / 2) + 0.25 * 0.436297
    assert found.calibration_error == pytest.approx((2 * (2 * 0.25 - folded) + 2 * 0.5 + 1) / 5, abs=1e-5)


def test_what_is_not_known_is_none() -> None:
    frame = pd.DataFrame({"class_index": [3], "tier": [None], "prediction": [3], "correct": [True]})
    found = measure_predictions(frame, 1000)
    assert (found.overall, found.tiers, found.classes) == (Accuracy(1, 1), {}, {3: Accuracy(1, 1)})
    assert (found.top5, found.mean_confidence, found.bins, found.calibration_error) == (None, None, None, None)
    assert found.confusions == ()


def test_the_most_frequent_confusion_comes_first() -> None:
    pairs = [(5, 4), (3, 9), (3, 2), (5, 4), (1, 1)]
    labels, predictions = map(list, zip(*pairs, strict=True))
    correct = [label == prediction for label, prediction in pairs]
    frame = {"class_index": labels, "prediction": predictions, "correct": correct, "tier": [None] * 5}
    found = measure_predictions(pd.DataFrame(frame), 1000)
    assert found.confusions == (
        Confusion(5, 4, 2),
        Confusion(3, 2, 1),
        Confusion(3, 9, 1),
    )


@pytest.mark.parametrize(("confidence", "place"), [(0.0, 0), (1 / 15, 0), (0.0667, 1), (0.5, 7), (1.0, 14)])
def test_a_bin_is_open_below_and_closed_above(confidence: float, place: int) -> None:
    found = list(calibration_bins([confidence], [True]))
    assert [each.images for each in found] == [int(number == place) for number in range(CALIBRATION_BINS)]
    assert found[place] == ConfidenceBin(place / 15, (place + 1) / 15, 1, 1, confidence)


def ece_of_guo(confidences: Sequence[float], correct: Sequence[bool]) -> float:
    """As the authors of the paper compute it: bin by bin, over the images whose confidence is in the bin."""
    confidence, accurate = np.asarray(confidences), np.asarray(correct, float)
    edges = np.linspace(0, 1, 16)
    error = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            error += abs(confidence[inside].mean() - accurate[inside].mean()) * inside.mean()
    return error


@pytest.mark.long
@given(st.lists(st.tuples(st.floats(2**-10, 1, width=32), st.booleans()), min_size=1, max_size=60))
def test_the_calibration_error_is_that_of_its_authors(rows: list[tuple[float, bool]]) -> None:
    confidences, correct = zip(*rows, strict=True)
    frame = pd.DataFrame({"class_index": 1, "tier": None, "prediction": correct, "correct": correct})
    found = measure_predictions(frame.assign(confidence=confidences), 1000).published_calibration_error
    assert found == pytest.approx(ece_of_guo(confidences, correct), abs=1e-12)


def predicted(labels: Sequence[int], predictions: Sequence[int]) -> pd.DataFrame:
    frame = pd.DataFrame({"class_index": labels, "tier": None, "prediction": predictions})
    return frame.assign(correct=frame["prediction"] == frame["class_index"])


def test_classes_that_are_numbered_otherwise_are_found() -> None:
    """Ten classes of six images; the model is a sixth of the time mistaken, and counts from 1, or alphabetically."""
    labels = [label for label in range(10) for _ in range(6)]
    answers = [label if place else 500 for label in range(10) for place in range(6)]
    assert measure_predictions(predicted(labels, answers), 1000).renumbered is None
    found = measure_predictions(predicted(labels, [each + 1 for each in answers]), 1000)
    assert found.overall.is_at_chance(1000)
    assert found.renumbered is not None
    assert (found.renumbered.correct, found.renumbered.images, found.renumbered.offset) == (30, 30, 1)
    shuffled = [137 * each % 1000 + 20 for each in answers]
    other = measure_predictions(predicted(labels, shuffled), 1000).renumbered
    assert other is not None
    assert (other.correct, other.images, other.offset) == (30, 30, None)
    assert other.moved == {label: 137 * label + 20 for label in range(7)} | {7: 979, 8: 116, 9: 253}


@pytest.mark.parametrize("kind", ["random", "constant", "one image a class", "few"])
def test_no_renumbering_explains_chance(kind: str) -> None:
    labels = [label for label in range(100) for _ in range(3)]
    answers = {
        "random": np.random.default_rng(0).integers(100, 1000, len(labels)).tolist(),
        "constant": [999] * len(labels),
        "one image a class": [label + 200 for label in range(100)],
        "few": [500] * 5,
    }[kind]
    labels = list(range(100)) if kind == "one image a class" else labels[: len(answers)]
    found = measure_predictions(predicted(labels, answers), 1000)
    assert found.renumbered is None
    assert found.overall.is_at_chance(1000) == (kind != "few")


@pytest.mark.long
def test_the_debiased_error_is_nearer_to_the_truth() -> None:
    """200 sets of 100 images: a calibrated model, and one that is .1 too confident in every image."""
    random = np.random.default_rng(0)
    for excess in (0.0, 0.1):
        errors = []
        for _ in range(200):
            confidences = random.beta(4, 2, 100).clip(excess, 1)
            correct = random.random(100) < confidences - excess
            frame = pd.DataFrame({"class_index": 1, "tier": None, "prediction": 1, "correct": correct})
            found = measure_predictions(frame.assign(confidence=confidences), 1000)
            errors.append((found.published_calibration_error, found.calibration_error))
        published, debiased = np.mean(np.array(errors, float), axis=0) - excess
        assert published > 0.04
        assert abs(debiased) < 0.65 * published


def test_the_mean_confidence_has_an_interval_for_ten_images_or_more() -> None:
    confidences = [0.5, 0.6, 0.7, 0.8, 0.9, 0.5, 0.6, 0.7, 0.8, 1.0]
    frame = pd.DataFrame({"class_index": 1, "tier": None, "prediction": 1, "correct": True, "confidence": confidences})
    found = measure_predictions(frame, 1000)
    expected = stats.t.interval(0.95, 9, np.mean(confidences), stats.sem(confidences))
    assert found.confidence_interval == pytest.approx(expected, abs=1e-4)
    assert measure_predictions(frame[:9], 1000).confidence_interval is None
