"""docs/tutorial.md: its cells run, and docs/tutorial.ipynb holds what they print; the drawing of the pipeline."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.checkouts import Checkout


def script(repository: Path, name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, repository / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_has_the_cells_of_the_page(repository: Path) -> None:
    """As jupytext 1.19 divides it: the texts, the programs, and the commands below %%bash."""
    cells = list(script(repository, "tutorial").cells((repository / "docs" / "tutorial.md").read_text()))
    expected = [
        ("markdown" if kind == "markdown" else "code", f"%%bash\n{text}" if kind == "bash" else text)
        for kind, text in cells
    ]
    notebook = json.loads((repository / "docs" / "tutorial.ipynb").read_text())
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]] == expected
    assert [kind for kind, _ in cells][:3] == ["markdown", "python", "bash"]
    assert all(cell["outputs"] == [] or cell["cell_type"] == "code" for cell in notebook["cells"] if "outputs" in cell)


@pytest.mark.exhaustive
def test_the_tutorial_gives_what_the_notebook_holds(repository: Path, pristine: Checkout, tmp_path: Path) -> None:
    """Run in a clone, from eight folders to the release; every printed line, table and contact sheet is the same."""
    clone = pristine.clone(tmp_path / "cleanset")
    clone.run("python", "docs/tutorial.py")
    found, kept = (json.loads((each / "docs" / "tutorial.ipynb").read_text()) for each in (clone.folder, repository))
    for cell, expected in zip(found["cells"], kept["cells"], strict=True):
        assert cell == expected, f"{''.join(cell['source'])}\nif that is meant, run python docs/tutorial.py"
    tutorial = clone.folder / "build" / "tutorial"
    assert (tutorial / "release" / "cleanset-images-1.0.0.tar").is_file()
    verdicts = [yaml.safe_load(path.read_text()) for path in (tutorial / "mine" / "reviews" / "ada").glob("*.yaml")]
    assert sum(len(images) for of_class in verdicts for images in of_class.values()) == 320


def test_the_drawing_of_the_pipeline_is_that_of_its_script(repository: Path) -> None:
    """Every stage of dvc.yaml is in it."""
    drawing = (repository / "docs" / "pipeline.svg").read_text()
    program = "import sys; sys.path.insert(0, 'docs'); import pipeline; print(pipeline.drawing(), end='')"
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout == drawing
    for stage in yaml.safe_load((repository / "dvc.yaml").read_text())["stages"]:
        assert stage in drawing
