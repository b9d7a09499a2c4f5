"""The published ratings, R where it is, and a plan for a small set."""

import csv
import io
import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.cli import app
from cleanset.plumbing.csv_files import unescaped
from cleanset.studies.realness.ratings import Answer, read_ratings, texts_of
from tests.sets.conftest import make_edition

STUDIES = ("aca", "advpp", "cadv", "cadv_4_6", "diffattack", "ncf", "semanticadv")
DIFFERENT_PEOPLE = tuple(name for name in STUDIES if name != "cadv_4_6")
"""cadv_4_6 has a part of the ratings of cadv once more."""

VIEW = "448,448,1,1280,800,0,0"
"""The last cells of an answer: the layout of the trial on the screen."""
ANSWER_HEADER = ",".join(
    [
        "person", "list", "position", "stimulus", "answer", "milliseconds",
        "shown_width", "shown_height", "pixel_ratio", "window_width", "window_height",
        "pixels_per_mm", "darkened\n",
    ]
)  # fmt: skip


def path_of(repository: Path, study: str) -> Path:
    return repository / "imagenet" / "published" / "ratings" / f"{study}.csv"


def published(repository: Path, study: str) -> tuple[Answer, ...]:
    return read_ratings(texts_of([path_of(repository, study)])).ratings


def arguments(ratings: tuple[Answer, ...]) -> tuple[list[int], list[str], list[str], list[bool]]:
    """What `fit` takes."""
    return (
        [each.rating for each in ratings],
        [each.person for each in ratings],
        [each.image for each in ratings],
        [each.kind == "modified" for each in ratings],
    )


@pytest.fixture(scope="session")
def rscript() -> str:
    """Rscript with lmerTest; without them skips, also where CLEANSET_NO_SKIP is set: literals are checked anyway."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("no R: install the packages r-cran-lme4 and r-cran-lmertest")
    found = subprocess.run([program, "-e", "library(lmerTest)"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("R without lmerTest: install the packages r-cran-lme4 and r-cran-lmertest")
    return program


SIZES = ("--people", "8", "--settings", "real=4,modified=4,attention=2,pairs=2", "--seed", "3")


@pytest.fixture(scope="session")
def export_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished set of six images, two of them crops; not to be changed."""
    return make_edition(tmp_path_factory.mktemp("studied_set")).export("standard")


@pytest.fixture(scope="session")
def attacked(export_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an attacked version of each, 40 x 40 pixels; not to be changed."""
    folder = tmp_path_factory.mktemp("attacked")
    for path in export_folder.glob("n*/*"):
        image = Image.open(path).convert("RGB").resize((40, 40))
        noise = np.random.default_rng(len(path.name)).integers(-20, 21, (40, 40, 3))
        target = folder / path.parent.name / f"{path.name}.png"
        target.parent.mkdir(exist_ok=True)
        Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8)).save(target)
    (folder / "README.md").write_text("attacked")
    (folder / ".cache.png").write_text("")
    return folder


def command(*arguments: str | Path) -> str:
    """What `cleanset study …` prints; raises what `cleanset` turns into one line."""
    out = io.StringIO()
    with redirect_stdout(out):
        app(["study", *map(str, arguments)], standalone_mode=False)
    return out.getvalue()


@pytest.fixture(scope="session")
def planned(export_folder: Path, attacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for eight people; not to be changed."""
    out = tmp_path_factory.mktemp("planned") / "plan"
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", out, *SIZES)
    return out


@pytest.fixture
def plan(planned: Path, tmp_path: Path) -> Path:
    """A copy of the plan, to be served."""
    return shutil.copytree(planned, tmp_path / "plan")


ANSWERABLE = "#jspsych-html-button-response-btngroup button:enabled"
"""The answers of a trial whose images have been seen for the set time."""
FITS = "document.documentElement.scrollWidth <= innerWidth"
"""To be waited for: after a change of the window, the page lays itself out at the next frame."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [{name: unescaped(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
