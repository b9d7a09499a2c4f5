"""The small JSON files that `dvc plots` draws and compares, a chart for each."""

import json
from collections.abc import Sequence

from cleanset.dataset.ilsvrc import wnids
from cleanset.report.figures import HISTOGRAM_BINS, ClassState, Histogram, Step

Row = dict[str, str | int | float]


def plots(
    steps: Sequence[Step], states: Sequence[ClassState], histograms: Sequence[Histogram], roles: Sequence[str]
) -> dict[str, str]:
    """The text of each file, by its path. `confidence` is the lower edge of a bin that is 1 / HISTOGRAM_BINS wide."""
    rows: dict[str, list[Row]] = {}
    for role in roles:
        rows[f"funnel/{role}.json"] = [{"name": step.name, "images": step.counts[role]} for step in steps]
        rows[f"classes/{role}.json"] = [
            {"class_index": state.class_index, "wnid": wnids()[state.class_index], "images": state.kept[role]}
            for state in states
        ]
    for each in histograms:
        rows[f"confidence/{each.role}_{each.tier}.json"] = [
            {"confidence": place / HISTOGRAM_BINS, "candidates": candidates, "kept": kept}
            for place, (candidates, kept) in enumerate(zip(each.candidates, each.kept, strict=True))
        ]
    return {name: _text(of_file) for name, of_file in rows.items()}


def _text(rows: Sequence[Row]) -> str:
    """JSON, a line for each row."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
