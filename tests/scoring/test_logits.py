"""What is read off the logits: order, ties, probabilities and log-odds."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf  # type: ignore[import-untyped]

from cleanset.scoring.logits import are_probabilities, log_odds_of, top5
from tests.properties import examples


def logits(**values: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """One row of zeros but for c<class>=value."""
    row = np.zeros((1, 1000))
    for name, value in values.items():
        row[0, int(name[1:])] = value
    return row


@pytest.mark.parametrize(
    ("row", "classes"),
    [
        (logits(), [0, 1, 2, 3, 4]),
        (logits(c7=1, c3=1), [3, 7, 0, 1, 2]),
        (logits(c999=5, c998=5, c997=5, c0=-1, c5=4), [997, 998, 999, 5, 1]),
        (logits(c10=3, c20=2, c30=1, c40=0.5, c50=0.25, c60=0.125), [10, 20, 30, 40, 50]),
        (logits(c1=1e-20, c0=0), [1, 0, 2, 3, 4]),  # no difference is left in the probabilities
        (logits(c8=1e6), [8, 0, 1, 2, 3]),
        (logits(c5=2000, c900=1200, c901=1190, c902=1180, c903=1170), [5, 900, 901, 902, 903]),  # all underflow but 5
    ],
)
def test_order_and_ties(row: np.ndarray[Any, np.dtype[np.float64]], classes: list[int]) -> None:
    found = top5(row)
    assert found["top5_class"][0].tolist() == classes
    assert [found[name].dtype.name for name in ("top5_class", "top5_probability")] == ["int16", "float32"]


@pytest.mark.parametrize(
    ("row", "probability"),
    [
        (logits(), Fraction(1, 1000)),
        (logits(c5=math.log(2)), Fraction(2, 1001)),
        (logits(c5=math.log(999)), Fraction(1, 2)),
        (logits(c5=800.0), Fraction(1)),
    ],
)
def test_literal_probabilities(row: np.ndarray[Any, np.dtype[np.float64]], probability: Fraction) -> None:
    assert top5(row)["top5_probability"][0, 0] == np.float32(float(probability))


@given(st.lists(st.lists(st.floats(-40, 40), min_size=6, max_size=6), min_size=1, max_size=2))
@examples(40)
def test_top5_against_fifty_digits(values: list[list[float]]) -> None:
    rows = np.full((len(values), 1000), -60.0)
    places = [0, 17, 18, 500, 998, 999]
    rows[:, places] = values
    columns = top5(rows).values()
    with mp.workdps(50):
        for row, found, probability, odds in zip(rows.tolist(), *columns, strict=True):
            exponentials = [mp.exp(mpf(value)) for value in row]
            total = sum(exponentials)
            exact = [value / total for value in exponentials]
            best = sorted(range(1000), key=lambda index: (-exact[index], index))[:5]
            for index, other, stored in zip(found, best, probability, strict=True):
                assert index == other or abs(exact[index] - exact[other]) < exact[other] * mpf("1e-14")
                assert abs(float(exact[index]) - float(stored)) <= float(np.spacing(stored)) * 0.5001
            first = int(found[0])
            expected = mp.log(exponentials[first] / sum(exponentials[:first] + exponentials[first + 1 :]))
            assert abs(float(expected) - float(odds)) <= float(np.spacing(np.abs(odds))) * 0.5001 + 1e-13


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_logit_that_is_not_a_number(value: float) -> None:
    with pytest.raises(ValueError, match="a logit is NaN or infinite"):
        top5(logits(c5=value))


@pytest.mark.parametrize(
    ("row", "log_odds"),
    [
        (logits(), -math.log(999)),
        (logits(c5=math.log(999)), 0.0),
        (logits(c5=800.0), 800 - math.log(999)),
        (logits(c5=800.0, c6=700.0), 100.0),
    ],
)
def test_literal_log_odds(row: np.ndarray[Any, np.dtype[np.float64]], log_odds: float) -> None:
    assert top5(row)["log_odds"][0] == np.float32(log_odds)


def test_saturated_probabilities_have_an_order() -> None:
    """Thirty times the logits of a model that is sure: all probabilities are 1, no two log-odds are equal."""
    rows = np.random.default_rng(0).normal(0, 1, (200, 1000))
    rows[:, 3] = np.linspace(6, 8, 200)
    once, saturated = top5(rows), top5(30 * rows)
    assert len(np.unique(saturated["top5_probability"][:, 0])) < 20 < len(np.unique(once["top5_probability"][:, 0]))
    assert len(np.unique(saturated["log_odds"])) == 200
    assert np.isfinite(saturated["log_odds"]).all()


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=8))
def test_log_odds_of_stored_probabilities(probabilities: list[float]) -> None:
    values = np.array(sorted(probabilities), dtype=np.float32)
    found = log_odds_of(values)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()
    inner = (values > 0) & (values < 1)
    with mp.workdps(50):
        expected = [float(mp.log(mpf(float(value)) / (1 - mpf(float(value))))) for value in values[inner]]
    assert np.allclose(found[inner], expected, rtol=1e-6, atol=1e-7)


def test_log_odds_at_the_ends() -> None:
    """The bounds that the text names: what rounds to 1 and to 0."""
    assert log_odds_of(np.array([0, 0.5, 1], np.float32)).tolist() == pytest.approx([-103.97208, 0, 17.32868])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[0.25, 0.75], [1.0, 0.0]], True),
        ([[0.25, 0.759]], True),  # rounded
        ([[0.25, 0.765]], False),
        ([[0.25, 0.75], [0.25, 0.5]], False),
        ([[-0.25, 1.25]], False),  # a sum of 1 alone is not enough
        ([[-1e-7, 1.0000001]], True),
        ([[2.0, -3.0], [0.25, 0.75]], False),
    ],
)
def test_probabilities_are_distinguished_from_logits(rows: list[list[float]], expected: bool) -> None:
    assert are_probabilities(np.array(rows)) is expected


def test_a_softmax_cut_to_eight_bits_gives_probabilities() -> None:
    """As bfloat16 has; the sums are off by more than a thousandth."""
    random = np.random.default_rng(0)
    exponentials = np.exp(random.normal(0, 3, (200, 1000)))
    mantissas, exponents = np.frexp(exponentials / exponentials.sum(axis=1, keepdims=True))
    rounded = np.ldexp(np.round(mantissas * 256) / 256, exponents)
    assert np.abs(rounded.sum(axis=1) - 1).max() > 1e-3
    assert are_probabilities(rounded)
