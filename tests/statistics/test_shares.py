"""Intervals and limits of a share: publications, scipy, statsmodels, simulation."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest

from cleanset.statistics.shares import (
    _root,
    exact_interval,
    likelihood_ratio,
    lower_limit,
    lower_limit_at_any_time,
    wilson,
)

COUNTS = st.integers(0, 300).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@pytest.mark.parametrize(
    ("correct", "images", "interval"),
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718))],
)
def test_the_published_intervals(correct: int, images: int, interval: tuple[float, float]) -> None:
    """Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3."""
    assert tuple(round(end, 4) for end in wilson(correct, images)) == interval


@pytest.mark.slow
@given(st.integers(1, 50_000).flatmap(lambda images: st.tuples(st.integers(0, images), st.just(images))))
def test_wilsons_interval_is_that_of_scipy(numbers: tuple[int, int]) -> None:
    correct, images = numbers
    expected = binomtest(correct, images).proportion_ci(0.95, method="wilson")
    low, high = wilson(correct, images)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= low <= correct / images <= high <= 1


@pytest.mark.parametrize(("correct", "images"), [(0, 0), (2, 1), (-1, 3)])
def test_wilson_needs_an_image(correct: int, images: int) -> None:
    with pytest.raises(ValueError, match=f"{correct} of {images}; expected a share of at least one image"):
        wilson(correct, images)


@pytest.mark.parametrize(
    ("counts", "interval"),
    [((0, 10), (0.0, 0.3085)), ((7, 10), (0.3475, 0.9333)), ((10, 10), (0.6915, 1.0)), ((0, 0), (0.0, 1.0))],
)
def test_known_intervals(counts: tuple[int, int], interval: tuple[float, float]) -> None:
    assert tuple(round(end, 4) for end in exact_interval(*counts)) == interval


@pytest.mark.slow
@given(COUNTS)
def test_the_exact_interval_is_that_of_scipy(counts: tuple[int, int]) -> None:
    if counts[1]:
        expected = binomtest(*counts).proportion_ci(0.95, method="exact")
        assert exact_interval(*counts) == pytest.approx((expected.low, expected.high), abs=1e-9)
        one_sided = binomtest(*counts, alternative="greater").proportion_ci(0.95, method="exact")
        assert lower_limit(*counts) == pytest.approx(one_sided.low, abs=1e-9)


@pytest.mark.parametrize(
    ("counts", "limit"),
    [((5, 100_000), 1.97016956e-05), ((99_995, 100_000), 0.9998948725), ((500, 1000), 0.4735177312)],
)
def test_known_limits_of_many_trials(counts: tuple[int, int], limit: float) -> None:
    assert lower_limit(*counts) == pytest.approx(limit, rel=1e-8)


def test_the_evidence_of_ten_misses_in_twenty() -> None:
    assert likelihood_ratio(10, 20, 0.3, 0.15) == pytest.approx(2**10 * (0.7 / 0.85) ** 10)
    assert likelihood_ratio(0, 0, 0.3, 0.15) == 1
    assert likelihood_ratio(10_000, 10_000, 0.3, 0.15) == pytest.approx(math.exp(700))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.15])
def test_the_evidence_is_1_on_average_or_less(share: float) -> None:
    mean = sum(float(binom.pmf(k, 30, share)) * likelihood_ratio(k, 30, 0.3, 0.15) for k in range(31))
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize(
    ("counts", "limit"), [((38, 40), 0.7777), ((10, 10), 0.5954), ((0, 10), 0.0), ((0, 0), 0.0), ((190, 200), 0.8881)]
)
def test_known_limits_at_any_time(counts: tuple[int, int], limit: float) -> None:
    assert lower_limit_at_any_time(*counts, 0.975) == pytest.approx(limit, abs=5e-5)
    if counts[0]:
        assert lower_limit_at_any_time(*counts, 0.975) < lower_limit(*counts, 0.975)


def test_the_limit_at_any_time_is_that_of_an_evenly_spread_mixture() -> None:
    """The mean likelihood of the shares above, by the incomplete beta function, divided by that at the limit."""
    limit = lower_limit_at_any_time(38, 40, 0.975)
    larger = float(beta.sf(limit, 39, 3)) / (41 * math.comb(40, 38)) / (1 - limit)
    assert larger / (limit**38 * (1 - limit) ** 2) == pytest.approx(40, rel=1e-3)


@pytest.mark.parametrize("share", [1e-12, 0.3, 1 / 3, 0.9999])
def test_a_limit_is_never_above_the_share_at_which_its_condition_holds(share: float) -> None:
    found = _root(lambda each: each >= share)
    assert share - 1e-15 < found < share


@pytest.mark.parametrize(
    ("limit", "failing"), [(lower_limit, 0.0823), (lower_limit_at_any_time, 0.0114)], ids=["fixed", "any time"]
)
def test_the_risk_of_stopping_at_the_best_of_50(limit: Callable[[int, int, float], float], failing: float) -> None:
    """The probability that a limit is ever above the true share of .66, by all sequences; .025 is promised."""
    waiting = np.array([1.0])
    for trials in range(1, 51):
        waiting = np.append(waiting * 0.34, 0) + np.append(0, waiting * 0.66)
        successes = trials
        while successes >= 0 and limit(successes, trials, 0.975) > 0.66:
            waiting[successes], successes = 0, successes - 1
    assert 1 - waiting.sum() == pytest.approx(failing, abs=1e-4)


@pytest.mark.parametrize("counts", [(2, 1), (-1, 3)])
def test_no_share_is_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected a share"):
        lower_limit(*counts)
