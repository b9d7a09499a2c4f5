"""The quantile of Student's t without scipy, against scipy."""

import pytest
from scipy import stats

from cleanset.statistics.basics import most_first, t_quantile


@pytest.mark.parametrize("degrees", [9, 10, 15, 33, 100, 50_000])
def test_as_scipy(degrees: int) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(float(stats.t.ppf(0.975, degrees)), abs=1e-3)
    assert t_quantile(0.025, degrees) == pytest.approx(-t_quantile(0.975, degrees))


def test_counts_are_ordered_by_number_then_by_name() -> None:
    assert list(most_first({"b": 1, "a": 1, "c": 3})) == ["c", "a", "b"]
