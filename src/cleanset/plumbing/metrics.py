"""Metrics as `dvc metrics show` prints them: a small JSON file for each line, with the models as its columns."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cleanset.plumbing.folder_updates import updating

Lines = Mapping[str, Mapping[str, float | int | str | None]]
"""The number of each model by the name of the line, which may contain folders; None if it is not defined."""


def metric_lines(measured: Iterable[tuple[str, str, Sequence[float]]]) -> Lines:
    """The lines of `dvc metrics show`, from the name of each, a model, and its value or value, low and high end."""
    found: dict[str, dict[str, float | None]] = {}
    for name, model, values in measured:
        for end, value in zip(("", "_low", "_high"), values, strict=False):
            # rounded, since processors differ in the last digits of sums
            found.setdefault(name + end, {})[model] = round(value, 6) if math.isfinite(value) else None
    return found


def write_metrics(folder: Path, lines: Lines) -> None:
    """Write each line to its own JSON file in `folder`, and nothing else there."""
    with updating(folder) as update:
        for name, numbers in lines.items():
            update.write_text(f"{name}.json", json.dumps(numbers) + "\n")
