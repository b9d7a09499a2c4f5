"""The passes of attacks: literal numbers, and those that a network sees which no attack breaks."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cleanset.planning.work import Passes
from cleanset.studies.attacks.autoattack import AutoAttackAttack, SquareAttack
from cleanset.studies.attacks.base import Known, Other, Parameters
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.changes import (
    CommonCorruptionsAttack,
    GuessAttack,
    NoAttack,
    RandomSpatialAttack,
    SpatialGridAttack,
)
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack, TransferAttack
from cleanset.studies.attacks.passes import passes_of, passes_of_probe
from cleanset.studies.attacks.study import Probe
from tests.studies.attacks.networks import KNOWN, drawn, on_cpu, subject

pytestmark = pytest.mark.slow
SOURCES = 2
CLASSES = 1000


@pytest.mark.parametrize(
    ("attack", "forward", "backward"),
    [
        (NoAttack(), 0, 0),
        (RandomSpatialAttack(), 0, 0),
        (GuessAttack(), 0, 0),
        (SpatialGridAttack(), 775, 0),
        (SpsaAttack(), 13_000, 0),
        (BoundaryAttack(queries=25_000), 25_000, 0),
        (CommonCorruptionsAttack(), 17, 0),
        (CommonCorruptionsAttack(corruptions=19), 19, 0),
        (PgdAttack(steps=10, max_steps=10, losses=["margin"]), 17, 16),
        (PgdAttack(), 414, 412),
        (PgdAttack(steps=10, max_steps=10, losses=["margin"], restarts=3, draws=2), 102, 96),
        (SquareAttack(), 5_005, 0),
        (TransferAttack(), 2, 0),
        (AutoAttackAttack(attacks=["apgd-ce"]), 123, 108),
    ],
)
def test_passes_of_an_image(attack: Parameters, forward: int, backward: int) -> None:
    assert passes_of(attack, SOURCES, CLASSES).own == Passes(forward=forward, backward=backward)


def test_passes_of_other_models() -> None:
    """PGD of 20 steps with two losses, on each source: first place, steps, nearest file, five files."""
    assert passes_of(TransferAttack(), SOURCES, CLASSES).others == Passes(forward=54, backward=52)


class Stubborn(nn.Module):
    """The first class, whatever it is shown; it counts the images that it sees, and those with gradients."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 12 * 12, classes)
        self.bias = torch.zeros(classes, dtype=torch.float64)
        self.bias[0] = 1e3
        self.seen = Passes()

    def forward(self, pixels: Tensor) -> Tensor:
        images = len(pixels)
        self.seen += Passes(forward=images, backward=images if pixels.requires_grad else 0)
        logits: Tensor = self.layer(pixels.flatten(1)) + self.bias
        return logits


GROUP = 4
SMALL: list[tuple[Parameters, float]] = [
    (SpatialGridAttack(translations=[-9, 9], angles=[0, 10]), 0),
    (SpsaAttack(steps=3, samples=4, after=None), 0),
    (PgdAttack(steps=3, max_steps=3, group=GROUP), 0),
    (PgdAttack(steps=3, max_steps=3, group=GROUP, draws=2, restarts=2), 0),
    (SquareAttack(queries=60, group=GROUP), 0.05),
    (AutoAttackAttack(attacks=["apgd-ce"], steps=30, group=GROUP), 0.1),
    (AutoAttackAttack(attacks=["apgd-t"], steps=30, group=GROUP), 0.1),
    (AutoAttackAttack(attacks=["fab-t"], steps=30, group=GROUP), 0.1),
    (AutoAttackAttack(attacks=["square"], square_queries=60, group=GROUP), 0.1),
]
"""Attacks, and by how much the network may be asked less than counted: libraries check a batch once."""


@pytest.mark.parametrize(("attack", "surplus"), SMALL, ids=lambda each: getattr(each, "kind", ""))
def test_a_network_that_withstands_is_asked_as_often(attack: Any, surplus: float) -> None:
    classes = 5
    asked = on_cpu(Stubborn(classes).double())
    # the copy inside counts
    counted: Stubborn = asked._network  # type: ignore[assignment]
    group = [subject(number, 0, drawn(number)) for number in range(GROUP)]
    attack.results(asked, group, KNOWN)
    most = passes_of(attack, SOURCES, classes).own * GROUP
    assert (1 - surplus) * most.forward <= counted.seen.forward <= most.forward
    assert (1 - surplus) * most.backward <= counted.seen.backward <= most.backward


def test_boundary_asks_its_queries() -> None:
    asked = on_cpu(Stubborn(5).double())
    other = Other(1, lambda: drawn(9))
    known = Known(3, others=lambda: {"other": other})
    attack = BoundaryAttack(queries=20, eps=5, after=None, group=GROUP)
    found = attack.results(asked, [subject(1, 0)], known)
    # the start is of the image's class: nothing is searched, and the bound holds
    assert found[0].queries <= passes_of(attack, SOURCES, 5).own.forward == 20


def test_the_probe() -> None:
    found = passes_of_probe(Probe(images=50), SOURCES)
    assert found.others == Passes(forward=22, backward=21)
    assert found.own.backward == 1 + 2 + 2 + 6 + 21 + 5 * 22
