"""Agreement of raters beyond chance, against published numbers and by definition."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.statistics.raters import MIN_RATED, ac1, coefficient_text, kappa, ordinal_alpha
from tests.properties import examples

KRIPPENDORFF = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
"""Four observers and twelve units, of "Computing Krippendorff's Alpha-Reliability"; one unit has a single rating."""


def counts_of(table: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    rows = zip(*(line.split() for line in table.strip().splitlines()), strict=True)
    return np.array([[row.count(str(value)) for value in range(1, 6)] for row in rows])


def test_the_published_alpha() -> None:
    """.815 for an ordinal scale."""
    found = ordinal_alpha(counts_of(KRIPPENDORFF))
    assert found is not None
    assert found.value == pytest.approx(0.815, abs=5e-4)
    assert found.interval is not None
    assert found.interval[0] < 0.815 < found.interval[1]


def test_rare_categories_lower_kappa_but_not_ac1() -> None:
    """Two raters, 118 times both yes, 7 times apart, as by hand: agreement .944, shares of yes 243 / 250."""
    counts = np.array([[2, 0]] * 118 + [[1, 1]] * 7)
    yes = 243 / 250
    by_chance = yes**2 + (1 - yes) ** 2
    found = kappa(counts)
    other = ac1(counts)
    assert found is not None
    assert other is not None
    assert found.value == pytest.approx((0.944 - by_chance) / (1 - by_chance))
    assert found.value == pytest.approx(-0.0288, abs=5e-5)
    # for two categories Gwet's chance agreement is twice the product of their shares
    assert other.value == pytest.approx((0.944 - 2 * yes * (1 - yes)) / (1 - 2 * yes * (1 - yes)))
    assert other.value == pytest.approx(0.9408, abs=5e-5)
    assert other.interval is not None
    assert 0.88 < other.interval[0] < other.value < other.interval[1] < 1


@pytest.mark.parametrize("statistic", [kappa, ac1, ordinal_alpha])
def test_nothing_from_fewer_than_ten_images(statistic: object) -> None:
    counts = np.array([[2, 0], [1, 1]] * 5)
    assert MIN_RATED == 10
    assert statistic(counts) is not None  # type: ignore[operator]
    assert statistic(counts[:9]) is None  # type: ignore[operator]
    # images with one rating do not count
    assert statistic(np.vstack([counts[:9], [[1, 0]] * 5])) is None  # type: ignore[operator]


def test_one_category_alone() -> None:
    counts = np.array([[2, 0]] * 12)
    assert kappa(counts) is None
    assert ordinal_alpha(counts) is None
    found = ac1(counts)
    assert found is not None
    assert (found.value, found.interval) == (1.0, None)
    assert coefficient_text(found.value, found.interval) == "1.00 (no interval)"


RATINGS = st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), min_size=10, max_size=14)


@examples(60)
@given(RATINGS)
def test_alpha_pair_by_pair(rows: list[list[int]]) -> None:
    """By definition: the mean distance within images, by that of all pairs of ratings."""
    counts = np.array([[row.count(value) for value in range(4)] for row in rows])
    ratings = [rating for row in rows for rating in row]

    def distance(one: int, other: int) -> float:
        low, high = sorted((one, other))
        between = sum(low <= rating <= high for rating in ratings)
        return (between - (ratings.count(one) + ratings.count(other)) / 2) ** 2

    within = sum(sum(distance(*pair) for pair in permutations(row, 2)) / (len(row) - 1) for row in rows)
    expected = 2 * sum(distance(*pair) for pair in combinations(ratings, 2)) / (len(ratings) - 1)
    found = ordinal_alpha(counts)
    if expected == 0:
        assert found is None
    else:
        assert found is not None
        assert found.value == pytest.approx(1 - within / expected)
