"""What a run keeps of a defence's accuracy over coverage."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cleanset.studies.contest.files import DefenceRun, EligibilityFigures, coverage_steps, points
from cleanset.validation import first_problem
from tests.properties import examples

CONFIDENCE = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
CORRECT = np.array([True, True, False, True, True, False])
ANSWERS = np.zeros(6, np.bool_)


def test_the_steps() -> None:
    """A mistake in the third and in the sixth answer."""
    assert coverage_steps(CORRECT, ANSWERS, CONFIDENCE) == [(2, 0), (3, 1), (5, 1), (6, 2)]


def test_where_it_abstains_it_makes_no_mistake() -> None:
    abstains = np.array([False, False, True, False, False, True])
    assert coverage_steps(CORRECT, abstains, CONFIDENCE) == [(4, 0)]
    assert coverage_steps(CORRECT, ~ANSWERS, CONFIDENCE) == []


def test_without_a_confidence_there_is_one_step() -> None:
    assert coverage_steps(CORRECT, ANSWERS) == [(6, 2)]


def test_the_points() -> None:
    """Every number of answers between steps without a mistake in between; the second of ten images is one."""
    expected = [(0.1, 1), (0.2, 1), (0.3, 2 / 3), (0.4, 3 / 4), (0.5, 4 / 5), (0.6, 4 / 6)]
    found = points([(2, 0), (3, 1), (5, 1), (6, 2)], 10)
    assert np.array(found) == pytest.approx(np.array(expected))
    assert np.array(points([(6, 2)], 10)) == pytest.approx(np.array([(0.6, 4 / 6)]))
    assert points([], 10) == []


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.7]), st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_every_confidence_is_found_again(drawn: list[tuple[float, bool, bool]]) -> None:
    """The accuracy of all answers that are at least so confident is among the points."""
    confidence, correct, abstains = (np.array(column) for column in zip(*drawn, strict=True))
    found = points(coverage_steps(correct, abstains, confidence), len(drawn))
    for lowest in (0.5, 0.6, 0.7):
        answered = [right for sure, right, abstain in drawn if sure >= lowest and not abstain]
        if answered:
            point = (len(answered) / len(drawn), sum(answered) / len(answered))
            assert any(np.allclose(point, each) for each in found)


@pytest.mark.parametrize(
    ("coverage", "message"),
    [
        ([[5, 0], [5, 1], [9, 1]], r"\[5, 1\] after \[5, 0\]; expected more images"),
        ([[5, 2], [9, 1]], r"\[9, 1\] after \[5, 2\]"),
        ([[1, 2], [9, 2]], r"\[1, 2\] after \[0, 0\]"),
        ([[8, 1]], r"ends at \[8, 1\]; expected all answers and mistakes of eligibility"),
        ([], r"ends at \[0, 0\]"),
        ([[9]], "at least 2 items"),
    ],
)
def test_steps_that_cannot_be(coverage: list[list[int]], message: str) -> None:
    content: dict[str, Any] = {"defence": "gold/wall", "date": "2026-11-01", "digest": "0" * 64, "answers": {}}
    content["images_per_minute"] = 1.0
    content["eligibility"] = {"images": 10, "correct": 8, "mistakes": 1, "mistakes_at_80": 1}
    assert DefenceRun.model_validate(content | {"coverage": [[4, 0], [9, 1]]}).coverage == [[4, 0], [9, 1]]
    with pytest.raises(ValidationError) as caught:
        DefenceRun.model_validate(content | {"coverage": coverage})
    assert re.search(message, first_problem(caught.value))


@pytest.mark.parametrize("figures", [(10, 11, 0, 0), (10, 9, 2, 0), (10, 8, 1, 2)])
def test_figures_that_cannot_be(figures: tuple[int, int, int, int]) -> None:
    """More answers than images, or more mistakes among the surest than in all."""
    names = ("images", "correct", "mistakes", "mistakes_at_80")
    with pytest.raises(ValidationError) as caught:
        EligibilityFigures.model_validate(dict(zip(names, figures, strict=True)))
    assert f"of {figures[0]} images; expected no more than there are" in first_problem(caught.value)
