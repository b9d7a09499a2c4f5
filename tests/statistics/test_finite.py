"""Bounds of the flawed images of a set: scipy's distributions, enumeration, simulation."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest, hypergeom

from cleanset.statistics.finite import (
    Draws,
    exact_interval,
    fixed_bound,
    likelihood_ratio,
    log_e_values,
    lower_limit,
    lower_limit_at_any_time,
    open_bound,
)


@pytest.mark.parametrize(
    ("drawn", "found", "fixed", "open_"),
    [(280, 0, 30, 34), (281, 0, 29, 34), (281, 1, 47, 79), (500, 2, 34, 57), (2966, 7, 7, 7), (0, 0, 2966, 2966)],
)
def test_the_published_set_of_2966_images(drawn: int, found: int, fixed: int, open_: int) -> None:
    """281 clean draws are the fewest after which at most 1 % is flawed: 29 of 2,966, .98 %."""
    draws = Draws(2966, drawn, found)
    assert (fixed_bound(draws), open_bound(draws)) == (fixed, open_)
    assert fixed_bound(Draws(2966, 281, 0)) / 2966 <= 0.01 < fixed_bound(Draws(2966, 280, 0)) / 2966


def draws_of(images: int) -> st.SearchStrategy[Draws]:
    return st.integers(0, images).flatmap(
        lambda drawn: st.builds(Draws, st.just(images), st.just(drawn), st.integers(0, drawn))
    )


SETS = st.integers(1, 60).flatmap(draws_of)
SENSITIVITIES = st.sampled_from([1.0, 0.97, 0.7, 0.25, 0.0])


def by_scipy(draws: Draws, level: float, sensitivity: float) -> int:
    """The largest number of flawed images whose lower tail is above 1 - level, one after the other."""
    kept = []
    for flawed in range(draws.found, draws.images + 1):
        drawn = np.arange(draws.drawn + 1)
        tail = hypergeom.pmf(drawn, draws.images, flawed, draws.drawn) @ binom.cdf(draws.found, drawn, sensitivity)
        kept += [flawed] if tail > 1 - level + 1e-9 else []
    return max(kept, default=draws.found)


@pytest.mark.slow
@given(SETS, st.sampled_from([0.95, 0.975]), SENSITIVITIES)
def test_the_fixed_bound_is_that_of_scipy(draws: Draws, level: float, sensitivity: float) -> None:
    assert fixed_bound(draws, level, sensitivity) == by_scipy(draws, level, sensitivity)


@pytest.mark.parametrize(
    ("draws", "bound"),
    [((20, 1, 0), 18), ((40, 1, 0), 37), ((40, 2, 1), 38), ((40, 38, 0), 0), ((40, 39, 1), 1)],
)
def test_a_probability_of_exactly_five_percent_refutes(draws: tuple[int, int, int], bound: int) -> None:
    images, drawn, found = draws
    tails = [
        Fraction(
            sum(math.comb(flawed, each) * math.comb(images - flawed, drawn - each) for each in range(found + 1)),
            math.comb(images, drawn),
        )
        for flawed in (bound, bound + 1)
    ]
    assert tails[1] == Fraction(1, 20) < tails[0]
    assert fixed_bound(Draws(images, drawn, found)) == bound


@pytest.mark.slow
@given(SETS, SENSITIVITIES)
def test_the_open_bound_is_wider_and_both_hold_what_was_found(draws: Draws, sensitivity: float) -> None:
    fixed, open_ = fixed_bound(draws, 0.95, sensitivity), open_bound(draws, 0.95, sensitivity)
    assert draws.found <= fixed <= open_ <= draws.images
    # who misses more knows less
    assert fixed <= fixed_bound(draws, 0.95, sensitivity / 2)
    assert open_ <= open_bound(draws, 0.95, sensitivity / 2)


@pytest.mark.parametrize(("images", "flawed", "sensitivity"), [(7, 2, 1.0), (6, 3, 1.0), (6, 2, 0.5), (5, 4, 0.75)])
def test_the_e_value_is_a_martingale(images: int, flawed: int, sensitivity: float) -> None:
    """Over all sequences of draws, its mean under the true number is 1 at every length, or less where 0 / 0 occurs."""
    share = Fraction(sensitivity)
    for drawn in range(images + 1):
        mean = 0.0
        for sequence in product((0, 1), repeat=drawn):
            probability = Fraction(0)
            for hidden in product((0, 1), repeat=drawn):
                chance, left, clean = Fraction(1), flawed, images - flawed
                for is_flawed, is_found in zip(hidden, sequence, strict=True):
                    chance *= Fraction(left if is_flawed else clean, left + clean)
                    left, clean = left - is_flawed, clean - (1 - is_flawed)
                    chance *= (share if is_found else 1 - share) if is_flawed else 1 - is_found
                probability += chance
            if probability:
                value = math.exp(log_e_values(Draws(images, drawn, sum(sequence)), sensitivity)[flawed])
                mean += float(probability) * value
        assert mean <= 1 + 1e-12


def test_one_is_right_at_any_time_in_19_of_20_sets() -> None:
    """1,000 sets of 200 images, 4 flawed, looked at to the end; bench/audit.py has larger ones."""
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(200) < 4, (1000, 1)), axis=1)
    found = np.cumsum(order, axis=1)
    bounds = {(n, k): open_bound(Draws(200, n, k)) for n in range(1, 201) for k in range(min(n, 4) + 1) if n - k <= 196}
    lowest = [min(bounds[n + 1, int(k)] for n, k in enumerate(row)) for row in found]
    assert np.mean(np.array(lowest) < 4) <= 0.05
    at_50 = {k: fixed_bound(Draws(200, 50, k)) for k in range(5)}
    assert np.mean([at_50[int(k)] < 4 for k in found[:, 49]]) <= 0.05


@pytest.mark.parametrize(("images", "drawn", "found"), [(5, 6, 0), (5, 3, 4), (5, 3, -1)])
def test_what_cannot_have_been_drawn_is_refused(images: int, drawn: int, found: int) -> None:
    with pytest.raises(ValueError, match="expected found <= drawn <= images"):
        Draws(images, drawn, found)


def test_a_level_of_1_and_a_sensitivity_above_1_are_refused() -> None:
    for level, sensitivity in ((1.0, 1.0), (0.95, 1.1)):
        with pytest.raises(ValueError, match="expected shares"):
            open_bound(Draws(5, 3, 0), level, sensitivity)


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
