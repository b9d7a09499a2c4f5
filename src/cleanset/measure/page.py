"""The page of the results: one file without external resources; predictions made elsewhere give the same page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import cleanset.report
from cleanset.dataset.ilsvrc import class_names
from cleanset.files import write_text
from cleanset.measure.evaluation import MeasuredModel, by_accuracy, notes_of, pairs
from cleanset.measure.measures import Bin
from cleanset.measure.sets import EvaluationSet
from cleanset.measure.terminal import about, confusion_counts, hardest_classes, percent, shown_p

TEMPLATES = (Path(__file__).parent / "templates", Path(cleanset.report.__file__).parent / "templates")
"""The page's own template, and those of the report with the style."""
PAGE = "index.html"
MAX_ROWS = 50
"""Classes and confusions that the page lists."""
MAX_PAIRED = 6
"""Models up to which every pair is shown; of more, the most accurate against each other one."""
SIDE = 200
"""Width and height of a reliability diagram, in units of its drawing."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bin of a reliability diagram: the height of its bar, the accuracy, and of the line at its mean confidence."""

    x: float
    width: float
    height: float
    confidence: float
    text: str


def bars(bins: Sequence[Bin]) -> list[Bar]:
    """The bars of the bins that have images."""
    return [
        Bar(
            SIDE * each.low + 1,
            SIDE * (each.high - each.low) - 2,
            SIDE * each.correct / each.images,
            SIDE * each.mean_confidence,
            f"confidence {each.low:.2f} to {each.high:.2f}: {each.images:,} images, accuracy "
            f"{percent(each.correct / each.images, 1)}, mean confidence {percent(each.mean_confidence, 1)}",
        )
        for each in bins
        if each.mean_confidence is not None
    ]


def page(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> str:
    """The text of the page: the same measures give the same text, however the predictions were computed."""
    # StrictUndefined: a misspelled name raises, where Jinja2 by default prints nothing
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"percent": percent, "shown_p": shown_p}
    environment.globals |= {"bars": bars, "side": SIDE}
    order, every = by_accuracy(rows), pairs(rows)
    return environment.get_template("evaluation.html").render(
        about=about(images),
        notes=[*images.notes, *(note for row in order for note in notes_of(row))],
        set_name=images.name,
        models=order,
        rank_of={row.name: rank for rank, row in enumerate(order, start=1)},
        pairs=every if len(order) <= MAX_PAIRED else every[: len(order) - 1],
        all_pairs=len(every),
        hardest=hardest_classes(order, MAX_ROWS),
        confusions=confusion_counts(order, MAX_ROWS),
        names=class_names(),
    )


def write_page(folder: Path, images: EvaluationSet, rows: Sequence[MeasuredModel]) -> None:
    """Write the page into a folder, which is made where it is missing; an earlier page there is replaced."""
    write_text(folder / PAGE, page(images, rows))
