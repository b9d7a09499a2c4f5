"""What the authors' formula makes of their seven studies, where the images of the two types share numbers."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from cleanset.studies.realness.analysis import published_formula
from cleanset.studies.realness.mixed import fit
from cleanset.studies.realness.ratings import Answer
from tests.studies.realness.conftest import STUDIES, arguments, command, path_of, published

Floats = npt.NDArray[np.float64]


def test_r_stops_for_two_studies(repository: Path) -> None:
    """lme4: "number of observations (=5000) <= number of random effects (=5534) for term (1 + type | image_id)"."""
    found = {study: published_formula(published(repository, study)) for study in STUDIES}
    assert {study: each.random_effects for study, each in found.items() if each.stops} == {
        "aca": 5534,
        "diffattack": 5672,
    }
    shared = {study: each.shared_numbers for study, each in found.items() if each.shared_numbers}
    assert shared == {"advpp": 29, "ncf": 1096, "semanticadv": 301}


def test_as_many_effects_as_ratings_are_too_many() -> None:
    ratings = [Answer(person, "real", image, 1) for person in "ab" for image in "xy"]
    assert published_formula(ratings).stops
    assert not published_formula([*ratings, Answer("c", "real", "x", 1)]).stops
    assert published_formula([Answer("a", "real", "7", 1), Answer("a", "modified", "7", 1)]).shared_numbers == 1


@pytest.mark.long
def test_the_effect_of_semanticadv_with_shared_numbers(repository: Path) -> None:
    """-1.982 by the published formula, -1.989 with distinct images: the REML criterion of both, minimized here."""
    ratings = published(repository, "semanticadv")
    assert effect_of_formula(ratings) == pytest.approx(-1.982, abs=5e-4)
    assert fit(*arguments(ratings)).modified.estimate == pytest.approx(-1.989, abs=5e-4)


@pytest.mark.long
def test_both_are_reported(repository: Path) -> None:
    stops = "the published formula stops in R: 5,534 effects of images, 5,000 ratings"
    assert stops in command("analyse", path_of(repository, "aca"))
    shared = "the published formula takes real and modified images of 301 numbers for one"
    assert shared in command("analyse", path_of(repository, "semanticadv"))
    assert "published formula" not in command("analyse", path_of(repository, "cadv"))


def effect_of_formula(ratings: tuple[Answer, ...]) -> float:
    """Modified minus real of rating ~ type + (1 + type | person) + (1 + type | image), one image for each number."""
    y = np.array([each.rating for each in ratings], np.float64)
    modified = np.array([each.kind == "modified" for each in ratings])
    person = np.unique([each.person for each in ratings], return_inverse=True)[1]
    image = np.unique([each.image for each in ratings], return_inverse=True)[1]
    people, images = int(person.max()) + 1, int(image.max()) + 1
    # columns: people's real ratings, their modified ones, the two means, the ratings
    design = np.zeros((len(y), 2 * people + 3))
    design[np.arange(len(y)), person + people * modified] = 1
    design[:, -3], design[:, -2], design[:, -1] = ~modified, modified, y
    sums = np.zeros((2, images, design.shape[1]))
    np.add.at(sums, (modified.astype(int), image), design)
    counts = np.stack([np.bincount(image[~modified], minlength=images), np.bincount(image[modified], minlength=images)])
    total = design.T @ design

    def solution(theta: Floats) -> tuple[float, float]:
        a, b, c, d, e, f = theta
        one, two = d * sums[0] + e * sums[1], f * sums[1]
        # the 2 x 2 block of each image
        first, across, second = 1 + d * d * counts[0] + e * e * counts[1], e * f * counts[1], 1 + f * f * counts[1]
        determinant = first * second - across**2
        mixed = (one * (across / determinant)[:, None]).T @ two
        left = total - (one * (second / determinant)[:, None]).T @ one - (two * (first / determinant)[:, None]).T @ two
        left += mixed + mixed.T
        factor = np.eye(len(left))
        factor[: 2 * people, : 2 * people] = np.kron([[a, 0], [b, c]], np.eye(people))
        left = factor.T @ left @ factor
        block = left[:-3, :-3] + np.eye(2 * people)
        rest = left[-3:, -3:] - left[-3:, :-3] @ np.linalg.solve(block, left[:-3, -3:])
        means = np.linalg.solve(rest[:2, :2], rest[:2, 2])
        logs = np.log(determinant).sum() + np.linalg.slogdet(block)[1] + np.linalg.slogdet(rest[:2, :2])[1]
        squares = rest[2, 2] - means @ rest[:2, 2]
        return float(logs + (len(y) - 2) * np.log(squares)), float(means[1] - means[0])

    def criterion(theta: Floats) -> float:
        return solution(theta)[0]

    best = minimize(criterion, [0.4, 0.1, 0.4, 0.6, 0.1, 0.7], method="L-BFGS-B").x
    return solution(best)[1]
