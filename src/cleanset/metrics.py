"""Metrics as `dvc metrics show` reads them: a small JSON file for each line, the models as its columns."""

import json
from collections.abc import Mapping
from pathlib import Path

from cleanset.files import replacing, write_text

Lines = Mapping[str, Mapping[str, float | int | None]]
"""The number of each model by the name of the line, which may contain folders; None where it is not defined."""


def write_metrics(folder: Path, lines: Lines) -> None:
    """Write each line to its own JSON file in `folder`, and nothing else there."""
    with replacing(folder) as partial:
        for name, numbers in lines.items():
            write_text(partial / f"{name}.json", json.dumps(numbers) + "\n")
