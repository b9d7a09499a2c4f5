"""docs/tutorial.md: its cells run, and docs/tutorial.ipynb holds what they print; the drawing of the pipeline."""

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.tutorial import write_tutorial
from tests.checkouts import Checkout
from tests.extras import environment_with
from tutorial_photos import ARCHIVE, FOLDERS, jpeg, photograph

PHOTOS = "636e1c6e4a2f30a0ab2fb876f25c48c16ce28e32b8e4d23197b52c221bf4377c"
"""SHA-256 of the photographs, one after another by name."""


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
    assert [kind for kind, _ in cells][:3] == ["markdown", "bash", "markdown"]
    assert all(cell["outputs"] == [] or cell["cell_type"] == "code" for cell in notebook["cells"] if "outputs" in cell)


@pytest.mark.long
def test_the_command_writes_what_the_cells_need(tmp_path: Path) -> None:
    """No output, no link to a page that is not there; the photographs have one digest on every machine."""
    write_tutorial(tmp_path / "eight")
    notebook = json.loads((tmp_path / "eight" / "tutorial.ipynb").read_text())
    kinds = Counter(cell["cell_type"] for cell in notebook["cells"])
    assert kinds["code"] == 12
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    text = "".join("".join(cell["source"]) for cell in notebook["cells"])
    linked = set(re.findall(r"\]\(([^)]+)\)", text))
    assert linked == {"pipeline.svg", "review_class.webp"}
    assert all((tmp_path / "eight" / name).is_file() for name in linked)
    assert "*Your own images*" in text
    photos = sorted((tmp_path / "eight" / "photos").glob("*/*.jpg"))
    assert len(photos) == 320
    assert sha256(b"".join(path.read_bytes() for path in photos)) == PHOTOS
    for name in ("standard", "corruption_robust"):
        assert (tmp_path / "eight" / "weights" / f"{name}.safetensors").stat().st_size > 700_000
    with pytest.raises(CleansetError, match="expected a new or empty folder"):
        write_tutorial(tmp_path / "eight")


@pytest.mark.long
def test_the_photographs_are_those_that_the_sample_draws() -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        assert archive.namelist() == [f"{name}/{number:02d}.jpg" for name in FOLDERS for number in range(1, 41)]
        for name in (*FOLDERS, "balloon"):
            for number in (1, 5) if name == "balloon" else (2,):
                assert archive.read(f"{name}/{number:02d}.jpg") == jpeg(photograph(name, number))


@pytest.mark.exhaustive
def test_the_tutorial_gives_what_the_notebook_holds(repository: Path, pristine: Checkout, tmp_path: Path) -> None:
    """Run in a clone, from eight folders to the release; every printed line, table and contact sheet is the same.

    Every library is hidden that the extra `tutorial` does not bring, in all programs that the cells start.
    """
    clone = pristine.clone(tmp_path / "cleanset")
    libraries = environment_with(repository, tmp_path / "site", "tutorial", network=True)
    path = f"{tmp_path / 'site'}:{clone.folder / 'src'}"
    done = subprocess.run(
        [sys.executable, "docs/tutorial.py"],
        cwd=clone.folder,
        capture_output=True,
        text=True,
        check=False,
        env=clone.environment() | libraries | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    found, kept = (json.loads((each / "docs" / "tutorial.ipynb").read_text()) for each in (clone.folder, repository))
    for cell, expected in zip(found["cells"], kept["cells"], strict=True):
        assert cell == expected, f"{''.join(cell['source'])}\nif that is meant, run python docs/tutorial.py"
    tutorial = clone.folder / "build" / "tutorial"
    assert (tutorial / "release" / "cleanset-images-1.0.0.tar").is_file()
    verdicts = [yaml.safe_load(path.read_text()) for path in (tutorial / "mine" / "reviews" / "ada").glob("*.yaml")]
    assert sum(len(images) for of_class in verdicts for images in of_class.values()) == 320


def test_the_drawing_of_the_pipeline_has_every_stage(repository: Path) -> None:
    drawing = (repository / "docs" / "pipeline.svg").read_text()
    for stage in yaml.safe_load((repository / "dvc.yaml").read_text())["stages"]:
        assert stage in drawing
