"""What the contact sheets show: the pictures kept in each class, one line for each model that keeps them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cleanset.boxes import Box, box_of
from cleanset.report.figures import ClassState, Key
from cleanset.selection import Filled

PER_PAGE = 50
"""Classes on one contact sheet."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a picture is to one model that keeps it."""

    role: str
    place: int
    tier: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Kept:
    """A picture that stands in a class, and for which models; the box is None for a whole one."""

    image_id: str
    crop: Box | None
    uses: tuple[Use, ...]
    reviewed: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page: the file's name, and the classes on it."""

    file: str
    classes: tuple[ClassState, ...]


def kept_pictures(sets: Mapping[str, Filled], reviewed: Collection[Key]) -> dict[int, list[Kept]]:
    """The pictures of each class that has some, by their best place, then by model and image id."""
    uses: dict[tuple[int, str, Box | None], list[Use]] = {}
    for role, filled in sets.items():
        for row in filled.selection.sort_values(["class_index", "place"]).to_dict("records"):
            key = (row["class_index"], row["image_id"], box_of(row["crop"]))
            use = Use(role, row["place"], row["tier"], float(row["confidence"]))
            uses.setdefault(key, []).append(use)
    order = list(sets)
    found: dict[int, list[Kept]] = {}
    for (index, image_id, crop), of_models in uses.items():
        kept = Kept(image_id, crop, tuple(of_models), (index, image_id) in reviewed)
        found.setdefault(index, []).append(kept)
    for pictures in found.values():
        pictures.sort(key=lambda kept: _order(kept, order))
    return dict(sorted(found.items()))


def _order(kept: Kept, roles: Sequence[str]) -> tuple[int, int, str]:
    place, role = min((use.place, roles.index(use.role)) for use in kept.uses)
    return place, role, kept.image_id


def sheets(states: Sequence[ClassState]) -> list[Sheet]:
    """The classes in pages of PER_PAGE, by class index."""
    pages = [tuple(states[start : start + PER_PAGE]) for start in range(0, len(states), PER_PAGE)]
    digits = len(str(len(pages)))
    return [Sheet(f"sheet-{number:0{digits}}.html", page) for number, page in enumerate(pages, start=1)]
