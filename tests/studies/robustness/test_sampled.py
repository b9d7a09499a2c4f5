import math

import numpy as np
import pandas as pd
import pytest

from cleanset.statistics.bootstrap import Bootstrap, Interval, paired_difference
from cleanset.studies.robustness.corruptions.measures import (
    ALEXNET,
    Reference,
    ce,
    corruption_errors,
    error_table,
    mean_corruption_error,
    relative_ce,
    relative_corruption_errors,
    sampled_ces,
)
from cleanset.studies.robustness.corruptions.params import CORRUPTIONS, SEVERITIES
from cleanset.studies.robustness.sampled import (
    Sampled,
    constant,
    mean_of,
    sampled_means,
)
from cleanset.studies.robustness.scenarios.measures import accuracy_by_cell, sampled_score, score

CLASSES = np.repeat(np.arange(20), 3)
RESAMPLES = Bootstrap(resamples=200).resample(CLASSES)
GENERATOR = np.random.default_rng(21)
HARD = GENERATOR.random((60, 15, 1))
OWN, OTHER = np.less(HARD, np.linspace(0.2, 0.6, 5)), np.less(HARD, np.linspace(0.3, 0.8, 5))
CLEAN, OTHER_CLEAN = HARD[:, 0, 0] < 0.1, HARD[:, 0, 0] < 0.2


def table(misclassified: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> pd.DataFrame:
    return error_table(misclassified, CORRUPTIONS, SEVERITIES)


def means(misclassified: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], answers: str = "own") -> dict[str, Sampled]:
    sums = sampled_means(misclassified.sum(axis=2), CORRUPTIONS, RESAMPLES, answers, 5)
    return {name: each.scaled(1 / 5) for name, each in sums.items()}


def adjusted(misclassified: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], answers: str) -> np.ndarray:
    """The errors of each resample, with pseudo-images that are misclassified at all severities or at none."""
    flat = misclassified.reshape(len(misclassified), -1)
    draws = RESAMPLES.adjusted_means(flat, answers)
    return draws.reshape(len(draws), *misclassified.shape[1:])


def test_mean_errors() -> None:
    found = means(OWN)
    assert {name: each.value for name, each in found.items()} == pytest.approx(table(OWN).mean(axis=1).to_dict())
    assert found["fog"].draws == pytest.approx(adjusted(OWN, "own")[:, CORRUPTIONS.index("fog")].mean(axis=-1))
    assert found["fog"].by_image == pytest.approx(OWN[:, CORRUPTIONS.index("fog")].mean(axis=-1))


def test_ce_and_mce_by_a_measured_reference() -> None:
    estimates = corruption_errors(table(OWN), Reference("other", table(OTHER), images=60))
    found = sampled_ces(means(OWN), means(OTHER, "other"), estimates)
    assert [each.value for each in found.values()] == pytest.approx(estimates.tolist())
    draws = ce(adjusted(OWN, "own"), adjusted(OTHER, "other"))
    assert np.stack([each.draws for each in found.values()], axis=1) == pytest.approx(draws)
    mce = mean_of(found, CORRUPTIONS)
    assert mce.value == pytest.approx(mean_corruption_error(estimates).value)
    assert mce.draws == pytest.approx(draws.mean(axis=1))
    interval = mce.interval()
    assert interval.low < mce.value < interval.high


def test_relative_ce() -> None:
    clean, other_clean = (
        sampled_means(each[:, None], ["clean"], RESAMPLES, name)["clean"]
        for each, name in ((CLEAN, "own clean"), (OTHER_CLEAN, "other clean"))
    )
    own, other = means(OWN), means(OTHER, "other")
    reference = Reference("other", table(OTHER), float(OTHER_CLEAN.mean()), 60)
    estimates = relative_corruption_errors(table(OWN), float(CLEAN.mean()), reference)
    found = sampled_ces(
        {name: each - clean for name, each in own.items()},
        {name: each - other_clean for name, each in other.items()},
        estimates,
    )
    assert [each.value for each in found.values()] == pytest.approx(estimates.tolist())
    draws = relative_ce(
        adjusted(OWN, "own"),
        adjusted(CLEAN, "own clean"),
        adjusted(OTHER, "other"),
        adjusted(OTHER_CLEAN, "other clean"),
    )
    assert found["snow"].draws == pytest.approx(draws[:, CORRUPTIONS.index("snow")])


def test_ce_by_the_published_reference() -> None:
    published = {name: constant(value, RESAMPLES) for name, value in ALEXNET.errors.mean(axis=1).items()}
    estimates = corruption_errors(table(OWN), ALEXNET)
    found = sampled_ces(means(OWN), {str(name): each for name, each in published.items()}, estimates)
    assert [each.value for each in found.values()] == pytest.approx(estimates.tolist())


def test_a_corruption_without_ce_has_no_interval_and_mce_neither() -> None:
    few = OTHER.copy()
    few[:, 3] = False
    few[0, 3] = True
    estimates = corruption_errors(table(OWN), Reference("other", table(few), images=60))
    found = sampled_ces(means(OWN), means(few), estimates)
    name = CORRUPTIONS[3]
    assert math.isnan(found[name].value)
    assert all(math.isnan(end) for end in (found[name].interval().low, found[name].interval().high))
    assert math.isnan(mean_of(found, CORRUPTIONS).interval().high)
    assert math.isfinite(mean_of(found, CORRUPTIONS[4:]).interval().high)


def test_the_difference_of_two_models_is_paired() -> None:
    one, other = mean_of(means(OWN), CORRUPTIONS), mean_of(means(OTHER, "other"), CORRUPTIONS)
    difference = one - other
    assert difference.value == one.value - other.value
    assert difference.interval() == paired_difference(one.draws, other.draws)
    assert difference.by_image == pytest.approx(OWN.mean(axis=(1, 2)) - OTHER.mean(axis=(1, 2)))


def test_an_interval_has_the_value_and_a_width_or_is_none() -> None:
    drawn = np.linspace(0.2, 0.4, 41)
    above, below = Sampled(0.5, drawn).interval(), Sampled(0.1, drawn).interval()
    assert (above.low, above.high, below.low, below.high) == pytest.approx((0.205, 0.5, 0.1, 0.395))
    same = means(OWN)["fog"] / means(OWN)["fog"]
    for none in (
        same,
        constant(0.5, RESAMPLES),
        Sampled(1.0, np.array([0.5, math.inf])),
        Sampled(1.0, drawn * math.nan),
    ):
        assert math.isnan(none.interval().low)
        assert math.isnan(none.interval().high)


@pytest.mark.parametrize("wrong", [np.zeros(9, bool), np.ones(9, bool), np.repeat([True, False, False], 3)])
def test_classes_all_correct_or_all_misclassified(wrong: np.ndarray) -> None:
    """A bootstrap within classes alone would have no width."""
    resamples = Bootstrap().resample(np.repeat([0, 1, 2], 3))
    one, other = (sampled_means(wrong[:, None], ["fog"], resamples, name)["fog"] for name in "ab")
    interval, difference = one.interval(), (one - other).interval()
    assert interval.low <= one.value <= interval.high
    assert interval.high - interval.low > 0.2
    assert difference.low < -0.2 < 0.2 < difference.high


def test_what_is_computed_of_a_shifted_statistic_is_shifted() -> None:
    one, other = Sampled(0.5, np.array([0.2, 0.4]), shifted=True), Sampled(0.25, np.array([0.1, 0.1]))
    for found in (one - other, other - one, one / other, other / one, one.scaled(2), mean_of({"a": one}, ["a"])):
        assert found.shifted
    assert not (other - other).shifted
    assert mean_of({"a": one, "b": other}, ["b"]).interval() == Interval(0.1, 0.25)


def test_a_ratio_to_nothing_is_infinite() -> None:
    found = Sampled(1.0, np.array([1.0, 0.0])) / Sampled(0.0, np.array([0.0, 0.0]))
    assert found.value == math.inf
    assert found.draws[0] == math.inf
    assert math.isnan(found.draws[1])


def test_the_score() -> None:
    correct = GENERATOR.random((60, 4)) < 0.7
    unchanged = GENERATOR.random(60) < 0.9
    columns = {"unchanged": unchanged} | {name: correct[:, place] for place, name in enumerate("abcd")}
    rows = pd.DataFrame({"class_index": CLASSES, **columns}).melt(
        "class_index", var_name="scenario", value_name="correct"
    )
    cells = accuracy_by_cell(rows.assign(model="m"))
    found = sampled_score(correct, unchanged, "as_published", RESAMPLES)
    assert found.value == pytest.approx(score(cells, "as_published").score)
    assert found.draws.shape == (200,)
    assert found.shifted
    repeated = rows.loc[rows.index.repeat(np.tile(RESAMPLES.counts[7], 5))]
    assert found.draws[7] == pytest.approx(score(accuracy_by_cell(repeated.assign(model="m")), "as_published").score)
    low, high = np.quantile(found.draws, [0.025, 0.975])
    interval = found.interval()
    assert interval == Interval(2 * found.value - high, 2 * found.value - low)
