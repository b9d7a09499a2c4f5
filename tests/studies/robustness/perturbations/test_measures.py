"""The oracles compare single pairs of frames, and rank all classes."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from cleanset.errors import CleansetError
from cleanset.studies.robustness.perturbations.measures import (
    MAX_TOP5_DISTANCE,
    Ints,
    Pairs,
    flip_probability,
    flips,
    flips_by_pair,
    mean_over_perturbations,
    mean_ratio,
    mean_top5_distance,
    pairs,
    ratios,
    top5_distance,
    top5_distances,
)
from cleanset.studies.robustness.perturbations.params import ALL_PERTURBATIONS, NOISE_PERTURBATIONS, PERTURBATIONS
from cleanset.studies.robustness.sampled import Definition
from tests.properties import examples

TOP = [0, 1, 2, 3, 4]


def as_listed(compared: Pairs) -> list[tuple[int, int]]:
    return list(zip(compared.references.tolist(), compared.frames.tolist(), strict=True))


def test_the_frames_that_are_compared() -> None:
    assert as_listed(pairs("snow", 4)) == [(0, 1), (1, 2), (2, 3)]
    assert as_listed(pairs("snow", 4, "as_published")) == [(0, 1), (1, 2), (2, 3)]
    assert as_listed(pairs("shot_noise", 4)) == [(0, 1), (1, 2), (2, 3)]
    assert as_listed(pairs("shot_noise", 4, "as_published")) == [(0, 1), (0, 2), (0, 3)]
    assert sorted(as_listed(pairs("tilt", 7, difficulty=3))) == [(0, 3), (1, 4), (2, 5), (3, 6)]


@pytest.mark.parametrize("definition", ["as_written", "as_published"])
def test_the_difficulty_of_noise_is_in_its_frames(definition: Definition) -> None:
    for name in NOISE_PERTURBATIONS:
        assert as_listed(pairs(name, 5, definition, 3)) == as_listed(pairs(name, 5, definition))


@pytest.mark.parametrize(
    ("predictions", "perturbation", "definition", "difficulty", "expected"),
    [
        ([0, 1, 1, 1, 0], "snow", "as_written", 1, 0.5),
        ([0, 1, 1, 1, 0], "snow", "as_published", 1, 0.5),
        ([0, 1, 1, 1, 0], "gaussian_noise", "as_written", 1, 0.5),
        ([0, 1, 1, 1, 0], "gaussian_noise", "as_published", 1, 0.75),
        ([0, 0, 1, 1, 0, 0, 0, 2], "snow", "as_published", 1, 0.428571),
        ([0, 0, 1, 1, 0, 0, 0, 2], "snow", "as_published", 2, 0.833333),
        ([0, 0, 1, 1, 0, 0, 0, 2], "snow", "as_published", 3, 0.8),
    ],
)
def test_golden_flip_probabilities(
    predictions: list[int], perturbation: str, definition: Definition, difficulty: int, expected: float
) -> None:
    compared = pairs(perturbation, len(predictions), definition, difficulty)
    assert round(flip_probability(np.array([predictions]), compared), 6) == expected


def test_flips_by_image_and_by_comparison() -> None:
    top1 = np.array([[7, 7, 8], [7, 9, 7], [3, 3, 3]])
    compared = pairs("snow", 3)
    assert flips(top1, compared).tolist() == [1, 2, 0]
    assert flips_by_pair(top1, compared).tolist() == [1, 2]
    assert flip_probability(top1, compared) == 0.5


def published(videos: Ints, distance: Callable[[Ints, Ints], Ints], noise: bool, difficulty: int) -> float:
    """The mean over videos of the mean over comparisons, from the runs of frames that the published code forms."""
    means = []
    for video in videos:
        if noise:
            compared = [(video[0], frame) for frame in video[1:]]
        else:
            compared = [each for start in range(difficulty) for each in pairwise(video[start::difficulty])]
        means.append(np.mean([distance(reference, frame) for reference, frame in compared]))
    return float(np.mean(means))


@examples(200)
@given(
    st.integers(0, 2**32), st.integers(1, 4), st.integers(4, 12), st.sampled_from(ALL_PERTURBATIONS), st.integers(1, 3)
)
def test_flips_and_distances_are_those_of_the_published_code(
    seed: int, videos: int, frames: int, name: str, difficulty: int
) -> None:
    compared = pairs(name, frames, "as_published", difficulty)
    generator = np.random.default_rng(seed)
    top5 = generator.random((videos, frames, 8)).argsort(axis=-1)[..., :5]
    noise = "noise" in name
    expected = published(top5[..., 0], np.not_equal, noise, difficulty)
    assert flip_probability(top5[..., 0], compared) == pytest.approx(expected)
    expected = published(top5, top5_distance, noise, difficulty)
    assert mean_top5_distance(top5, compared) == pytest.approx(expected)


def by_full_ranks(reference: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> int:
    """T5D by its definition, of logits of all classes."""
    first = rankdata(-reference, method="ordinal").astype(int)
    second = rankdata(-other, method="ordinal").astype(int)
    sigma = second[np.argsort(first)]
    return sum(
        1
        for i in range(1, 6)
        for j in range(min(i, sigma[i - 1]) + 1, max(i, sigma[i - 1]) + 1)
        if 1 <= j - 1 <= 5
    )  # fmt: skip


def test_two_lists_of_five_give_the_distance_of_the_full_ranks() -> None:
    generator = np.random.default_rng(11)
    for number in range(1000):
        one = generator.random(12 if number % 2 else 1000)
        other = one + generator.random(len(one)) * generator.choice([0.005, 0.1, 2])
        lists = [np.argsort(-each, kind="stable")[:5] for each in (one, other)]
        assert int(top5_distance(*lists)) == by_full_ranks(one, other)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([0, 1, 2, 3, 4], 0),
        ([1, 0, 2, 3, 4], 2),
        ([0, 1, 2, 3, 5], 1),
        ([5, 1, 2, 3, 4], 5),
        ([999, 1, 2, 3, 4], 5),
        ([4, 3, 2, 1, 0], 12),
        ([5, 6, 7, 8, 9], 15),
        ([3, 4, 7, 8, 9], 18),
    ],
)
def test_golden_top5_distances(other: list[int], expected: int) -> None:
    assert int(top5_distance(np.array(TOP), np.array(other))) == expected


def test_the_distance_depends_on_which_list_is_the_references() -> None:
    one, other = np.array(TOP), np.array([9, 0, 1, 2, 3])
    assert (int(top5_distance(one, other)), int(top5_distance(other, one))) == (5, 9)


@examples(300)
@given(st.permutations(range(10)))
def test_no_distance_is_above_the_maximum(order: list[int]) -> None:
    assert 0 <= int(top5_distance(np.array(TOP), np.array(order[:5]))) <= MAX_TOP5_DISTANCE


def test_distances_by_image() -> None:
    swapped, gone = [1, 0, 2, 3, 4], [5, 6, 7, 8, 9]
    top5 = np.array([[TOP, swapped, TOP], [TOP, TOP, gone]])
    assert top5_distances(top5, pairs("snow", 3)).tolist() == [4, 15]
    assert top5_distances(top5, pairs("gaussian_noise", 3, "as_published")).tolist() == [2, 15]
    assert mean_top5_distance(top5, pairs("snow", 3)) == 19 / 4


def test_the_mean_is_over_the_ten_test_perturbations() -> None:
    values = dict.fromkeys(ALL_PERTURBATIONS, 9.0) | dict.fromkeys(PERTURBATIONS, 0.25) | {"tilt": 1.25}
    assert mean_over_perturbations(values) == pytest.approx(0.35)
    assert mean_over_perturbations(values, ["tilt", "shear"]) == pytest.approx(5.125)
    del values["snow"]
    assert math.isnan(mean_over_perturbations(values))
    assert math.isnan(mean_over_perturbations(values, []))


def test_the_ratio_to_a_reference_model() -> None:
    comparisons = dict.fromkeys(["snow", "tilt", "scale"], 100)
    found = ratios({"snow": 0.1, "tilt": 0.1, "scale": 0.1}, {"snow": 0.2, "tilt": 0.09}, comparisons)
    assert found["snow"] == pytest.approx(0.5)
    assert math.isnan(found["tilt"])  # 9 flips
    assert math.isnan(found["scale"])  # not measured
    assert ratios({"tilt": 0.1}, {"tilt": 0.1}, comparisons) == {"tilt": 1.0}  # 10 flips


def test_the_mean_ratio_names_what_it_lacks() -> None:
    values = dict.fromkeys(PERTURBATIONS, 0.5) | {"tilt": 1.5, "shear": 9.0}
    whole = mean_ratio(values)
    assert whole.value == pytest.approx(0.6)
    assert (whole.over, whole.lacking) == (PERTURBATIONS, ())
    lacking = mean_ratio(values | {"snow": math.nan})
    assert lacking.lacking == ("snow",)
    assert math.isnan(lacking.value)
    assert math.isnan(mean_ratio(values, []).value)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(CleansetError, match="snow: found 2 frames; expected 3 or more at difficulty 2"):
        pairs("snow", 2, difficulty=2)
    with pytest.raises(CleansetError, match="snow: found difficulty 0; expected 1 or more"):
        pairs("snow", 5, difficulty=0)
    with pytest.raises(CleansetError, match="flips: found definition 'text'; expected as_written or as_published"):
        pairs("snow", 5, "text")  # type: ignore[arg-type]
