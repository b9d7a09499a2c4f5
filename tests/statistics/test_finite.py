"""Bounds of the flawed images of a set: scipy's distributions, enumeration, simulation."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from cleanset.statistics.finite import Draws, fixed_bound, log_e_values, open_bound


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
    """1,000 sets of 200 images, 4 flawed, looked at to the end."""
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
