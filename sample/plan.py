"""The sample's plan: the contents of each of the 480 images, from the lots of its classes in drawing/classes.yaml."""

from dataclasses import dataclass
from random import Random

from drawing.classes import SAMPLE_CLASSES, USUAL_LOTS, Difficulty, Labels, Lot
from drawing.flaws import CROPPABLE, LOST

SEED = 2012
PER_CLASS = 40


@dataclass(frozen=True)
class Plan:
    """One image: its number 1..480, its class in the ground truth, what it shows, its flaw."""

    number: int
    wnid: str
    serial: int
    shown: tuple[str, ...]
    difficulty: Difficulty
    flaw: str | None
    labels: Labels


ORDINARY = [wnid for wnid, each in SAMPLE_CLASSES.items() if each.lots is None]
"""Classes in which an additional image changes nothing."""


def plans() -> list[Plan]:
    """All images, by number."""
    numbers = list(range(1, PER_CLASS * len(SAMPLE_CLASSES) + 1))
    Random(f"{SEED} numbers").shuffle(numbers)
    planned: list[Plan] = []
    for wnid in SAMPLE_CLASSES:
        planned.extend(_class_plans(wnid, numbers[len(planned) : len(planned) + PER_CLASS]))
    return sorted(planned, key=lambda plan: plan.number)


def _class_plans(wnid: str, numbers: list[int]) -> list[Plan]:
    own = SAMPLE_CLASSES[wnid]
    lots = [lot for lot in own.lots or USUAL_LOTS for _ in range(lot.count)]
    assert len(lots) == PER_CLASS, f"{wnid}: {len(lots)} images planned, {PER_CLASS} wanted"
    planned: list[Plan] = []
    for serial, (number, lot) in enumerate(zip(numbers, lots, strict=True)):
        rng = Random(f"{SEED} plan {wnid} {serial}")
        flaw = own.flaws.get(serial, _flaw(lot, serial))
        planned.append(Plan(number, wnid, serial, _shown(wnid, lot, rng), lot.difficulty, flaw, lot.labels))
    return planned


def _flaw(lot: Lot, serial: int) -> str | None:
    """The lot's kinds of flaw in turn."""
    if lot.flaw is None:
        return None
    names = list(CROPPABLE if lot.flaw == "croppable" else LOST)
    return names[serial % len(names)]


def _shown(wnid: str, lot: Lot, rng: Random) -> tuple[str, ...]:
    """The wnids of the objects that the image shows."""
    if lot.labels == "several":
        return wnid, rng.choice(SAMPLE_CLASSES[wnid].partners)
    if lot.labels == "other":
        return (rng.choice([other for other in ORDINARY if other != wnid]),)
    if lot.labels == "none" and rng.randrange(2):
        return ()
    return (wnid,)
