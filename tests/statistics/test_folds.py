"""Intervals over folds, against published formulas computed in another way."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cleanset.statistics.paired import fold_interval, unpaired_difference


def test_the_corrected_interval_of_three_folds() -> None:
    """Mean .7, s^2 .01; a third tested, so 1/3 + 1/2 of it; t with 2 degrees of freedom is 4.3026527."""
    found = fold_interval([0.6, 0.7, 0.8], 1 / 2)
    half = 4.302652729911275 * math.sqrt(0.01 * 5 / 6)
    assert (found.low, found.high) == pytest.approx((0.7 - half, 0.7 + half))


def test_without_the_correction_it_is_students_interval() -> None:
    values = [0.61, 0.72, 0.55, 0.68]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = fold_interval(values, 0)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_one_fold_has_no_interval() -> None:
    found = fold_interval([0.5], 0.25)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_no_fold_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected one a fold"):
        fold_interval([], 0.25)


@pytest.mark.parametrize(
    ("counts", "ends"),
    [  # R. G. Newcombe (1998), table II, method 10
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((10, 10, 0, 20), (0.6791, 1.0)),
    ],
)
def test_the_published_differences(counts: tuple[int, int, int, int], ends: tuple[float, float]) -> None:
    found = unpaired_difference(*counts)
    assert (found.low, found.high) == pytest.approx(ends, abs=5e-5)


@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_the_difference_of_the_reverse_is_its_mirror(images: int, others: int, data: st.DataObject) -> None:
    correct, other = data.draw(st.integers(0, images)), data.draw(st.integers(0, others))
    found, mirror = (
        unpaired_difference(correct, images, other, others),
        unpaired_difference(other, others, correct, images),
    )
    assert (found.low, found.high) == pytest.approx((-mirror.high, -mirror.low))
    assert -1 <= found.low <= correct / images - other / others <= found.high <= 1
