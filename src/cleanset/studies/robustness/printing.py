"""What `robustness evaluate` prints: the measures over all changes, a table for each family; fits into 80 columns."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.studies.robustness.evaluation import Evaluated
from cleanset.studies.robustness.results import Line

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "corruptions": {
        "error_clean": "clean",
        "error_unchanged": "unchanged",
        "mean_error": "mean error",
        "mce": "mCE",
    },
    "perturbations": {"mean_fp": "mean FP", "mean_t5d": "mean T5D", "mfr": "mFR"},
    "scenarios": {
        "accuracy_clean": "clean",
        "accuracy_unchanged": "unchanged",
        "mean_accuracy": "mean accuracy",
        "score_as_published": "Score",
    },
}
"""The measures that are shown, by family, and their titles; of those that no model has, no column."""

WITHOUT_INTERVAL = ("clean", "unchanged")
IN_UNITS = ("mean_t5d", "score_as_published")
"""Measures that are no shares, and are not shown in percent."""

KINDS = {"corruptions": "error in percent", "perturbations": "flips in percent", "scenarios": "accuracy in percent"}
MEANING = "Intervals of 95 % by bootstrap over images."


def as_text(evaluated: Evaluated) -> Group:
    """What was measured on, and a table for each family."""
    images = evaluated.images
    count, classes = len(images.images), images.images["class_index"].nunique()
    parts: list[RenderableType] = [Text(f"{images.name}: {count:,} images of {classes:,} classes")]
    parts += map(Text, images.notes)
    for family, lines in evaluated.lines.items():
        chosen = [line for line in lines if line.selection == images.selections[0] and not line.change]
        if shown_measures(family, chosen):
            parts += [Text(), Text(f"{family}, {chosen[0].images:,} images: {KINDS[family]}"), _table(family, chosen)]
            parts += map(Text, dict.fromkeys(each.problem for each in chosen if _is_shown_missing(family, each)))
        else:  # of some changes there is no mean
            parts += [Text(), Text(f"{family}: no measures over all changes; measures/{family}.csv has those of each")]
        parts.append(Text(evaluated.notices[family]))
    return Group(*parts, Text(), Text(MEANING))


def _is_shown_missing(family: str, line: Line) -> bool:
    return bool(line.problem) and line.measure in COLUMNS[family]


def shown_measures(family: str, lines: Sequence[Line]) -> dict[str, str]:
    """Those of COLUMNS that a model has."""
    measures = {line.measure for line in lines}
    return {name: title for name, title in COLUMNS[family].items() if name in measures}


def _table(family: str, lines: Sequence[Line]) -> Table:
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
