"""The bound of source 004's appendix D: its own figure, sizes small enough to count, and what it cannot do."""

from fractions import Fraction
from math import log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.studies.attacks.page import linf_values, log10_covered


def test_the_example_of_the_source() -> None:
    """32 values, 40,152 images of 229 x 229 x 3: 10^-142072.2."""
    assert f"{log10_covered(229, 229, 32, 40_152):.1f}" == "-142072.2"


@pytest.mark.parametrize(("eps", "values"), [(0.5 / 255, 1), (16 / 255, 33), (0.3, 153), (10, 256)])
def test_the_values_within_eps(eps: float, values: int) -> None:
    assert linf_values(eps) == values


@given(st.integers(0, 255))
def test_as_many_values_as_are_counted(steps: int) -> None:
    """Around the value that has the most neighbors."""
    counted = max(sum(abs(value - center) <= steps for value in range(256)) for center in range(256))
    assert linf_values(steps / 255) == counted


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 256), st.integers(1, 10**6), st.integers(1, 3))
def test_as_many_images_as_are_counted(width: int, height: int, values: int, images: int, channels: int) -> None:
    """In whole numbers, which a small image allows."""
    sides = width * height * channels
    fraction = min(Fraction(1), Fraction(images * values**sides, 256**sides))
    expected = log10(fraction.numerator) - log10(fraction.denominator)
    assert log10_covered(width, height, values, images, channels) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((0, 8, 9, 1, 3), "1 images of 0 x 8 x 3; expected 1 or more"),
        ((8, 8, 9, 0, 3), "0 images of 8 x 8 x 3"),
        ((8, 8, 0, 1, 3), "0 values of a color; expected 1 to 256"),
        ((8, 8, 257, 1, 3), "257 values of a color"),
    ],
)
def test_what_it_refuses(size: tuple[int, int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log10_covered(*size)


@pytest.mark.parametrize("eps", [-0.1, float("nan")])
def test_an_eps_that_is_none(eps: float) -> None:
    with pytest.raises(ValueError, match="expected 0 or more"):
        linf_values(eps)
