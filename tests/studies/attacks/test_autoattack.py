"""AutoAttack on linear networks: whether it can succeed is known."""

import numpy as np
import pyautoattack
import pytest
import torch
from torch import nn

from cleanset.studies.attacks.base import Ball, Subject, group_seed
from cleanset.studies.attacks.library_attacks import STANDARD, AutoAttack
from tests.studies.attacks.networks import Linear, classified, correct_subjects, on_cpu, random_linear

pytestmark = pytest.mark.slow

PARTS = ("apgd-ce", "apgd-t", "fab-t", "square")


def autoattack(eps: float = 4 / 255, attacks: tuple[str, ...] = PARTS, group: int = 3) -> AutoAttack:
    return AutoAttack(Ball("Linf", eps), attacks, 6, 40, 3, group)


def smallest_eps(network: Linear, one: Subject) -> float:
    """The radius, in Linf, at which another logit reaches that of the label, where 0..1 does not interfere."""
    weight, pixels = network.weight.detach().numpy(), one.pixels.ravel() / 255
    logits = weight @ pixels
    return min(
        float((logits[one.class_index] - logits[other]) / np.abs(weight[other] - weight[one.class_index]).sum())
        for other in range(len(weight))
        if other != one.class_index
    )


def test_it_succeeds_where_a_success_exists() -> None:
    network = random_linear(5, seed=2)
    group = correct_subjects(network, 6, least=30, most=220)
    radii = [smallest_eps(network, one) for one in group]
    eps = round(float(np.median(radii)) * 255) / 255
    attack = autoattack(eps, group=6)
    expected = [radius < eps - 0.5 / 255 for radius in radii]
    results = attack(on_cpu(network), group)
    found = [not np.array_equal(one.pixels, result.candidate) for one, result in zip(group, results, strict=True)]
    clear = [abs(radius - eps) > 1 / 255 for radius in radii]
    assert [each for each, is_clear in zip(found, clear, strict=True) if is_clear] == [
        each for each, is_clear in zip(expected, clear, strict=True) if is_clear
    ]
    assert {True, False} <= set(found)
    assert all(attack.ball.contains(one.pixels, each.candidate) for one, each in zip(group, results, strict=True))
    assert all(each.queries > 40 for each in results)


def test_two_classes() -> None:
    network = random_linear(2, seed=2)
    group = correct_subjects(network, 3, least=30, most=220)
    results = autoattack(40 / 255)(on_cpu(network), group)
    assert all(not np.array_equal(one.pixels, each.candidate) for one, each in zip(group, results, strict=True))


def test_a_group_is_repeated_and_the_generators_are_left_alone() -> None:
    network = random_linear(5)
    group = correct_subjects(network, 3)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    first, second = (autoattack(attacks=("square",))(on_cpu(network), group) for _ in range(2))
    assert torch.rand(1) == expected
    assert all(np.array_equal(one.candidate, other.candidate) for one, other in zip(first, second, strict=True))


def test_its_remarks_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    network = nn.Sequential(random_linear(5), nn.Softmax(dim=1))
    results = autoattack(attacks=("apgd-ce",))(on_cpu(network), correct_subjects(network, 2))
    assert any("probability distribution" in notice for notice in results[0].notices)
    assert capfd.readouterr() == ("", "")
    assert (
        autoattack(attacks=("square",))(on_cpu(random_linear(5)), correct_subjects(random_linear(5), 1))[0].notices
        == ()
    )


@pytest.mark.long
def test_the_original_program_breaks_the_same_images() -> None:
    """Its standard version beside this one, on 20 images with the same seed: the same robust accuracy.

    Candidates of this one are of 8 bits; images within half a level of being broken or not are left out.
    """
    network = random_linear(12, seed=2)
    group = correct_subjects(network, 20, least=30, most=220)
    radii = np.array([smallest_eps(network, one) for one in group])
    eps = round(float(np.median(radii)) * 255) / 255
    attack = AutoAttack(Ball("Linf", eps), STANDARD, 100, 5000, 3, 20)
    found = [
        classified(network, result.candidate) != one.class_index
        for one, result in zip(group, attack(on_cpu(network, 20), group), strict=True)
    ]
    label = torch.tensor([one.class_index for one in group])
    program = pyautoattack.AutoAttack(
        network.float(), norm="Linf", eps=eps, version="standard", seed=group_seed(3, "autoattack", group)
    )
    program.verbose = False
    images = torch.from_numpy(np.stack([one.pixels for one in group])).float() / 255
    broken, _ = program.run_standard_evaluation(images, label, batch_size=20)
    expected = (network(broken).argmax(dim=1) != label).tolist()
    clear = np.abs(radii - eps) > 0.5 / 255
    assert clear.sum() >= 12
    assert np.array(found)[clear].tolist() == np.array(expected)[clear].tolist()
    assert 6 <= sum(expected) <= 14
