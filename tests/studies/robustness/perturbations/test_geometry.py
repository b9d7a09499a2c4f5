"""Movements of a small image, by literals; against torchvision and OpenCV in test_perturbations.py."""

import numpy as np
import pytest

from cleanset.studies.robustness.perturbations.changes import (
    rotate,
    scale,
    shear,
    tilt,
    tilt_matrix,
    translate,
)
from tests.studies.robustness.drawn import drawn

IMAGE = drawn(20, 20)


def test_translation_is_to_the_right() -> None:
    assert np.array_equal(translate(IMAGE, 3)[:, 3:], IMAGE[:, :-3])
    assert not translate(IMAGE, 3)[:, :3].any()
    assert np.array_equal(translate(IMAGE, -3)[:, :-3], IMAGE[:, 3:])
    assert not translate(IMAGE, 20).any()


def test_rotation_is_clockwise_about_the_place_of_torchvision_0_2() -> None:
    """With 20 pixels, the middle of the eleventh is fixed: the centre of all but the first."""
    difference = rotate(IMAGE, 90)[1:, 1:].astype(int) - np.rot90(IMAGE[1:, 1:], -1)
    assert np.abs(difference[1:-1, 1:-1]).max() <= 1  # cos(90 degrees) is not quite 0
    assert np.array_equal(rotate(IMAGE, 0), IMAGE)


def test_scaling_is_about_the_centre() -> None:
    assert np.array_equal(scale(IMAGE, 1), IMAGE)
    half = scale(IMAGE, 0.5)
    assert not half[:4].any()
    assert not half[:, :4].any()
    flat = scale(np.full((20, 20, 3), 90, np.uint8), 0.5)
    assert (flat[5:15, 5:15] == 90).all()


def test_shear_inclines_vertical_lines_and_keeps_horizontal_ones() -> None:
    line = np.zeros((40, 40, 3), np.uint8)
    line[:, 20] = 255
    # one pixel sideways for each of the 45 degrees' rows, which are 1 / sqrt(2) apart
    columns = shear(line, 45)[:, :, 0].argmax(axis=1)
    assert columns[20] == 20
    assert [int(columns[20 - rows]) for rows in (5, 10)] == [25, 30]
    assert [int(columns[20 + rows]) for rows in (5, 10)] == [15, 10]
    line = np.transpose(line, (1, 0, 2))
    assert np.array_equal(shear(line, 30)[20, 15:26], line[20, 15:26])


def test_tilt_without_rotation_makes_smaller_by_the_diagonal_plus_one() -> None:
    # diagonal 5: the corner at (-2, -1.5) from the centre comes to 5 / 6 of that
    matrix = np.array(tilt_matrix(3, 4, 0))
    assert (matrix @ [0, 0, 1] / (matrix @ [0, 0, 1])[2]).tolist() == pytest.approx([2 - 10 / 6, 1.5 - 7.5 / 6, 1])
    assert (matrix @ [2, 1.5, 1] / (matrix @ [2, 1.5, 1])[2]).tolist() == pytest.approx([2, 1.5, 1])
    flat = np.full((40, 40, 3), 9, np.uint8)
    assert (tilt(flat, 10)[10:30, 10:30] == 9).all()
