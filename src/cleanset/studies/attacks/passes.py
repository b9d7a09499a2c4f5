"""How often the search for signs of gradient masking asks networks for one image, and the judge for each candidate."""

from cleanset.planning.work import Passes
from cleanset.scoring.consistency import MAX_CHECKED, batches_to_ask
from cleanset.studies.attacks.base import AttackPasses
from cleanset.studies.attacks.baselines import GROWING_STEPS, NOISE_POINTS, radii
from cleanset.studies.attacks.gradient_attacks import STANDARD_LOSSES, PgdAttack
from cleanset.studies.attacks.probing import FEW_STEPS, MODES, PARTS, RANDOM_STEPS
from cleanset.studies.attacks.study import Probe

JUDGED = Passes(forward=2)
"""The image and the candidate, in the judge's precision."""


def passes_of_probe(probe: Probe, sources: int) -> AttackPasses:
    """The passes of the signs of gradient masking for one image: its answers, its neighbours, and the searches."""
    repeats = 3
    answered = Passes(forward=2 * repeats + len(MODES) + 1, backward=1)
    checked = Passes(forward=-(-sum(map(len, batches_to_ask(MAX_CHECKED))) // probe.images))
    # at the image and at a corner: the gradient, steps of two lengths to both sides (at random and along the gradient
    # in each part, along it in each color), single pixels
    near = Passes(forward=1 + 4 * (2 * PARTS**2 + 3) + RANDOM_STEPS, backward=1) * 2
    own = answered + checked + near
    for steps in (*(few for few in FEW_STEPS if few < probe.steps), probe.steps):
        own += _of_pgd(_plain(steps)) + Passes(forward=2)
    own += Passes(forward=probe.spsa_steps * (probe.spsa_samples + 1) + 2)
    growing = PgdAttack(steps=1, max_steps=GROWING_STEPS, losses=[*STANDARD_LOSSES], files=0)
    own += (_of_pgd(growing) + Passes(forward=2)) * len(radii(probe.eps))
    own += Passes(forward=NOISE_POINTS + 1 + 2 * sources)
    return AttackPasses(own=own, others=_of_pgd(_plain(probe.steps)))


def _of_pgd(attack: PgdAttack) -> Passes:
    return attack.passes(sources=0, classes=0).own


def _plain(steps: int) -> PgdAttack:
    """PGD as the probe has it."""
    return PgdAttack(steps=steps, max_steps=steps, losses=["cross_entropy"], files=0)
