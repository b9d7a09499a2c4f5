"""The page of the results: one file without external resources; predictions made elsewhere give the same page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import cleanset.report
from cleanset.files import write_text
from cleanset.measure import terminal
from cleanset.measure.measures import Bin, MeasuredModel, by_accuracy, notes_of, pairs
from cleanset.measure.sets import EvaluationSet
from cleanset.vocabulary import class_column, class_names, has_top5

TEMPLATES = (Path(__file__).parent / "templates", Path(cleanset.report.__file__).parent / "templates")
"""The page's own template, and those of the report with the style."""
PAGE = "index.html"
MAX_ROWS = 50
"""Classes and confusions that the page lists."""
MAX_PAIRED = 6
"""Models up to which every pair is shown; of more, the most accurate against each other one."""
SIDE = 200
"""Width and height of a reliability diagram, in units of its drawing."""


def bars(bins: Sequence[Bin]) -> list[dict[str, Any]]:
    """The bars of the bins that have images: their height is the accuracy, `confidence` that of a line at its mean."""
    return [
        {
            "x": SIDE * each.low + 1,
            "width": SIDE * (each.high - each.low) - 2,
            "height": SIDE * each.correct / each.images,
            "confidence": SIDE * each.mean_confidence,
            "text": f"confidence {each.low:.2f} to {each.high:.2f}: {each.images:,} images, accuracy "
            f"{terminal.percent(each.correct / each.images, 1)}, "
            f"mean confidence {terminal.percent(each.mean_confidence, 1)}",
        }
        for each in bins
        if each.mean_confidence is not None
    ]


def write_page(folder: Path, images: EvaluationSet, rows: Sequence[MeasuredModel]) -> None:
    """Write the page into a folder, which is made where it is missing; an earlier page there is replaced.

    The same measures give the same text, however the predictions were computed.
    """
    # StrictUndefined: a misspelled name raises, where Jinja2 by default prints nothing
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"percent": terminal.percent, "shown_p": terminal.shown_p}
    environment.globals |= {"bars": bars, "side": SIDE, "class_column": class_column(), "has_top5": has_top5()}
    order, every = by_accuracy(rows), pairs(rows)
    text = environment.get_template("evaluation.html").render(
        about=terminal.about(images),
        notes=[*images.notes, *(note for row in order for note in notes_of(row))],
        set_name=images.name,
        models=order,
        rank_of={row.name: rank for rank, row in enumerate(order, start=1)},
        pairs=every if len(order) <= MAX_PAIRED else every[: len(order) - 1],
        all_pairs=len(every),
        hardest=terminal.hardest_classes(order, MAX_ROWS),
        confusions=terminal.confusion_counts(order, MAX_ROWS),
        names=class_names(),
    )
    write_text(folder / PAGE, text)
