"""Unrestricted Adversarial Examples (arXiv:1809.08352): coverage and the sizes of its warm-up attacks."""

from pathlib import Path

import numpy as np

from cleanset.reproduce.numbers import NotComputed, Number, Reproduction
from cleanset.statistics.coverage import at_coverage
from cleanset.studies.attacks.changes import SpatialGridAttack
from cleanset.studies.attacks.gradient_attacks import SpsaAttack

TITLE = "T. B. Brown et al., Unrestricted Adversarial Examples (arXiv:1809.08352)"
KIT = "Output of the warm-up kit, github.com/openphilanthropy/unrestricted-adversarial-examples"

LOGITS = ((2, 1), (0, 3), (1.5, 1.4), (0.2, 0.1), (5, 0), (0, 0.5), (3, 3.5), (1, 0), (0.9, 4), (0.05, 0))
"""Of ten images, for bicycle and bird."""
CLASSES = (0, 1, 1, 1, 0, 0, 1, 0, 1, 1)
ACCURACIES = {0.8: "0.75", 1.0: "0.6"}
"""By coverage, what eval_kit.py gives for them."""

NOT_COMPUTED = (
    NotComputed(
        where="Baselines of the leaderboard, such as 92.2 % of the Keras ResNet at coverage .8 under spatial_grid",
        why="their weights were not published, and the images of bird-or-bicycle are to be downloaded from OpenImages; "
        "`cleanset attacks` measures your networks by the same attacks (docs/attacks.md)",
    ),
    NotComputed(
        where="The images that taskers found unambiguous",
        why="the taskers' answers were not published, and paper, proposal and program have three rules of size "
        "(docs/contest.md)",
    ),
)


def reproduce(_files: Path | None) -> Reproduction:
    """All numbers; no file is needed."""
    logits = np.array(LOGITS, np.float64)
    # the kit takes the first of two equal logits, and the largest one for the confidence
    correct = (logits[:, 0] < logits[:, 1]) == np.array(CLASSES, np.bool_)
    names = [f"{place:02d}" for place in range(len(LOGITS))]
    numbers = [
        Number(
            where=KIT,
            quantity=f"accuracy of ten images at coverage {coverage}",
            printed=printed,
            computed=at_coverage(logits.max(axis=1), correct, names, coverage).accuracy or 0.0,
        )
        for coverage, printed in ACCURACIES.items()
    ]
    spsa = SpsaAttack()
    sizes = {
        "spatial_grid, combinations": ("775", len(SpatialGridAttack().changes())),
        # one more query a step: of the place itself, for the early stop
        "spsa, queries of an image": ("13000", spsa.steps * (spsa.samples + 1)),
    }
    numbers += [
        Number(where=KIT, quantity=name, printed=printed, computed=float(computed))
        for name, (printed, computed) in sizes.items()
    ]
    return Reproduction(title=TITLE, numbers=tuple(numbers), not_computed=NOT_COMPUTED)
