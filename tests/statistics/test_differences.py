"""Paired comparisons, against statsmodels, scipy and counts by hand."""

import gc
import math
import sys
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from cleanset.statistics.differences import (
    PairedCounts,
    difference_interval,
    fold_interval,
    holm,
    mcnemar_p,
    mcnemar_p_values,
    sign_test_p,
    unpaired_difference,
)
from tests.properties import examples

COUNTS = st.tuples(*[st.integers(0, 3000)] * 4).filter(any).map(lambda each: PairedCounts(*each))


@pytest.mark.parametrize(
    ("counts", "interval"),
    [
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((20, 12, 2, 16), (0.0562, 0.3292)),
        ((14, 5, 0, 22), (0.0115, 0.2265)),
        ((1, 1, 7, 12), (-0.5069, -0.0256)),
    ],
)
def test_the_published_intervals(counts: tuple[int, int, int, int], interval: tuple[float, float]) -> None:
    """Newcombe (1998); Altman et al., Statistics with Confidence (2000), table 6.2; Bentur et al. (2009)."""
    assert tuple(round(end, 4) for end in difference_interval(PairedCounts(*counts))) == interval


@pytest.mark.slow
@given(COUNTS)
def test_the_interval_is_that_of_another_program(counts: PairedCounts) -> None:
    """The formulas in the order of `confIntPairedProportion` of the R package biostatUZH, Wilson's by statsmodels."""
    r, s, t, u, n = counts.both, counts.only_first, counts.only_second, counts.neither, counts.images
    p1, p2 = (r + s) / n, (r + t) / n
    (l1, u1), (l2, u2) = (proportion_confint(each, n, method="wilson") for each in (r + s, r + t))
    product, b = (r + s) * (t + u) * (r + t) * (s + u), r * u - s * t
    c = b - n / 2 if b > n / 2 else b if b < 0 else 0
    phi = 0 if product == 0 else c / math.sqrt(product)
    low = p1 - p2 - math.sqrt(abs((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2))
    high = p1 - p2 + math.sqrt(abs((p2 - l2) ** 2 - 2 * phi * (p2 - l2) * (u1 - p1) + (u1 - p1) ** 2))
    found = difference_interval(counts)
    # a square root doubles the digits that cancellation costs
    assert found == pytest.approx((max(low, -1), min(high, 1)), abs=1e-7)
    assert -1 <= found[0] <= counts.difference + 1e-12
    assert counts.difference - 1e-12 <= found[1] <= 1


@pytest.mark.slow
@given(COUNTS)
def test_the_p_value_is_that_of_scipy_and_statsmodels(counts: PairedCounts) -> None:
    first, second = counts.only_first, counts.only_second
    if mcnemar_p(counts) < 1e-250:
        # both libraries return 0 below some 1e-269; so few successes are quickly summed up
        tail = 2 * sum(comb(first + second, successes) for successes in range(min(first, second) + 1))
        # never 0: the smallest normal float
        assert mcnemar_p(counts) == max(float(Fraction(tail, 2 ** (first + second))), sys.float_info.min)
        return
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar_p(counts) == pytest.approx(expected, rel=1e-9)
    table = [[counts.both, first], [second, counts.neither]]
    assert mcnemar_p(counts) == pytest.approx(mcnemar(table, exact=True).pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (3, 3, 1.0), (5, 0, 2 / 32), (1, 7, 18 / 256), (0, 2000, sys.float_info.min)],
)
def test_p_values_by_hand(first: int, second: int, p: float) -> None:
    """2 (1 + 8) / 256 for one against seven; 2 / 2**2000 is below the smallest normal float."""
    assert mcnemar_p(PairedCounts(4, first, second, 9)) == p


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30))
def test_p_values_of_many_pairs_are_those_of_each(pairs: list[tuple[int, int]]) -> None:
    """By the definition: the share of all outcomes of tosses that are at least as uneven."""
    found = mcnemar_p_values([first for first, _ in pairs], [second for _, second in pairs])
    for p, (first, second) in zip(found.tolist(), pairs, strict=True):
        tail = sum(comb(first + second, successes) for successes in range(min(first, second) + 1))
        assert p == min(1.0, float(Fraction(2 * tail, 2 ** (first + second))))


def test_exchanged_models_have_the_mirrored_interval() -> None:
    low, high = difference_interval(PairedCounts(50, 9, 4, 7))
    mirrored = difference_interval(PairedCounts(50, 4, 9, 7))
    assert mirrored == pytest.approx((-high, -low), abs=1e-12)


@pytest.fixture(scope="module")
def _frozen() -> None:
    """statsmodels collects garbage in each call: .25 s among all that the tests before have left."""
    gc.freeze()


@pytest.mark.usefixtures("_frozen")
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@pytest.mark.slow
def test_holm_is_that_of_statsmodels(values: list[float]) -> None:
    assert holm(values) == pytest.approx(multipletests(values, method="holm")[1].tolist(), abs=1e-12)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1.0),
        ([0.0, 0.0], 1.0),
        ([0.2, 0.4, 0.1, 0.0], 2 / 8),
        ([-1, -1, -1, -1, -1, -1, -1, 3], 18 / 256),
        # 0.1 + 0.2 - 0.3 is not 0 in floating point
        ([0.1 + 0.2 - 0.3, 1.0], 1.0),
    ],
)
def test_the_sign_test(differences: list[float], p: float) -> None:
    assert sign_test_p(differences) == p


@examples(100)
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=60))
def test_the_sign_test_against_scipy(differences: list[int]) -> None:
    above, below = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    expected = binomtest(above, above + below).pvalue if above + below else 1.0
    assert sign_test_p(differences) == pytest.approx(expected)


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
