"""Exact intervals of a share, and the evidence of a sequential test."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from cleanset.statistics.finite import at_least, exact_interval, likelihood_ratio, lower_limit

COUNTS = st.integers(0, 300).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@pytest.mark.parametrize(
    ("counts", "interval"),
    [((0, 10), (0.0, 0.3085)), ((7, 10), (0.3475, 0.9333)), ((10, 10), (0.6915, 1.0)), ((0, 0), (0.0, 1.0))],
)
def test_known_intervals(counts: tuple[int, int], interval: tuple[float, float]) -> None:
    assert tuple(round(end, 4) for end in exact_interval(*counts)) == interval


@pytest.mark.slow
@given(COUNTS)
def test_the_interval_is_that_of_scipy(counts: tuple[int, int]) -> None:
    if counts[1]:
        expected = binomtest(*counts).proportion_ci(0.95, method="exact")
        assert exact_interval(*counts) == pytest.approx((expected.low, expected.high), abs=1e-9)
        one_sided = binomtest(*counts, alternative="greater").proportion_ci(0.95, method="exact")
        assert lower_limit(*counts) == pytest.approx(one_sided.low, abs=1e-9)


@given(COUNTS, st.floats(0, 1))
def test_the_upper_tail_is_that_of_scipy(counts: tuple[int, int], share: float) -> None:
    successes, trials = counts
    assert at_least(successes, trials, share) == pytest.approx(float(binom.sf(successes - 1, trials, share)), abs=1e-9)


def test_the_evidence_of_ten_misses_in_twenty() -> None:
    assert likelihood_ratio(10, 20, 0.3, 0.15) == pytest.approx(2**10 * (0.7 / 0.85) ** 10)
    assert likelihood_ratio(0, 0, 0.3, 0.15) == 1
    assert likelihood_ratio(10_000, 10_000, 0.3, 0.15) == pytest.approx(math.exp(700))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.15])
def test_the_evidence_is_1_on_average_or_less(share: float) -> None:
    mean = sum(float(binom.pmf(k, 30, share)) * likelihood_ratio(k, 30, 0.3, 0.15) for k in range(31))
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize("counts", [(2, 1), (-1, 3)])
def test_no_share_is_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected a share"):
        lower_limit(*counts)
