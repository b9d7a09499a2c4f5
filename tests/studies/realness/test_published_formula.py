"""What the authors' formula makes of their seven studies, where the images of the two types share numbers."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cleanset.studies.realness.analysis import published_formula
from cleanset.studies.realness.ratings import Rating
from tests.studies.realness.conftest import STUDIES, command, path_of, published

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
    ratings = [Rating(person, "real", image, 1) for person in "ab" for image in "xy"]
    assert published_formula(ratings).stops
    assert not published_formula([*ratings, Rating("c", "real", "x", 1)]).stops
    assert published_formula([Rating("a", "real", "7", 1), Rating("a", "modified", "7", 1)]).shared_numbers == 1


def test_both_are_named(repository: Path) -> None:
    stops = "the published formula stops in R: 5,534 effects of images, 5,000 ratings"
    assert stops in command("analyse", path_of(repository, "aca"))
    shared = "the published formula takes real and modified images of 301 numbers for one"
    assert shared in command("analyse", path_of(repository, "semanticadv"))
    assert "published formula" not in command("analyse", path_of(repository, "cadv"))
