"""What `robustness evaluate` prints: the measures over all changes, a table for each family; fits into 80 columns."""

from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.studies.robustness.evaluation import Evaluated
from cleanset.studies.robustness.families import family_named
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.results import Line

WITHOUT_INTERVAL = ("clean", "unchanged")
IN_UNITS = ("mean_t5d", "score_as_published")
"""Measures that are no shares, and are not shown in percent."""

MEANING = "Intervals of 95 % by bootstrap over images."


def as_text(evaluated: Evaluated) -> Group:
    """What was measured on, and a table for each family."""
    images = evaluated.images
    count, classes = len(images.images), images.images["class_index"].nunique()
    parts: list[RenderableType] = [Text(f"{images.name}: {count:,} images of {classes:,} classes")]
    parts += map(Text, images.notes)
    for name, lines in evaluated.lines.items():
        family = family_named(name)
        chosen = [line for line in lines if line.selection == images.selections[0] and not line.change]
        if shown_measures(family, chosen):
            parts += [Text(), Text(f"{name}, {chosen[0].images:,} images: {family.unit}"), _table(family, chosen)]
            parts += map(Text, dict.fromkeys(each.problem for each in chosen if _is_shown_missing(family, each)))
        else:  # of some changes there is no mean
            parts += [Text(), Text(f"{name}: no measures over all changes; measures/{name}.csv has those of each")]
        parts.append(Text(evaluated.notices[name]))
    return Group(*parts, Text(), Text(MEANING))


def _is_shown_missing(family: Family, line: Line) -> bool:
    return bool(line.problem) and line.measure in family.summary


def shown_measures(family: Family, lines: Sequence[Line]) -> dict[str, str]:
    """The measures of the summary that a model has."""
    measures = {line.measure for line in lines}
    return {name: title for name, title in family.summary.items() if name in measures}


def _table(family: Family, lines: Sequence[Line]) -> Table:
    """A row for each model, in the order in which they were named."""
    found = {(line.model, line.measure): line for line in lines}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold", min_width=12, vertical="top")
    titles = shown_measures(family, lines)
    for title in titles.values():
        table.add_column(title, justify="right", no_wrap=True)
    for model in dict.fromkeys(line.model for line in lines):
        cells = (_cell(found.get((model, name)), title in WITHOUT_INTERVAL) for name, title in titles.items())
        table.add_row(Text(model), *cells)
    return table


def _cell(line: Line | None, alone: bool) -> str:
    if line is None or not np.isfinite(line.value):
        return "–"
    factor, digits = (1, 3) if line.measure in IN_UNITS else (100, 1)
    value, low, high = (f"{factor * each:.{digits}f}" for each in (line.value, line.low, line.high))
    return value if alone else f"{value} ({low}–{high})"
