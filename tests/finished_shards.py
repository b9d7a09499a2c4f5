"""The shards of a computation that are finished while it continues."""

import os
from pathlib import Path


def finished_shards(folder: Path) -> list[str]:
    """The names of the tables in the folders of unfinished results, which are in or below `folder`, sorted.

    Workers make each file in a temporary folder, which vanishes meanwhile: `os.walk` passes over it, `rglob` fails.
    """
    return sorted(
        file
        for parent, _, files in os.walk(folder)
        if ".partial-shards" in parent and not Path(parent).name.startswith(".")
        for file in files
        if file[0].isdigit() and file.endswith(".parquet")
    )
