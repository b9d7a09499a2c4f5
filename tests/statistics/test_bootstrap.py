import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.statistics.basics import Interval
from cleanset.statistics.bootstrap import (
    Bootstrap,
    Resamples,
    percentile_interval,
    reflected_interval,
    strata,
)
from cleanset.studies.robustness.scenarios.measures import score_of_squares, squared_deviations
from tests.properties import examples

Array = npt.NDArray[Any]


def drawn(resamples: Resamples) -> Array:
    return resamples.counts.astype(int)


def test_strata_are_the_classes_and_the_single_images_together() -> None:
    found = strata(np.array([7, 3, 7, 5, 9, 3, 7]))
    assert [group.tolist() for group in found] == [[1, 5], [0, 2, 6], [3, 4]]


def test_a_lone_single_image_joins_the_smallest_class() -> None:
    found = strata(np.array([1, 1, 1, 2, 2, 3, 4, 4]))
    assert [group.tolist() for group in found] == [[0, 1, 2], [6, 7], [5, 3, 4]]
    assert [group.tolist() for group in strata(np.array([1, 2]))] == [[0, 1]]


@examples(100)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=30))
def test_every_image_is_in_one_stratum_of_two_or_more(classes: list[int]) -> None:
    found = strata(np.array(classes))
    assert sorted(np.concatenate(found).tolist()) == list(range(len(classes)))
    assert min(len(group) for group in found) >= 2


def test_images_are_drawn_within_their_classes() -> None:
    classes = np.array([2, 0, 2, 0, 2, 2])
    counts = drawn(Bootstrap(200).resample(classes))
    assert counts.shape == (200, 6)
    assert (counts[:, classes == 2].sum(axis=1) == 3).all()
    assert (counts[:, classes == 0].sum(axis=1) == 1).all()
    assert len(np.unique(counts, axis=0)) > 20
    assert (counts.max(axis=0) > 0).all()


def test_the_means_are_those_of_the_drawn_images_with_each_class_at_its_weight() -> None:
    classes = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    values = np.random.default_rng(2).random((8, 3, 2))
    resamples = Bootstrap(50).resample(classes)
    means, by_class = resamples.means(values), resamples.class_means(values)
    assert means.shape == (50, 3, 2)
    assert by_class.shape == (50, 3, 3, 2)
    for number, counts in enumerate(drawn(resamples)):
        images = [[image for image in range(8) for _ in range(counts[image]) if classes[image] == c] for c in range(3)]
        expected = [values[each].mean(axis=0) for each in images]
        assert by_class[number] == pytest.approx(np.array(expected))
        weighted = sum(size * mean for size, mean in zip((3, 2, 3), expected, strict=True)) / 8
        assert means[number] == pytest.approx(weighted)


def test_a_class_of_one_image_keeps_its_mean_and_still_adds_to_the_variance() -> None:
    classes, values = np.array([0, 1, 2, 3]), np.array([0, 1, 1, 1])
    resamples = Bootstrap(resamples=100).resample(classes)
    assert (resamples.class_means(values) == values).all()
    assert sorted({round(float(mean), 3) for mean in resamples.means(values)}) == [0, 0.333, 0.667, 1]


def test_equal_inputs_give_equal_draws_and_other_seeds_others() -> None:
    classes = np.repeat(np.arange(5), 3)
    one, same = (drawn(Bootstrap(seed="a").resample(classes)) for _ in range(2))
    assert (one == same).all()
    assert (one != drawn(Bootstrap(seed="b").resample(classes))).any()
    np.random.seed(1)
    assert (one == drawn(Bootstrap(seed="a").resample(classes))).all()


def test_these_draws_on_any_machine() -> None:
    counts = drawn(Bootstrap(resamples=3, seed="golden").resample([4, 4, 4, 8, 8, 8, 8]))
    assert counts.tolist() == [[0, 2, 0, 0, 0, 1, 2], [0, 1, 1, 1, 1, 1, 0], [1, 0, 1, 0, 2, 0, 1]]


def simulated(size: int, classes: int, seed: int) -> float:
    """How many of 400 95 % intervals have the mean of the population in them, by numbers of classes and of images."""
    generator = np.random.default_rng(seed)
    shares = generator.random(classes)
    resamples = Bootstrap(400).resample(np.repeat(np.arange(classes), size))
    # 400 samples of the population are the columns: one drawing of images serves all
    values = generator.random((classes * size, 400)) < np.repeat(shares, size)[:, None]
    low, high = np.quantile(resamples.means(values), [0.025, 0.975], axis=0)
    return float(((low <= shares.mean()) & (shares.mean() <= high)).mean())


@pytest.mark.slow
def test_the_coverage_with_three_images_a_class() -> None:
    """Over 10 populations; drawing as many images as a class has would cover about 89 %."""
    assert 0.935 < np.mean([simulated(3, 60, seed) for seed in range(10)]) < 0.965


@pytest.mark.slow
def test_the_coverage_with_single_images() -> None:
    assert np.mean([simulated(1, 150, seed) for seed in range(10)]) > 0.93


def test_the_variance_is_the_unbiased_one() -> None:
    classes = np.repeat(np.arange(40), 3)
    values = np.random.default_rng(3).random(120)
    expected = sum(values[classes == c].var(ddof=1) / 3 for c in range(40)) / 40**2
    found = Bootstrap(resamples=4000).resample(classes).means(values).var()
    assert found == pytest.approx(expected, rel=0.07)


def ends(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def test_intervals() -> None:
    draws = np.arange(101) / 100
    assert ends(percentile_interval(draws)) == pytest.approx([0.025, 0.975])
    assert ends(percentile_interval(draws, 0.5)) == pytest.approx([0.25, 0.75])
    assert ends(reflected_interval(0.4, draws)) == pytest.approx([-0.175, 0.775])
    nothing = percentile_interval([0.5, math.nan])
    assert math.isnan(nothing.low)
    assert math.isnan(nothing.high)
    # draws that are all alike do not show that other images would be
    assert all(map(math.isnan, (*percentile_interval([0.5] * 10), *reflected_interval(0.5, [0.5] * 10))))


def test_the_interval_of_ce_by_a_measured_reference() -> None:
    generator = np.random.default_rng(9)
    hard = generator.random((300, 1, 1))
    severity = np.linspace(0.2, 0.6, 5)
    own, reference = hard < severity, hard < 1.25 * severity
    resamples = Bootstrap().resample(np.repeat(np.arange(100), 3))
    draws = resamples.means(own).sum(axis=-1) / resamples.means(reference).sum(axis=-1)
    found = percentile_interval(draws[:, 0])
    assert found.low < own.sum() / reference.sum() < found.high
    assert found.high - found.low < 0.12


@pytest.mark.slow
def test_the_interval_of_the_score_is_reflected() -> None:
    """Percentiles hardly ever have the true score in them, as class means of few images vary too much in a resample."""
    generator = np.random.default_rng(12)
    classes, scenarios, size = 40, 8, 3
    shares = np.clip(generator.normal(0.7, 0.12, (classes, 1)) + generator.normal(0, 0.08, scenarios), 0.05, 0.95)
    mu = 0.9
    truth = float(
        score_of_squares(
            squared_deviations(shares.mean(axis=0), mu), squared_deviations(shares.mean(axis=-1), mu), "as_written"
        )
    )
    resamples = Bootstrap(resamples=300).resample(np.repeat(np.arange(classes), size))
    covered = np.zeros(2)
    for _ in range(100):
        values = generator.random((classes * size, scenarios)) < np.repeat(shares, size, axis=0)
        by_class = values.reshape(classes, size, scenarios).mean(axis=1)
        estimate = score_of_squares(
            squared_deviations(values.mean(axis=0), mu), squared_deviations(by_class.mean(axis=-1), mu), "as_written"
        )
        draws = score_of_squares(
            squared_deviations(resamples.means(values), np.full(300, mu)),
            squared_deviations(resamples.class_means(values).mean(axis=-1), np.full(300, mu)),
            "as_written",
        )
        for number, found in enumerate((percentile_interval(draws), reflected_interval(float(estimate), draws))):
            covered[number] += found.low <= truth <= found.high
    assert covered[0] < 90
    assert covered[1] >= 90


@pytest.mark.slow
def test_three_models_on_3000_images_and_96_changes_take_seconds() -> None:
    values = np.random.default_rng(0).random((3000, 3, 96)) < 0.3
    start = time.process_time()
    means = Bootstrap().resample(np.repeat(np.arange(1000), 3)).means(values)
    assert time.process_time() - start < 20
    assert means.shape == (1000, 3, 96)


def test_too_few_images_are_refused() -> None:
    with pytest.raises(CleansetError, match="bootstrap: found 1 images; expected 2 or more; leave the interval out"):
        Bootstrap().resample([3])


def test_a_class_that_shares_a_stratum_keeps_its_mean_if_none_of_it_was_drawn() -> None:
    classes, values = np.array([0, 1, 1, 2, 2, 2]), np.array([0, 1, 0, 1, 1, 1])
    resamples = Bootstrap(resamples=200).resample(classes)
    undrawn = resamples.counts[:, 1:3].sum(axis=1) == 0
    assert undrawn.any()
    assert (resamples.class_means(values)[undrawn, 1] == 0.5).all()
    assert np.isfinite(resamples.class_means(values)).all()


def test_pseudo_images_are_added_to_the_means() -> None:
    resamples = Bootstrap(resamples=400).resample(np.repeat([0, 1], 3))
    values = np.array([[0, 30], [1, 30], [0, 0], [1, 15], [1, 30], [0, 30]])
    added = resamples.adjusted_means(values, "a", [1, 30]) * 10 - resamples.means(values) * 6
    # four correct ones or four misclassified ones
    coins = added[:, 0].round(9)
    assert sorted(set(coins.tolist())) == [0, 4]
    assert added[:, 1] == pytest.approx(30 * coins)
    assert coins.mean() == pytest.approx(2, abs=0.3)
    again, other = (resamples.adjusted_means(values, name, [1, 30]) for name in "ab")
    assert np.array_equal(again * 10, resamples.adjusted_means(values, "a", [1, 30]) * 10)
    correlation = np.corrcoef(coins, other[:, 0] * 10 - resamples.means(values)[:, 0] * 6)[0, 1]
    assert abs(correlation) < 0.15


@pytest.mark.parametrize(("classes", "images", "error"), [(9, 3, 0.02), (9, 3, 0.1), (100, 3, 0.02), (12, 6, 0.5)])
def test_intervals_cover(classes: int, images: int, error: float) -> None:
    """A bootstrap within classes alone covers .45 with 9 x 3 images at .02; more in bench/intervals.py."""
    resamples = Bootstrap().resample(np.repeat(np.arange(classes), images))
    wrong = np.random.default_rng(3).random((classes * images, 2000)) < error
    low, high = np.quantile(resamples.adjusted_means(wrong, "a"), [0.025, 0.975], axis=0)
    assert ((np.minimum(low, wrong.mean(axis=0)) <= error) & (error <= high)).mean() >= 0.94
