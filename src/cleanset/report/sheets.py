"""The contact sheets: which classes stand on which page."""

from collections.abc import Sequence
from dataclasses import dataclass

from cleanset.report.figures import ClassState

CLASSES_PER_SHEET = 50


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page: the file's name, and the classes on it."""

    file: str
    classes: tuple[ClassState, ...]


def sheets(states: Sequence[ClassState]) -> list[Sheet]:
    """The classes in pages of CLASSES_PER_SHEET, by class index."""
    pages = [tuple(states[start : start + CLASSES_PER_SHEET]) for start in range(0, len(states), CLASSES_PER_SHEET)]
    digits = len(str(len(pages)))
    return [Sheet(f"sheet-{number:0{digits}}.html", page) for number, page in enumerate(pages, start=1)]
