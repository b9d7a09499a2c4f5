"""The sample's plan: the contents of each of the 480 images, class by class.

A class's forty images come in lots. The lots are chosen so that every case of the
selection's rules occurs somewhere: see the comments at the classes.
"""

from dataclasses import dataclass
from random import Random
from typing import Literal

from cleanset.drawing.flaws import CROPPABLE, LOST
from cleanset.drawing.scenes import Difficulty

SEED = 2012
PER_CLASS = 40

Flaw = Literal["croppable", "lost"]
Labels = Literal["one", "doubtful", "several", "other", "none"]


@dataclass(frozen=True)
class Lot:
    """Images of one kind within a class.

    `labels`: "one" (the object), "doubtful" (the object alone, but raters do not rule out
    its lookalike), "several" (it and a second one are shown), "other" (the ground truth
    names this class, but another object is shown), "none" (nothing recognisable).
    """

    count: int
    difficulty: Difficulty
    flaw: Flaw | None = None
    labels: Labels = "one"


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


USUAL = [
    Lot(8, "easy"),
    Lot(12, "medium"),
    Lot(8, "hard"),
    Lot(2, "easy", "croppable"),
    Lot(1, "medium", "croppable"),
    Lot(2, "easy", "lost"),
    Lot(1, "medium", "lost"),
    Lot(4, "easy", None, "several"),
    Lot(1, "hopeless", None, "none"),
    Lot(1, "easy", None, "other"),
]

LOTS: dict[str, list[Lot]] = {
    "n01443537": USUAL,
    "n02165456": USUAL,
    "n02317335": USUAL,
    "n02708093": USUAL,
    "n02782093": USUAL,
    # Few images that all models get right: the rest comes from each model's own reserve.
    "n02814860": [
        Lot(3, "medium"),
        Lot(22, "hard"),
        Lot(2, "hard", "lost"),
        Lot(1, "hard", "croppable"),
        Lot(6, "medium", None, "several"),
        Lot(5, "hopeless", None, "none"),
        Lot(1, "easy", None, "other"),
    ],
    # The easiest images are beyond saving: clean ones come from the reserve.
    "n04254680": [
        Lot(14, "easy", "lost"),
        Lot(1, "easy", "croppable"),
        Lot(2, "medium"),
        Lot(15, "hard"),
        Lot(5, "medium", None, "several"),
        Lot(2, "hopeless", None, "none"),
        Lot(1, "easy", None, "other"),
    ],
    # The easiest images have to be cropped.
    "n04507155": [
        Lot(14, "easy", "croppable"),
        Lot(2, "easy", "lost"),
        Lot(6, "medium"),
        Lot(10, "hard"),
        Lot(5, "medium", None, "several"),
        Lot(2, "hopeless", None, "none"),
        Lot(1, "easy", None, "other"),
    ],
    # No clean image with one label: the reserve has to be cropped.
    "n06874185": [
        Lot(12, "easy", "lost"),
        Lot(6, "medium", "croppable"),
        Lot(5, "hard", "croppable"),
        Lot(10, "medium", None, "doubtful"),
        Lot(7, "hopeless", None, "none"),
    ],
    # Everything is beyond saving but one image: the class stays short.
    "n07734744": [
        Lot(14, "easy", "lost"),
        Lot(1, "medium"),
        Lot(6, "medium", "lost", "several"),
        Lot(17, "hopeless", None, "none"),
        Lot(2, "easy", None, "other"),
    ],
    # Two images with one label: images with several labels fill the class.
    "n07745940": [
        Lot(2, "medium"),
        Lot(2, "easy", "lost"),
        Lot(20, "easy", None, "doubtful"),
        Lot(14, "hopeless", None, "none"),
        Lot(2, "easy", None, "other"),
    ],
    # As before, but those have to be cropped.
    "n07753592": [
        Lot(1, "medium"),
        Lot(2, "easy", "lost"),
        Lot(16, "easy", "croppable", "doubtful"),
        Lot(4, "easy", "lost", "doubtful"),
        Lot(15, "hopeless", None, "none"),
        Lot(2, "easy", None, "other"),
    ],
}

ORDINARY = [wnid for wnid, lots in LOTS.items() if lots is USUAL]
"""Classes in which an additional image changes nothing."""

PARTNERS: dict[str, list[str]] = {
    "n01443537": ["n02317335"],
    "n02165456": ["n07745940"],
    "n02317335": ["n04254680"],
    "n02708093": ["n04507155"],
    "n02782093": ["n02814860"],
    "n02814860": ["n02782093"],
    "n04254680": ["n04507155"],
    "n04507155": ["n04254680", "n06874185"],
    "n06874185": ["n04507155", "n02708093"],
    "n07734744": ["n02165456", "n07745940"],
    "n07745940": ["n02165456", "n02317335", "n04507155"],
    "n07753592": ["n07745940", "n02708093"],
}
"""Objects that may stand beside another: none that would fill a class that is to lack images."""

LOOKALIKES = {
    "n06874185": "n03976657",  # traffic light: pole
    "n07745940": "n12768682",  # strawberry: rose hip
    "n07753592": "n07717556",  # banana: butternut squash
}
"""The second label of a doubtful image."""

FLAWS_BY_SERIAL: dict[tuple[str, int], str] = {
    ("n02814860", 0): "grain",
    ("n02814860", 1): "lettering",
    ("n02814860", 2): "tint",
    ("n02814860", 18): "haze",
    ("n06874185", 13): "lettering",
    ("n06874185", 16): "grain",
    ("n06874185", 17): "haze",
}
"""Flaws planted after a look at the trained models' confidence in an image.

These images were among the easiest of their class: flawed, they leave it to others
to fill the class. The key is the image's class and its place in the class's lots.
"""


def plans() -> list[Plan]:
    """All images, by number."""
    numbers = list(range(1, PER_CLASS * len(LOTS) + 1))
    Random(f"{SEED} numbers").shuffle(numbers)
    planned: list[Plan] = []
    for wnid in LOTS:
        planned.extend(_class_plans(wnid, numbers[len(planned) : len(planned) + PER_CLASS]))
    return sorted(planned, key=lambda plan: plan.number)


def _class_plans(wnid: str, numbers: list[int]) -> list[Plan]:
    lots = [lot for lot in LOTS[wnid] for _ in range(lot.count)]
    assert len(lots) == PER_CLASS, f"{wnid}: {len(lots)} images planned, {PER_CLASS} wanted"
    planned: list[Plan] = []
    for serial, (number, lot) in enumerate(zip(numbers, lots, strict=True)):
        rng = Random(f"{SEED} plan {wnid} {serial}")
        flaw = FLAWS_BY_SERIAL.get((wnid, serial), _flaw(lot, serial))
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
        return wnid, rng.choice(PARTNERS[wnid])
    if lot.labels == "other":
        return (rng.choice([other for other in ORDINARY if other != wnid]),)
    if lot.labels == "none" and rng.randrange(2):
        return ()
    return (wnid,)
