"""The worst corruption, against the library; and guess and check."""

import imagecorruptions
import numpy as np
import pandas as pd
import pytest
import torch

from cleanset.statistics.seeds import image_seed
from cleanset.studies.attacks.changes import PUBLISHED, CommonCorruptions, Guess, Null, most_confident_mistakes
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from tests.studies.attacks.networks import Linear, drawn, on_cpu, random_linear, subject

pytestmark = pytest.mark.slow

SIDE = 36


def test_the_published_kit_has_17() -> None:
    assert len(PUBLISHED) == 17
    assert set(imagecorruptions.get_corruption_names("all")) - set(PUBLISHED) == {"snow", "frost"}


def test_the_brightest_is_worst_for_who_takes_bright_for_another_class() -> None:
    """Class 1 is the mean of all pixels."""
    weight = torch.zeros(2, 3 * SIDE * SIDE, dtype=torch.float64)
    weight[1] = 1
    one = subject(1, 0, drawn(1, SIDE, 60, 120))
    names = ("contrast", "brightness", "pixelate")
    (result,) = CommonCorruptions(names, seed=6)(on_cpu(Linear(weight)), [one])
    expected = imagecorruptions.corrupt(one.pixels.transpose(1, 2, 0), 1, "brightness").transpose(2, 0, 1)
    assert np.array_equal(result.candidate, expected)
    assert result.queries == 3


def test_noise_is_that_of_the_study() -> None:
    one = subject(1, 0, drawn(1, SIDE))
    (result,) = CommonCorruptions(("gaussian_noise",), seed=6)(on_cpu(random_linear(2, side=SIDE)), [one])
    image = np.ascontiguousarray(one.pixels.transpose(1, 2, 0))
    (noisy,) = corrupted_images(image, "gaussian_noise", [1], image_seed(6, one.image_id))
    assert np.array_equal(result.candidate.transpose(1, 2, 0), noisy)


def test_null_changes_nothing() -> None:
    network = on_cpu(random_linear())
    (result,) = Null()(network, [subject(4, 1)])
    assert np.array_equal(result.candidate, drawn(4))
    assert (result.queries, network.queries) == (0, 0)


IMAGES = pd.DataFrame({"file": ["a/1", "a/2", "b/1", "c/1"], "class_index": [5, 5, 6, 7]})
PREDICTIONS = pd.DataFrame(
    [
        ("a/1", "fog", 1, [6, 1], 2.0),
        ("a/1", "fog", 2, [5, 1], 9.0),  # correct
        ("a/2", "snow", 5, [6, 1], 3.5),
        ("a/2", "snow", 4, [6, 1], 3.5),
        ("b/1", "clean", 0, [5, 1], -1.0),
        ("c/1", "fog", 1, [7, 1], 4.0),  # correct
        ("d/1", "fog", 1, [8, 1], 8.0),  # of no image here
    ],
    columns=["file", "change", "severity", "top5_class", "log_odds"],
)


def test_the_most_confident_mistake_of_each_class() -> None:
    found = most_confident_mistakes(IMAGES, PREDICTIONS.sample(frac=1, random_state=1))
    assert found == {5: ("a/2", "snow", 4), 6: ("b/1", "clean", 0)}


def test_it_is_the_candidate_of_every_image_of_the_class() -> None:
    guess = Guess(most_confident_mistakes(IMAGES, PREDICTIONS), lambda file, change, severity: drawn(severity))
    results = guess(on_cpu(random_linear()), [subject(1, 5), subject(2, 5), subject(3, 7)])
    assert [np.array_equal(each.candidate, drawn(4)) for each in results] == [True, True, False]
    assert np.array_equal(results[2].candidate, drawn(3))
    assert [each.queries for each in results] == [0, 0, 0]
