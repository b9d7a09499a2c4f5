"""PGD on linear networks, whose best change is known."""

import numpy as np
import pytest
import torch

from cleanset.scoring.differentiable import Uninteresting
from cleanset.studies.attacks.base import Ball, Norm, Subject
from cleanset.studies.attacks.gradient_attacks import Pgd
from tests.studies.attacks.networks import correct_subjects, on_cpu, random_linear, random_network, subject

pytestmark = pytest.mark.slow


def pgd(norm: Norm = "Linf", eps: float = 4 / 255, steps: int = 10, group: int = 4, random_start: bool = True) -> Pgd:
    return Pgd(Ball(norm, eps), steps, eps / 4, random_start, 5, group)


def best_direction(network: torch.nn.Module, one: Subject) -> np.ndarray:
    """Of two classes: the weights of the other minus those of the label."""
    weight = network.weight.detach().numpy().reshape(2, 3, 12, 12)  # type: ignore[operator]
    return np.asarray(weight[1 - one.class_index] - weight[one.class_index])


def test_linf_goes_to_the_corner() -> None:
    network = random_linear(2)
    group = correct_subjects(network, 3, least=10, most=240)
    for one, result in zip(group, pgd()(on_cpu(network), group), strict=True):
        expected = one.pixels + 4 * np.sign(best_direction(network, one))
        assert np.array_equal(result.candidate, expected.astype(np.uint8))
        assert result.queries == 11


def test_linf_stays_in_0_to_255() -> None:
    network = random_linear(2)
    one = subject(1, 0, np.full((3, 12, 12), 254, np.uint8))
    (result,) = pgd()(on_cpu(network), [one])
    assert set(np.unique(result.candidate)) == {250, 255}


@pytest.mark.parametrize("random_start", [True, False])
def test_l2_goes_along_the_weights(random_start: bool) -> None:
    network = random_linear(2)
    group = correct_subjects(network, 2, least=60, most=200)
    attack = pgd("L2", 0.5, 40, random_start=random_start)
    for one, result in zip(group, attack(on_cpu(network), group), strict=True):
        change = (result.candidate.astype(float) - one.pixels).ravel()
        best = best_direction(network, one).ravel()
        cosine = change @ best / np.linalg.norm(change) / np.linalg.norm(best)
        assert cosine > 0.99
        assert np.linalg.norm(change) / 255 == pytest.approx(0.5, abs=0.01)
        assert attack.ball.contains(one.pixels, result.candidate)


def test_a_result_does_not_depend_on_the_others() -> None:
    """Nor on its place: a group of one is filled up."""
    network = on_cpu(random_network().double())
    group = [subject(number, number % 3) for number in range(4)]
    attack = pgd(steps=2)
    together = attack(network, group)
    for one, result in zip(group, together, strict=True):
        alone = attack(network, [one])[0]
        assert np.array_equal(alone.candidate, result.candidate)
        assert alone.seed == result.seed
    assert not np.array_equal(together[0].candidate, attack(network, [subject(9, 0, group[0].pixels)])[0].candidate)


def test_the_place_with_the_largest_margin_is_kept() -> None:
    """A step of the whole ball from the corner to the corner: later places are no better than the first."""
    network = random_linear(2)
    (one,) = correct_subjects(network, 1, least=10, most=240)
    overshooting = Pgd(Ball("Linf", 4 / 255), 3, 8 / 255, False, 0, 1)
    (result,) = overshooting(on_cpu(network), [one])
    assert np.array_equal(result.candidate, (one.pixels + 4 * np.sign(best_direction(network, one))).astype(np.uint8))


def test_without_a_gradient_it_stays_at_its_start() -> None:
    network = on_cpu(Uninteresting(random_linear(2)))
    (result,) = pgd()(network, [subject(1, 0)])
    assert np.abs(result.candidate.astype(int) - subject(1, 0).pixels).max() <= 4
