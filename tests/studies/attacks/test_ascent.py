"""Files that fill a ball, compared with the best ones that can be counted by hand; and losses."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from cleanset.studies.attacks.ascent import filled, losses
from cleanset.studies.attacks.autoattack import AutoAttackAttack, SquareAttack
from cleanset.studies.attacks.base import Ball, InBall, Known, Norm
from cleanset.studies.attacks.gradient_attacks import PgdAttack
from tests.properties import examples
from tests.studies.attacks.networks import KNOWN, Linear, classified, on_cpu, subject

pytestmark = pytest.mark.slow


def levels(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).view(1, 1, 1, -1)


def changes(direction: list[float], radius: float, center: list[float] | None = None, norm: Norm = "L2") -> list[int]:
    image = levels([100.0] * len(direction) if center is None else center)
    found = filled(levels(direction), image, Ball(norm, radius / 255)) - image
    return [int(value) for value in found.ravel()]


def test_the_largest_gains_come_first() -> None:
    """Nine units of squared distance: 1 for a first level, 3 for a second, 5 for a third of the same value."""
    assert changes([8, -3, 1], 1) == [1, 0, 0]
    assert changes([8, -3, 1], 2) == [1, -1, 1]
    assert changes([8, -3, 1], 3) == [2, -1, 1]
    assert changes([4, 3, 0], 5) == [4, 3, 0]
    assert changes([1] * 9, 2) == [1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert changes([0, 0], 3) == [0, 0]


def test_if_no_room_is_left_the_others_get_it() -> None:
    assert changes([8, 1, -1], 3, [254, 100, 0]) == [1, 2, 0]
    assert changes([8, 1, -1], 2, [254, 100, 1], "Linf") == [1, 2, -1]


@examples(100)
@given(st.lists(st.floats(-9, 9).filter(lambda value: abs(value) > 0.01), min_size=3, max_size=3), st.integers(1, 16))
def test_it_is_near_the_best_of_all_files(direction: list[float], budget: int) -> None:
    """The best of all files gains at most one level of one value more."""
    found = np.array(changes(direction, budget**0.5))
    assert (found**2).sum() <= budget
    reach = range(-4, 5)
    best = max(np.dot(file, direction) for file in itertools.product(reach, repeat=3) if np.dot(file, file) <= budget)
    assert np.dot(found, direction) >= best - max(np.abs(direction)) - 1e-9


def linear_with_known_best(eps_levels: int, values: int = 432) -> tuple[Linear, set[int]]:
    """Two classes; the values of an image that the best file changes by a level.

    All weights are between 1 and 2, so that a second level of one value is never worth its three units.
    """
    generator = np.random.default_rng(5)
    weight = generator.uniform(1, 2, values) * generator.choice([-1, 1], values)
    best = np.argsort(-np.abs(weight))[: eps_levels**2]
    gain = float(np.abs(weight[best]).sum() / 255)
    bias = float(weight.sum() * 100 / 255 + gain * 0.999)
    network = Linear(torch.tensor(np.stack([0 * weight, weight])), torch.tensor([bias, 0.0], dtype=torch.float64))
    return network, set(best.tolist())


@pytest.mark.parametrize(
    "attack",
    [
        PgdAttack(norm="L2", eps=4 / 255, steps=4, group=1),
        AutoAttackAttack(norm="L2", eps=4 / 255, attacks=["apgd-ce"], steps=4, group=1),
    ],
)
def test_a_small_ball_is_filled(attack: InBall) -> None:
    """Only the very best file of sixteen changed values is misclassified; the mean change of a value is .009."""
    network, best = linear_with_known_best(4)
    one = subject(1, 0, np.full((3, 12, 12), 100, np.uint8))
    (result,) = attack.results(on_cpu(network.double()), [one], KNOWN)
    change = result.candidate.astype(int) - 100
    assert set(np.flatnonzero(change.ravel()).tolist()) == best
    assert np.abs(change).max() == 1
    assert classified(network, result.candidate) == 1
    assert attack.ball.contains(one.pixels, result.candidate)


def test_square_fills_a_small_l2_ball() -> None:
    """The library's own candidate has no value at half a level; the file is at the edge of the ball."""
    network, _ = linear_with_known_best(4, 3072)
    one = subject(1, 0, np.full((3, 32, 32), 100, np.uint8))
    attack = SquareAttack(norm="L2", eps=4 / 255, queries=40, group=1)
    (result,) = attack.results(on_cpu(network.double()), [one], KNOWN)
    assert attack.ball.distance(one.pixels, result.candidate) == pytest.approx(4 / 255)
    assert attack.ball.contains(one.pixels, result.candidate)


def test_losses() -> None:
    """By hand: margins -2 and 1.5; dlr by the largest less the third, 4 and 3.5."""
    logits = torch.tensor([[5.0, 1.0, 3.0], [2.0, 3.5, 0.0]])
    label = torch.tensor([0, 0])
    assert losses("margin", logits, label).tolist() == [-2, 1.5]
    assert losses("dlr", logits, label).tolist() == pytest.approx([-0.5, 1.5 / 3.5])
    assert losses("dlr", 0.01 * logits, label).tolist() == pytest.approx([-0.5, 1.5 / 3.5])
    assert losses("cross_entropy", logits, label)[1].item() == pytest.approx(1.7258, abs=1e-4)


class Decoy(nn.Module):
    """Three classes by the mean pixel m from gray: 0; m - 1; and -3 m - 4, which rises faster but starts farther away.

    With logits times a small scale all probabilities are equal, and the cross-entropy follows the steeper class.
    """

    def forward(self, pixels: Tensor) -> Tensor:
        mean = 100 * (pixels.flatten(1).mean(dim=1) - 128 / 255)
        return 1e-3 * torch.stack([0 * mean, mean - 1, -3 * mean - 4], dim=1)


def test_the_margin_does_not_depend_on_the_scale() -> None:
    """Three levels upwards reach class 1 at 2.55; three downwards do not reach class 2 at 3.4."""
    one = subject(1, 0, np.full((3, 12, 12), 128, np.uint8))
    assert classified(Decoy(), one.pixels) == 0
    broken = {}
    for loss in ("cross_entropy", "margin", "dlr"):
        attack = PgdAttack(eps=3 / 255, random_start=False, losses=[loss], group=1)
        (result,) = attack.results(on_cpu(Decoy()), [one], Known(3))
        broken[loss] = classified(Decoy(), result.candidate) != 0
    assert broken == {"cross_entropy": False, "margin": True, "dlr": True}
    (result,) = PgdAttack(eps=3 / 255, group=1).results(on_cpu(Decoy()), [one], Known(3))
    assert classified(Decoy(), result.candidate) == 1
