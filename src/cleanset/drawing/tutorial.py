"""The folder of the tutorial: its notebook, photographs, and the weights of two small networks."""

import json
import re
from pathlib import Path
from typing import Any

from cleanset.drawing.folders import draw_folders
from cleanset.plumbing.files import new_folder

DATA = Path(__file__).parent / "data"
"""Links to files of docs/ and sample/; an installed package has the files."""
NOTEBOOK = "tutorial.ipynb"
PICTURES = ("pipeline.svg", "review_class.webp")
WEIGHTS = ("corruption_robust.safetensors", "standard.safetensors")
# [text](page.md) or [text](page.md#heading), but no picture
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?:[^):]+\.(?:md|ipynb))(?:#[^)]*)?\)")


def write_tutorial(folder: Path) -> None:
    """Write all that the tutorial needs into a new or empty folder.

    Raises CleansetError for another folder.
    """
    with new_folder(folder) as partial:
        draw_folders(partial / "photos")
        (partial / "weights").mkdir()
        for name in WEIGHTS:
            (partial / "weights" / name).write_bytes((DATA / name).read_bytes())
        for name in PICTURES:
            (partial / name).write_bytes((DATA / name).read_bytes())
        notebook = to_be_run(json.loads((DATA / NOTEBOOK).read_text("utf-8")))
        (partial / NOTEBOOK).write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")


def to_be_run(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook without outputs, and without links to pages that do not lie beside it."""
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = _LINK.sub(r"*\1*", "".join(cell["source"]))
            cells.append({**cell, "source": text.splitlines(keepends=True)})
        else:
            cells.append({**cell, "outputs": []})
    return {**notebook, "cells": cells}
