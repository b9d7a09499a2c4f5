import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from cleanset.statistics.paired import wilson


@pytest.mark.parametrize(
    ("correct", "images", "interval"),
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718))],
)
def test_the_published_intervals(correct: int, images: int, interval: tuple[float, float]) -> None:
    """Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3."""
    assert tuple(round(end, 4) for end in wilson(correct, images)) == interval


@pytest.mark.slow
@given(st.integers(1, 50_000).flatmap(lambda images: st.tuples(st.integers(0, images), st.just(images))))
def test_the_interval_is_that_of_scipy(numbers: tuple[int, int]) -> None:
    correct, images = numbers
    expected = binomtest(correct, images).proportion_ci(0.95, method="wilson")
    low, high = wilson(correct, images)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= low <= correct / images <= high <= 1


@pytest.mark.parametrize(("correct", "images"), [(0, 0), (2, 1), (-1, 3)])
def test_no_share_has_no_interval(correct: int, images: int) -> None:
    with pytest.raises(ValueError, match=f"{correct} of {images}; expected a share of at least one image"):
        wilson(correct, images)
