"""The folder of the tutorial: its notebook, photographs, and the weights of two small networks."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from cleanset.plumbing.files import new_folder

DATA = Path(__file__).parent / "data"
"""The photographs, which sample/tutorial_photos.py draws; links to files of docs/ and sample/.

An installed package has files in place of the links.
"""
PHOTOS = "photos.zip"
NOTEBOOK = "tutorial.ipynb"
PICTURES = ("pipeline.svg", "review_class.webp")
WEIGHTS = ("corruption_robust.safetensors", "standard.safetensors")
# [text](page.md) or [text](page.md#heading), but no picture
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?:[^):]+\.(?:md|ipynb))(?:#[^)]*)?\)")


def write_tutorial(folder: Path) -> list[str]:
    """Write all that the tutorial needs into a new or empty folder; the photographs, as class and file name.

    Raises CleansetError for another folder.
    """
    with new_folder(folder) as partial, zipfile.ZipFile(DATA / PHOTOS) as photographs:
        photographs.extractall(partial / "photos")
        (partial / "weights").mkdir()
        for name in WEIGHTS:
            (partial / "weights" / name).write_bytes((DATA / name).read_bytes())
        for name in PICTURES:
            (partial / name).write_bytes((DATA / name).read_bytes())
        notebook = to_be_run(json.loads((DATA / NOTEBOOK).read_text("utf-8")))
        (partial / NOTEBOOK).write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")
        return photographs.namelist()


def to_be_run(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook without outputs, and without links to pages that are not next to it."""
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = _LINK.sub(r"*\1*", "".join(cell["source"]))
            cells.append({**cell, "source": text.splitlines(keepends=True)})
        else:
            cells.append({**cell, "outputs": []})
    return {**notebook, "cells": cells}
