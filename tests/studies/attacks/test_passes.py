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
from cleanset.studies.attacks.planning import passes_of_probe
from cleanset.studies.attacks.study import ATTACKS, Probe
from tests.studies.attacks.networks import drawn, on_cpu, subject

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
    assert attack.passes(SOURCES, CLASSES).own == Passes(forward=forward, backward=backward)


def test_passes_of_other_models() -> None:
    """PGD of 20 steps with two losses, on each source: first place, steps, nearest file, five files."""
    assert TransferAttack().passes(SOURCES, CLASSES).others == Passes(forward=54, backward=52)


SIDE = 36


class Stubborn(nn.Module):
    """The first class, whatever it is shown; it counts the images that it sees, and those with gradients."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * SIDE**2, classes)
        self.bias = torch.zeros(classes, dtype=torch.float64)
        self.bias[0] = 1e3
        self.seen = Passes()

    def forward(self, pixels: Tensor) -> Tensor:
        images = len(pixels)
        self.seen += Passes(forward=images, backward=images if pixels.requires_grad else 0)
        logits: Tensor = self.layer(pixels.flatten(1)) + self.bias
        return logits


GROUP = 4
SMALL: list[Parameters] = [
    *(attack.model_validate(attack.small) for attack in ATTACKS.values() if not attack.reads_predictions),
    PgdAttack(steps=3, max_steps=3, group=GROUP, draws=2, restarts=2),
    AutoAttackAttack(attacks=["apgd-ce"], steps=30, group=GROUP),
    AutoAttackAttack(attacks=["apgd-t"], steps=30, group=GROUP),
    AutoAttackAttack(attacks=["fab-t"], steps=30, group=GROUP),
    AutoAttackAttack(attacks=["square"], square_queries=60, group=GROUP),
]
SURPLUS = 0.1
"""By how much the network may be asked less than counted: libraries check a batch once."""


@pytest.mark.parametrize("attack", SMALL, ids=lambda each: each.kind)
def test_a_network_that_withstands_is_asked_as_often(attack: Any) -> None:
    classes = 5
    asked, source = (on_cpu(Stubborn(classes).double()) for _ in range(2))
    # the copy inside counts
    counted: Stubborn = asked._network  # type: ignore[assignment]
    other = Other(1, lambda: drawn(9, SIDE))
    known = Known(3, others=lambda: {"other": other}, sources=lambda: {"source": source})
    group = [subject(number, 0, drawn(number, SIDE)) for number in range(GROUP)]
    attack.results(asked, group, known)
    most = attack.passes(1, classes).own * GROUP
    # no start of boundary is misclassified: nothing is searched
    share = 0 if attack.reads_other_images else 1 - SURPLUS
    assert share * most.forward <= counted.seen.forward <= most.forward
    assert share * most.backward <= counted.seen.backward <= most.backward


def test_the_probe() -> None:
    found = passes_of_probe(Probe(images=50), SOURCES)
    assert found.others == Passes(forward=22, backward=21)
    assert found.own.backward == 1 + 2 + 2 + 6 + 21 + 5 * 22
