"""What is measured of stored results."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.attacks.results import (
    attack_measures,
    worst_case,
    worst_case_measures,
)

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
        "is_converged": [None] * 8,
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
        "converged": (0, pytest.approx(np.nan, nan_ok=True)),
        "reached": (0, pytest.approx(np.nan, nan_ok=True)),
    }


def test_the_distance_reached_is_over_all_attacked_images() -> None:
    """Correct ones, successes or not: (1 + 2 + 3 + 2) / 4. Of the successes alone: (1 + 2) / 2."""
    found = lines(RESULTS.assign(from_center=[1.0, 2.0, 3.0, np.nan, np.nan, 2.0, 9.0, 9.0]))
    assert found["reached"][:2] == (4, 2)
    assert found["from_center"][:2] == (2, 1.5)


def test_the_share_that_converged_is_of_those_that_tell_it() -> None:
    found = lines(RESULTS.assign(is_converged=pd.array([True, False, None, None, True, True, False, False], "boolean")))
    # Wilson's interval of 3 of 4, as R's prop.test(3, 4, correct = FALSE) gives it
    assert found["converged"] == pytest.approx((4, 0.75, 0.3006418, 0.9544127), abs=1e-6)


def test_intervals() -> None:
    found = lines()
    for images, value, low, high in found.values():
        assert np.isnan(value) or images > 0
        assert np.isnan(low) or low <= value <= high
    assert found["success"][2] < 0.5 < found["success"][3]
    assert np.isnan(found["linf"][2:]).all()
    assert np.isnan(found["from_center"][2:]).all()
    assert repr(lines()) == repr(found)


@pytest.mark.parametrize(("is_error", "ends"), [(True, (0.6096657, 1)), (False, (0, 0.3903343))])
def test_all_or_none_of_few_images_is_not_certain(is_error: bool, ends: tuple[float, float]) -> None:
    """Wilson's intervals of 6 and 0 of 6, as R's prop.test(6, 6, correct = FALSE) gives them."""
    assert lines(RESULTS.assign(is_error=is_error))["success"] == pytest.approx((6, float(is_error), *ends))


def test_a_share_of_one_image_has_an_interval_and_a_mean_has_none() -> None:
    found = lines(RESULTS.iloc[:1])
    assert found["error"] == pytest.approx((1, 1, 0.2065493, 1))
    assert found["queries"][1] == 10
    assert np.isnan(found["queries"][2:]).all()


def attacked(files: str, correct: str, error: str, distance: float | None = None) -> pd.DataFrame:
    """A row for each letter of `files`; `correct` and `error` name those that are."""
    return pd.DataFrame(
        {
            "file": list(files),
            "class_index": [ord(each) for each in files],
            "was_correct": [each in correct for each in files],
            "is_error": [each in error for each in files],
            "from_center": distance,
        }
    )


class TestWorstCase:
    """Of six images f is misclassified at once; one attack breaks a and b, another, on fewer images, b and c."""

    results: ClassVar = {"pgd": attacked("abcdef", "abcde", "abf", 2.0), "square": attacked("dcb", "dcb", "bc", 3.0)}

    def test_an_image_counts_as_broken_if_any_attack_breaks_it(self) -> None:
        found = worst_case(self.results)
        assert dict(zip(found["file"], found["is_robust"], strict=True)) == {
            "a": False, "b": False, "c": False, "d": True, "e": True, "f": False,
        }  # fmt: skip
        assert found["attacks"].tolist() == [1, 2, 2, 2, 1, 1]
        assert found["class_index"].tolist() == [ord(each) for each in "abcdef"]

    def test_measures(self) -> None:
        lines = {line.measure: line for line in worst_case_measures("all", "mine", self.results)}
        assert {name: (line.images, line.value) for name, line in lines.items()} == {
            "clean_accuracy": (6, 0.833333333), "robust_accuracy": (6, 0.333333333), "tried_by_all": (6, 0.5),
            "reached": (5, 2.6),
        }  # fmt: skip
        # Wilson's interval of 2 of 6, as R's prop.test(2, 6, correct = FALSE) gives it
        assert lines["robust_accuracy"][5:] == pytest.approx((0.0967714, 0.7000067), abs=1e-6)
        assert {(line.attack, line.model) for line in lines.values()} == {("all", "mine")}
        assert list(worst_case_measures("all", "mine", {})) == []

    def test_a_masked_model_has_no_robust_accuracy(self) -> None:
        lines = worst_case_measures("all", "mine", self.results, is_masked=True)
        assert {line.measure: line.is_defined for line in lines} == {
            "clean_accuracy": True, "robust_accuracy": False, "tried_by_all": True, "reached": True,
        }  # fmt: skip

    def test_an_attack_that_breaks_nothing_changes_nothing(self) -> None:
        more = self.results | {"none": attacked("abcdef", "abcde", "f")}
        assert worst_case(more)["is_robust"].tolist() == worst_case(self.results)["is_robust"].tolist()
