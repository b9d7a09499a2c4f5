"""The lines of accuracy over coverage that pages draw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.studies.attacks.page import corner_points, coverage_line, limited_points
from tests.properties import examples

CONFIDENCE = np.array([5.0, 4.0, 4.0, 1.0, 0.0])
CORRECT = np.array([True, False, True, True, False])
NAMES = ["e", "d", "c", "b", "a"]


def test_a_line() -> None:
    """Of the two that are equally confident c comes before d: correct, correct, wrong, correct, wrong."""
    line = coverage_line("mine", CONFIDENCE, CORRECT, NAMES)
    assert (line.name, line.images) == ("mine", 5)
    assert [coverage for coverage, _ in line.points] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert [accuracy for _, accuracy in line.points] == pytest.approx([1, 1, 2 / 3, 0.75, 0.6])
    assert (line.plain.covered, line.plain.accuracy) == (4, 0.75)
    assert line.full.accuracy == 0.6


def test_where_the_published_kit_differs() -> None:
    """All equally confident: the kit covers all five, exactly 80 % are four, without the last by name."""
    line = coverage_line("mine", np.zeros(5), CORRECT, NAMES)
    assert (line.as_published.covered, line.as_published.accuracy) == (5, 0.6)
    assert (line.plain.covered, line.plain.accuracy) == (4, 0.5)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.booleans()), min_size=1, max_size=30))
def test_nothing_is_lost_by_leaving_points_out(drawn: list[tuple[float, bool]]) -> None:
    """Interpolated at every coverage, the line goes through the accuracy of the most confident images."""
    confidence, correct = (np.array(column) for column in zip(*drawn, strict=True))
    names = [f"{place:02d}" for place in range(len(drawn))]
    coverages, accuracies = zip(*coverage_line("mine", confidence, correct, names).points, strict=True)
    order = sorted(range(len(drawn)), key=lambda place: (-drawn[place][0], names[place]))
    for count in range(1, len(drawn) + 1):
        expected = sum(drawn[place][1] for place in order[:count]) / count
        assert np.interp(count / len(drawn), coverages, accuracies) == pytest.approx(expected)


def test_a_level_part_has_two_ends() -> None:
    assert corner_points([(0.25, 1), (0.5, 1), (0.75, 1), (1, 0.5)]) == [(0.25, 1), (0.75, 1), (1, 0.5)]
    assert corner_points([(0.25, 0), (0.5, 1), (0.75, 1), (1, 1)]) == [(0.25, 0), (0.5, 1), (1, 1)]
    assert corner_points([(1, 0)]) == [(1, 0)]


def test_a_line_of_many_images_has_a_hundred_points() -> None:
    """From the first to the last, as far from each other as whole numbers allow."""
    points = [(place / 1000, 0.5) for place in range(1, 1001)]
    found = limited_points(points)
    assert (len(found), found[0], found[-1]) == (100, points[0], points[-1])
    steps = np.diff([coverage for coverage, _ in found]) * 1000
    assert {round(step) for step in steps} == {10, 11}
    assert limited_points(points[:100]) == points[:100]
    assert limited_points(points[:1]) == points[:1]
    assert limited_points([]) == []
