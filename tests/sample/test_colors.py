"""The regression on colors that a team of the sample's contest trains: `train.py` of its defence."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.studies.contest.sample_copy import colors

training = colors()
color_histogram, fit = training["color_histogram"], training["fit"]
log_odds, left_out_log_odds = training["log_odds"], training["left_out_log_odds"]


def test_a_histogram_of_colors() -> None:
    image = np.array([[[0, 0, 0], [63, 63, 63]], [[64, 0, 255], [255, 255, 255]]], np.uint8)
    found = color_histogram(image)
    assert found.shape == (64,)
    assert {place: found[place] for place in np.flatnonzero(found)} == {0: 0.5, 16 + 3: 0.25, 63: 0.25}


def test_the_fit_is_the_minimum() -> None:
    generator = np.random.default_rng(0)
    features, groups = generator.random((60, 4)), generator.integers(0, 2, 60)

    def loss(at: np.ndarray) -> float:
        odds = features @ at[:4] + at[4]
        probability = np.where(groups == 1, 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds)))
        return float(-np.log(probability).mean() + 0.01 / 2 * (at[:4] ** 2).sum())

    expected = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    found = fit(features, groups, 0.01)
    assert found == pytest.approx(expected, abs=1e-4)
    assert log_odds(features[:1], found) == pytest.approx(features[:1] @ expected[:4] + expected[4], abs=1e-4)


def test_colors_that_separate_the_groups() -> None:
    """Red against green: finite weights, and every image that was left out is distinguished from the others."""
    generator = np.random.default_rng(1)
    features, groups = [], np.arange(20) % 2
    for group in groups:
        image = generator.integers(0, 60, (8, 8, 3), dtype=np.uint8)
        image[:4, :, group] = 255
        features.append(color_histogram(image))
    found = left_out_log_odds(np.array(features), groups)
    assert np.isfinite(found).all()
    assert ((found > 0) == (groups == 1)).all()


def test_an_image_is_left_out_of_its_own_regression() -> None:
    """One of the other color than its group's: colors that were learned from it would get it."""
    features = np.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1, 1]]
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0])
    assert left_out_log_odds(features, groups)[8] > 0


def test_one_group_only() -> None:
    with pytest.raises(ValueError, match="images of one group only; expected some of both"):
        fit(np.zeros((3, 2)), np.ones(3, np.int64))
    with pytest.raises(ValueError, match="a group of fewer than two images"):
        left_out_log_odds(np.zeros((3, 2)), np.array([0, 0, 1]))
