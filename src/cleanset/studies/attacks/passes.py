"""How often each attack asks networks for one image, at most: passes forward and backward, by its parameters alone.

A search that ends with its first success asks less. Passes of other models, that images are made on, are counted apart.
"""

from dataclasses import dataclass

from cleanset.planning.work import NO_PASSES, Passes
from cleanset.scoring.consistency import MAX_CHECKED, batches_to_ask
from cleanset.studies.attacks.ascent import FINISHING_FILES
from cleanset.studies.attacks.autoattack import (
    MIN_DLR_CLASSES,
    TARGETS,
    TWO_CLASSES,
    AutoAttackAttack,
    Part,
    SquareAttack,
)
from cleanset.studies.attacks.base import Parameters
from cleanset.studies.attacks.baselines import GROWING_STEPS, NOISE_POINTS, radii
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.changes import CommonCorruptionsAttack, SpatialGridAttack
from cleanset.studies.attacks.gradient_attacks import STANDARD_LOSSES, PgdAttack, SpsaAttack, TransferAttack
from cleanset.studies.attacks.probing import FEW_STEPS, MODES, PARTS, RANDOM_STEPS
from cleanset.studies.attacks.study import Probe

FAB_FORWARD = 2
"""Passes of a step of FAB forward: one with a gradient, and one that looks whether the step is a success."""
FAB_LAST_SEARCH = 3
"""Bisections at the end of FAB, a pass each."""
CHECKED = Passes(forward=13, backward=1)
"""Passes of pyautoattack's checks before each of its attacks, with the image before and after: counted on a network
that nothing breaks."""
SQUARE_CHECKED = Passes(forward=14)
"""The same of square, which needs no gradient."""
SQUARE_ALONE = 5
"""Passes of the attack square beside its queries."""
JUDGED = Passes(forward=2)
"""The image and the candidate, in the judge's precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackPasses:
    """The passes for one image."""

    own: Passes = NO_PASSES
    """Of the model under attack, in the precision of the search."""
    others: Passes = NO_PASSES
    """Of each of the other models."""
    changed: int = 0
    """Changed images that the cores make."""


def passes_of(attack: Parameters, sources: int, classes: int) -> AttackPasses:
    """The passes of an attack for one image, at most; `sources`: the models that transfer makes images on."""
    if isinstance(attack, PgdAttack):
        return AttackPasses(own=_of_pgd(attack))
    if isinstance(attack, TransferAttack):
        pgd = PgdAttack(steps=attack.steps, max_steps=attack.steps, group=attack.group)
        return AttackPasses(own=Passes(forward=sources), others=_of_pgd(pgd))
    if isinstance(attack, SpsaAttack):
        return AttackPasses(own=Passes(forward=attack.steps * (attack.samples + 1)))
    if isinstance(attack, BoundaryAttack):
        return AttackPasses(own=Passes(forward=attack.queries))
    if isinstance(attack, SquareAttack):
        return AttackPasses(own=Passes(forward=attack.queries + SQUARE_ALONE))
    if isinstance(attack, AutoAttackAttack):
        return AttackPasses(own=_of_autoattack(attack, classes))
    if isinstance(attack, SpatialGridAttack):
        count = len(attack.changes())
        return AttackPasses(own=Passes(forward=count), changed=count)
    if isinstance(attack, CommonCorruptionsAttack):
        return AttackPasses(own=Passes(forward=attack.corruptions), changed=attack.corruptions)
    return AttackPasses(changed=int(attack.changes_images))


def _of_pgd(attack: PgdAttack) -> Passes:
    """Each start asks about its first place, after each step, and about the files that it ends with.

    The nearest of these needs no gradient.
    """
    answers = len(attack.losses) * attack.restarts * attack.draws
    gradients = attack.most_steps + 1 + min(attack.files, attack.steps)
    return Passes(forward=answers * (gradients + 1), backward=answers * gradients)


def _of_autoattack(attack: AutoAttackAttack, classes: int) -> Passes:
    parts = attack.attacks if classes >= MIN_DLR_CLASSES else TWO_CLASSES
    return sum((_of_part(attack, part, classes) for part in parts), NO_PASSES)


def _of_part(attack: AutoAttackAttack, part: Part, classes: int) -> Passes:
    """The passes of one of the library's attacks, with its checks, and its last files."""
    if part == "square":
        return Passes(forward=attack.square_queries) + SQUARE_CHECKED
    # the place that was found, with its gradient, and the nearest file twice
    gradients = (1 + FINISHING_FILES) * attack.draws
    ending = Passes(forward=gradients + 2 * attack.draws, backward=gradients)
    targets = min(TARGETS, classes - 1) if part in ("apgd-t", "fab-t") else 1
    if part.startswith("apgd"):
        asked = (attack.steps + 1) * attack.draws * targets
        # each target is read off an answer
        return Passes(forward=asked + targets, backward=asked) + ending + CHECKED
    # without targets FAB asks for a gradient by each class
    of_classes = classes if part == "fab" else 1
    return (
        Passes(
            forward=targets * (FAB_FORWARD * attack.steps + FAB_LAST_SEARCH),
            backward=targets * of_classes * attack.steps,
        )
        + ending
        + CHECKED
    )


def passes_of_probe(probe: Probe, sources: int) -> AttackPasses:
    """The passes of the signs of gradient masking for one image: its answers, its neighbours, and the searches."""
    repeats = 3
    answered = Passes(forward=2 * repeats + len(MODES) + 1, backward=1)
    checked = Passes(forward=-(-sum(map(len, batches_to_ask(MAX_CHECKED))) // probe.images))
    # at the image and at a corner: the gradient, two steps to both sides in each part, single pixels
    near = Passes(forward=1 + 4 * PARTS**2 + RANDOM_STEPS, backward=1) * 2
    own = answered + checked + near
    for steps in (*(few for few in FEW_STEPS if few < probe.steps), probe.steps):
        own += _of_pgd(_plain(steps)) + Passes(forward=2)
    own += Passes(forward=probe.spsa_steps * (probe.spsa_samples + 1) + 2)
    growing = PgdAttack(steps=1, max_steps=GROWING_STEPS, losses=[*STANDARD_LOSSES], files=0)
    own += (_of_pgd(growing) + Passes(forward=2)) * len(radii(probe.eps))
    own += Passes(forward=NOISE_POINTS + 1 + 2 * sources)
    return AttackPasses(own=own, others=_of_pgd(_plain(probe.steps)))


def _plain(steps: int) -> PgdAttack:
    """PGD as the probe has it."""
    return PgdAttack(steps=steps, max_steps=steps, losses=["cross_entropy"], files=0)
