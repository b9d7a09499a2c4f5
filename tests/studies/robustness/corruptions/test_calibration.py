"""ECE and NLL against sums in plain Python; effective robustness against a fitted line."""

import math

import numpy as np
import pandas as pd
import pytest

from cleanset.evaluation.prediction_measures import measure_predictions
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.statistics.calibration import CALIBRATION_BINS, debiased_calibration_error
from cleanset.studies.robustness.corruptions.measures import UNIT, effective_robustness, sampled_ece, sampled_nll
from cleanset.studies.robustness.corruptions.params import CORRUPTIONS
from cleanset.studies.robustness.sampled import Sampled
from cleanset.studies.robustness.sections import CLEAN
from tests.studies.robustness.corruptions.test_measures import answers, line, study

RESAMPLES = Bootstrap(resamples=50).resample([0, 0, 1, 1, 1, 2, 2, 0])


def ece_by_hand(confidences: list[float], correct: list[bool]) -> float:
    """Bin by bin, as the paper defines it: the bins (0, 1/15], (1/15, 2/15] and so on."""
    total = 0.0
    for place in range(CALIBRATION_BINS):
        inside = [
            i for i, each in enumerate(confidences) if place / CALIBRATION_BINS < each <= (place + 1) / CALIBRATION_BINS
        ]
        if inside:
            accuracy = sum(correct[i] for i in inside) / len(inside)
            confidence = sum(confidences[i] for i in inside) / len(inside)
            total += len(inside) / len(confidences) * abs(accuracy - confidence)
    return total


def debiased_by_hand(confidences: list[list[float]], correct: list[list[bool]]) -> float:
    """Bin by bin in plain Python; the mean distance of noise as an integral over it, in small steps."""
    total = 0.0
    for place in range(CALIBRATION_BINS):
        inside = [
            [
                (each, is_correct)
                for each, is_correct in zip(*of_image, strict=True)
                if place / CALIBRATION_BINS < each <= (place + 1) / CALIBRATION_BINS
            ]
            for of_image in zip(confidences, correct, strict=True)
        ]
        images = [each for each in inside if each]
        answers = [pair for each in images for pair in each]
        if not answers:
            continue
        accuracy = sum(is_correct for _, is_correct in answers) / len(answers)
        mean = sum(each for each, _ in answers) / len(answers)
        sums = [sum(is_correct - accuracy for _, is_correct in each) for each in images]
        variance = sum(each**2 for each in sums) / len(answers) ** 2
        variance *= len(images) / (len(images) - 1) if len(images) > 1 else 0
        if len(images) == 1:
            variance = mean * (1 - mean)
        gap = abs(accuracy - mean)
        steps = [(number + 0.5) / 500 - 8 for number in range(8000)]
        weights = [math.exp(-(step**2) / 2) for step in steps]
        of_noise = sum(
            weight * abs(gap + math.sqrt(variance) * step) for step, weight in zip(steps, weights, strict=True)
        ) / sum(weights)
        total += len(answers) * (2 * gap - of_noise)
    return max(0.0, total / sum(map(len, confidences)))


@pytest.mark.parametrize(("images", "answers"), [(40, 5), (40, 1), (6, 5), (1, 3)])
def test_ece_is_debiased_by_the_noise_of_each_bin(images: int, answers: int) -> None:
    """Several answers to an image are not independent: often all of them are correct, or none."""
    generator = np.random.default_rng(3)
    confidences = generator.random((images, answers)).round(4)
    correct = generator.random((images, answers)) < generator.choice([0.1, 0.9], (images, 1))
    found = sampled_ece(confidences, correct, Bootstrap(resamples=4).resample(np.zeros(max(images, 2), np.int64)))
    assert found.value == pytest.approx(debiased_by_hand(confidences.tolist(), correct.tolist()), abs=1e-5)
    plain = ece_by_hand(confidences.ravel().tolist(), correct.ravel().tolist())
    assert 0 < found.value < plain
    assert np.isnan(found.interval()).all()


def test_a_copy_of_each_answer_changes_nothing() -> None:
    """Five answers that are always the same say no more than one; five times as many images would."""
    generator = np.random.default_rng(5)
    confidences = generator.random((30, 1))
    correct = generator.random((30, 1)) < 0.6
    one = debiased_calibration_error(confidences, correct)
    assert debiased_calibration_error(confidences.repeat(5, axis=1), correct.repeat(5, axis=1)) == pytest.approx(one)
    assert debiased_calibration_error(confidences.repeat(5, axis=0), correct.repeat(5, axis=0)) > one + 0.02


def test_evaluate_finds_the_same_error_of_the_same_answers() -> None:
    generator = np.random.default_rng(7)
    confidences = generator.random(34)
    correct = generator.random(34) < confidences
    frame = pd.DataFrame({"class_index": 1, "tier": None, "prediction": 1, "correct": correct})
    evaluated = measure_predictions(frame.assign(confidence=confidences), 1000).calibration_error
    resamples = Bootstrap(resamples=4).resample(np.zeros(34, np.int64))
    assert sampled_ece(confidences[:, None], correct[:, None], resamples).value == pytest.approx(evaluated, abs=2**-20)


def test_a_calibrated_model_is_not_below_0() -> None:
    confidences, correct = np.full((40, 1), 0.5), np.arange(40)[:, np.newaxis] % 2 == 0
    assert sampled_ece(confidences, correct, Bootstrap(resamples=4).resample(np.zeros(40, np.int64))).value == 0


def test_the_literal_cases() -> None:
    sure = np.ones((8, 2))
    assert sampled_ece(sure, np.ones((8, 2), np.bool_), RESAMPLES).value == 0
    assert sampled_ece(sure, np.zeros((8, 2), np.bool_), RESAMPLES).value == 1
    nll = sampled_nll(np.array([[math.log(2), 0.0]] * 8), RESAMPLES)
    assert nll.value == pytest.approx(math.log(2) / 2, abs=UNIT)
    assert nll.by_image is not None
    assert nll.by_image.tolist() == pytest.approx([math.log(2) / 2] * 8, abs=UNIT)


def test_answers_that_differ_by_rounding_have_the_same_measures() -> None:
    """Processors differ in the last bits of a loss and of a confidence."""
    losses = np.linspace(0.01, 3, 16).reshape(8, 2)
    others = np.nextafter(losses, 9)
    one, other = (sampled_nll(each, RESAMPLES) for each in (losses, others))
    assert losses.sum() != others.sum()
    assert (one.value, one.draws.tolist()) == (other.value, other.draws.tolist())
    confidences, correct = np.linspace(0.1, 0.9, 16).reshape(8, 2), np.arange(16).reshape(8, 2) % 3 == 0
    found, again = (sampled_ece(each, correct, RESAMPLES).value for each in (confidences, confidences - 1e-15))
    assert found == again


def test_measures_of_a_study() -> None:
    whole = study()
    lines = list(whole.lines())
    one = whole.answers["b"]
    wrong, confidences, losses = (one["fog"][..., place] for place in range(3))
    resamples = whole.images.bootstrap.resample(whole.images.class_indices)
    expected = sampled_ece(confidences, wrong == 0, resamples).value
    plain = ece_by_hand(confidences.ravel().tolist(), (wrong == 0).ravel().tolist())
    assert 0 < line(lines, "union", "b", "ece", "fog").value < plain
    assert line(lines, "union", "b", "ece", "fog").value == expected
    assert np.isnan(line(lines, "union", "b", "mean_ece").low)
    assert line(lines, "union", "b", "nll", "fog").value == pytest.approx(losses.mean(), abs=UNIT)
    each = [line(lines, "union", "b", "ece", name).value for name in CORRUPTIONS]
    assert line(lines, "union", "b", "mean_ece").value == pytest.approx(sum(each) / 15)
    assert line(lines, "union", "b", "nll_clean").value == pytest.approx(one[CLEAN][..., 2].mean(), abs=UNIT)
    chosen = [0, 1, 3, 4, 6, 7]
    mean = np.mean([whole.answers["a"][name][chosen, :, 2].mean() for name in CORRUPTIONS])
    assert line(lines, "own", "a", "mean_nll").value == pytest.approx(mean, abs=UNIT)
    assert {"mean_ece", "mean_nll"} <= {each.measure for each in whole.differences()}


def sampled(value: float) -> Sampled:
    return Sampled(value, np.full(3, value))


def test_effective_robustness_is_what_is_above_the_line() -> None:
    """Against a fit of numpy; a model on the line has none."""
    accuracies = [(0.6, 0.3), (0.7, 0.45), (0.8, 0.5)]
    logits = np.log([[a / (1 - a) for a in pair] for pair in accuracies])
    slope, offset = np.polyfit(logits[:, 0], logits[:, 1], 1)
    points = [(sampled(1 - clean), sampled(1 - shifted)) for clean, shifted in accuracies]
    expected = 1 / (1 + np.exp(-(offset + slope * np.log(0.75 / 0.25))))
    found = effective_robustness(sampled(0.25), sampled(1 - expected - 0.1), points, (1000, 9000))
    assert found.value == pytest.approx(0.1, abs=1e-8)
    np.testing.assert_allclose(found.draws, 0.1, atol=1e-8)
    on_line = effective_robustness(*points[0], points[:2], (1000, 9000))
    assert on_line.value == pytest.approx(0, abs=1e-8)


def test_a_line_of_one_clean_accuracy_is_none() -> None:
    for points in ([(sampled(0.2), sampled(0.5))] * 2, [(sampled(0.2), sampled(0.5))]):
        found = effective_robustness(sampled(0.25), sampled(0.4), points, (10, 10))
        assert np.isnan(found.value)
        assert np.isnan(found.draws).all()


def test_accuracies_of_one_are_moved_by_half_an_answer() -> None:
    points = [(sampled(0.0), sampled(0.2)), (sampled(0.4), sampled(0.6))]
    found = effective_robustness(sampled(0.0), sampled(0.2), points, (20, 100))
    assert found.value == pytest.approx(0, abs=1e-8)


def test_effective_robustness_of_a_study() -> None:
    lines = list(study(line=("a", "b")).lines())
    assert line(lines, "union", "a", "effective_robustness").value == pytest.approx(0, abs=1e-8)
    same = study(line=("a", "b"), answers=dict.fromkeys("ab", answers(1, 0.4)))
    (problem,) = {each.problem for each in same.lines() if each.measure == "effective_robustness"}
    assert problem == "the models of the line (a, b) give none"
    assert not [each for each in study().lines() if each.measure == "effective_robustness"]
