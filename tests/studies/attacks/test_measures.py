"""What is measured of stored results."""

import numpy as np
import pandas as pd
import pytest

from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.attacks.measures import MEASURES_COLUMNS, AttackMeasure, attack_measures

RESULTS = pd.DataFrame(
    {
        "class_index": [1, 1, 1, 1, 2, 2, 2, 2],
        "was_correct": [True, True, True, True, True, True, False, False],
        "is_error": [True, True, False, False, True, False, True, False],
        "queries": [10, 20, 30, 40, 10, 20, 30, 40],
        "l0": [5, 7, 900, 900, 9, 900, 900, 900],
        "l2": [1.0, 2.0, 9.0, 9.0, 6.0, 9.0, 9.0, 9.0],
        "linf": [0.5] * 8,
        "ssim": [0.5] * 8,
        "lpips": [0.25, None, 9.0, 9.0, 0.75, 9.0, 9.0, 9.0],
        "from_center": [None] * 8,
    }
)


def lines(results: pd.DataFrame = RESULTS) -> dict[str, tuple[int, float, float, float]]:
    found = attack_measures("pgd", "standard", results, Bootstrap(resamples=200))
    return {line.measure: (line.images, line.value, line.low, line.high) for line in found}


def test_values() -> None:
    found = lines()
    assert {name: values[:2] for name, values in found.items()} == {
        "clean_error": (8, 0.25),
        "error": (8, 0.5),
        "success": (6, 0.5),
        "queries": (8, 25),
        "l0": (3, 7),
        "l2": (3, 3),
        "linf": (3, 0.5),
        "ssim": (3, 0.5),
        "lpips": (2, 0.5),
        "from_center": (0, pytest.approx(np.nan, nan_ok=True)),
    }


def test_intervals() -> None:
    found = lines()
    for images, value, low, high in found.values():
        assert np.isnan(value) or images > 0
        assert np.isnan(value) or low <= value <= high
    assert found["success"][2] < 0.5 < found["success"][3]
    assert found["linf"][2:] == (0.5, 0.5)
    assert np.isnan(found["from_center"][2:]).all()
    assert repr(lines()) == repr(found)


def test_the_interval_of_success_is_that_of_a_ratio() -> None:
    """The successes and the correct ones vary together: with all correct ones beaten there is no interval."""
    beaten = RESULTS.assign(is_error=True)
    assert lines(beaten)["success"] == (6, 1, 1, 1)


def test_one_image_has_no_interval() -> None:
    _, value, low, high = lines(RESULTS.iloc[:1])["error"]
    assert value == 1
    assert np.isnan([low, high]).all()


def test_every_column_is_described() -> None:
    assert tuple(MEASURES_COLUMNS) == AttackMeasure._fields
