"""The two one-sided tests, and how many people they need."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.realness.equivalence import equivalence
from cleanset.studies.realness.mixed import Effect, Variances
from cleanset.studies.realness.plan import PlanRequest
from cleanset.studies.realness.planning import StudyDesign
from tests.properties import examples

WHOLE = StudyDesign(2966, 2966, PlanRequest())


def test_by_hand() -> None:
    """t 3 and 1 with 10 degrees of freedom: tails .00667 and .17045 of a table; the 95 % quantile is 1.8125."""
    found = equivalence(Effect(0.1, 0.1, 10), 0.2, 0.05)
    assert (found.p_above_lower_bound, found.p_below_upper_bound) == pytest.approx((0.00667, 0.17045), abs=1e-5)
    assert found.p == found.p_below_upper_bound
    assert not found.equivalent
    assert found.interval == pytest.approx((0.1 - 0.18125, 0.1 + 0.18125), abs=1e-4)


def test_infinite_degrees_are_the_normal() -> None:
    found = equivalence(Effect(0.0, 0.1, math.inf), 0.2, 0.05)
    assert (found.p_above_lower_bound, found.p_below_upper_bound) == pytest.approx((0.02275, 0.02275), abs=1e-5)
    assert found.equivalent
    assert Effect(1, 1, math.inf).interval(0.95) == pytest.approx((1 - 1.95996, 1 + 1.95996), abs=1e-5)


def test_no_difference_that_is_too_large() -> None:
    assert not equivalence(Effect(-2.0, 0.01, 50)).equivalent
    assert not equivalence(Effect(0.0, 5.0, 50)).equivalent


@examples(200)
@given(st.floats(-1, 1), st.floats(0.001, 1), st.floats(2, 1e4), st.floats(0.01, 1), st.floats(0.001, 0.4))
def test_equivalent_exactly_where_the_interval_is_inside(
    estimate: float, error: float, degrees: float, bound: float, alpha: float
) -> None:
    found = equivalence(Effect(estimate, error, degrees), bound, alpha)
    low, high = found.interval
    if min(abs(low + bound), abs(high - bound)) > 1e-9:
        assert found.equivalent == (-bound < low and high < bound)


@pytest.mark.parametrize(("bound", "alpha"), [(0, 0.05), (-0.2, 0.05), (0.2, 0), (0.2, 0.5)])
def test_impossible_tests(bound: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="expected a bound above 0"):
        equivalence(Effect(0, 1, 10), bound, alpha)


def test_the_standard_error_of_a_study() -> None:
    """100 people, 50 and 50 of 1,000 images: .376/100 + .928 * 2/5000 + (.501 + .143)/1000."""
    design = StudyDesign(1000, 1000, PlanRequest())
    assert design.standard_error(100) == pytest.approx(math.sqrt(0.00376 + 0.0003712 + 0.000644), rel=1e-9)
    # one person uses 50 images only
    assert design.standard_error(1) == pytest.approx(math.sqrt(0.376 + 0.928 / 25 + 0.644 / 50), rel=1e-9)


@pytest.mark.parametrize(("effect", "people"), [(0.0, 40), (0.0, 90), (0.08, 120)])
def test_the_power_is_how_often_simulated_tests_succeed(effect: float, people: int) -> None:
    """People's own differences, normal: the mean and its t test. 20,000 studies, so that .01 are three deviations."""
    design = StudyDesign(10**6, 10**6, PlanRequest(effect=effect), Variances(0.2, 0.3, 0.0, 0.0, 0.0, 1.0))
    rng = np.random.default_rng(5)
    each = rng.normal(effect, math.sqrt(0.3 + 2 / 50), (20_000, people))
    mean, error = each.mean(axis=1), each.std(axis=1, ddof=1) / math.sqrt(people)
    critical = {40: 1.6849, 90: 1.6622, 120: 1.6578}[people]  # of a table of t, people - 1
    found = float((np.abs(mean) + critical * error < 0.2).mean())
    assert design.power(people) == pytest.approx(found, abs=0.012)


def test_how_many_people_the_published_bound_needs() -> None:
    needed = WHOLE.people_needed()
    assert WHOLE.power(needed) >= 0.8 > WHOLE.power(needed - 1)
    # by normal quantiles: (1.645 + 1.282) * error = .2, and images take (.501 + .143)/2966 off the variance
    assert needed == pytest.approx((0.376 + 0.928 / 25) / ((0.2 / 2.927) ** 2 - 0.644 / 2966), rel=0.03)
    assert WHOLE._replace(wish=PlanRequest(bound=0.1)).people_needed() > 3.9 * needed
    assert WHOLE._replace(wish=PlanRequest(effect=0.05)).people_needed() > needed


@pytest.mark.parametrize(
    "design", [StudyDesign(30, 30, PlanRequest(real=10, modified=10)), WHOLE._replace(wish=PlanRequest(effect=0.2))]
)
def test_what_no_number_of_people_can_show(design: StudyDesign) -> None:
    with pytest.raises(CleansetError, match=r"even 100,000 people .* take more images or a wider bound"):
        design.people_needed()
