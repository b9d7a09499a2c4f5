"""Rounding inside a ball, distances, seeds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cleanset.studies.attacks.base import Ball, Known, Subject, group_seed, margins, seed_of, to_pixels
from cleanset.studies.attacks.gradient_attacks import PgdAttack

pytestmark = pytest.mark.slow

SHAPE = (3, 4, 4)
LEVELS = arrays(np.float64, SHAPE, elements=st.floats(-20, 275))
CENTERS = arrays(np.uint8, SHAPE)


@given(LEVELS, CENTERS, st.sampled_from([1, 4, 16]))
def test_in_linf_it_is_the_nearest_inside(levels: np.ndarray, center: np.ndarray, eps: int) -> None:
    found = to_pixels(levels, center, Ball("Linf", eps / 255)).astype(int)
    assert np.abs(found - center).max() <= eps
    for value, middle, exact in zip(found.ravel(), center.ravel().astype(int), levels.ravel(), strict=True):
        allowed = [each for each in range(middle - eps, middle + eps + 1) if 0 <= each <= 255]
        assert abs(value - exact) == min(abs(each - exact) for each in allowed)


@given(LEVELS, CENTERS, st.floats(0.004, 3))
def test_in_l2_it_is_inside(levels: np.ndarray, center: np.ndarray, eps: float) -> None:
    ball = Ball("L2", eps)
    found = to_pixels(levels, center, ball)
    length = np.sqrt(((found.astype(float) - center) ** 2).sum()) / 255
    assert length <= eps + 1e-9
    assert ball.contains(center, found)


@given(CENTERS, st.integers(0, 2**32 - 1))
def test_in_l2_what_is_inside_is_only_rounded(center: np.ndarray, seed: int) -> None:
    levels = np.clip(center + np.random.default_rng(seed).uniform(-3, 3, SHAPE), 0, 255)
    assert np.array_equal(to_pixels(levels, center, Ball("L2", 1)), np.rint(levels).astype(np.uint8))


def test_in_l2_the_most_doubtful_goes_inward() -> None:
    """1.6 and 1.9 round to 2 and 2, of length 2.83; with at most 2.5, the 1.6 becomes 1: length 2.24."""
    center = np.full((3, 1, 1), 100, np.uint8)
    levels = np.array([101.6, 98.1, 100.0]).reshape(3, 1, 1)
    assert to_pixels(levels, center, Ball("L2", 2.5 / 255)).ravel().tolist() == [101, 98, 100]


def test_in_l2_what_is_outside_is_projected() -> None:
    center = np.zeros((3, 1, 1), np.uint8)
    assert to_pixels(np.array([60.0, 80.0, 0.0]).reshape(3, 1, 1), center, Ball("L2", 50 / 255)).ravel().tolist() == [
        30,
        40,
        0,
    ]


def test_without_a_ball_it_is_the_nearest() -> None:
    assert to_pixels(np.array([-3.0, 7.4, 300.0])).tolist() == [0, 7, 255]


def test_a_ball_of_four_levels_contains_four_and_not_five() -> None:
    center = np.full((3, 2, 2), 10, np.uint8)
    assert Ball("Linf", 4 / 255).contains(center, center + 4)
    assert not Ball("Linf", 4 / 255).contains(center, center + 5)
    assert Ball("Linf", 4 / 255).distance(center, center - 5) == 5 / 255
    assert Ball("L2", 1).distance(center, center + 1) == pytest.approx(12**0.5 / 255)


def test_margins() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.5]])
    assert margins(logits, torch.tensor([1, 0])).tolist() == [-1.0, 2.0]


def test_seeds_follow_from_names() -> None:
    seeds = {
        seed_of(seed, kind, what, *names)  # type: ignore[arg-type]
        for seed, kind, what, names in (
            (7, "attack", "spsa", "a"), (8, "attack", "spsa", "a"), (7, "attack", "pgd", "a"),
            (7, "judged", "spsa", "a"), (7, "attack", "spsa", "b"), (7, "attack", "spsa", "ab"),
            (7, "attack", "spsa", "ba"),
        )
    }  # fmt: skip
    assert len(seeds) == 7
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_the_seed_of_a_group_follows_from_the_name_of_its_attack_and_images() -> None:
    """Two attacks of one kind draw differently, and so do two groups; the numbers are those of earlier results."""
    first, second = (
        Subject(name=name, image_id=name, class_index=0, pixels=np.zeros(SHAPE, np.uint8)) for name in ("a", "b")
    )
    attack = PgdAttack.model_construct(kind="pgd")
    found = {
        (name, "".join(each.name for each in group)): group_seed(attack, group, Known(seed=7, name=name))
        for name in ("", "pgd", "far")
        for group in ([first, second], [second, first], [first])
    }
    assert found == {
        ("", "ab"): 2997023315, ("", "ba"): 137695459, ("", "a"): 1229275308,
        ("pgd", "ab"): 2997023315, ("pgd", "ba"): 137695459, ("pgd", "a"): 1229275308,
        ("far", "ab"): 4237370085, ("far", "ba"): 1254917837, ("far", "a"): 3300659295,
    }  # fmt: skip
