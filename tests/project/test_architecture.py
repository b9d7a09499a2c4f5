"""docs/architecture.svg: it is current, arrows lead down, and an import that turns around is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

DRAW = "docs/architecture.py"


def draw(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DRAW, *arguments], cwd=repository, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_the_drawing_is_current(repository: Path) -> None:
    done = draw(repository, "--check")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture
def small(repository: Path, tmp_path: Path) -> Path:
    """A repository with three packages: review imports scoring and files, scoring imports files."""
    for name, text in {
        "__init__.py": "",
        "plumbing/__init__.py": "",
        "plumbing/files.py": "",
        "scoring/__init__.py": "from cleanset.plumbing.files import read_text\n",
        "scoring/models.py": "",
        "review/__init__.py": "",
        "review/page.py": "def run():\n    from cleanset.scoring import models\n    import cleanset.plumbing.files\n",
    }.items():
        path = tmp_path / "src" / "cleanset" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "docs").mkdir()
    (tmp_path / DRAW).write_text((repository / DRAW).read_text())
    return tmp_path


def test_an_arrow_that_a_longer_path_implies_is_left_out(small: Path) -> None:
    assert draw(small).returncode == 0
    drawing = (small / "docs" / "architecture.svg").read_text()
    assert drawing.count("marker-end") == 2  # review to scoring, scoring to plumbing
    places = [drawing.index(f">{name}<") for name in ("plumbing", "review", "scoring")]
    assert places == sorted(places)
    assert draw(small, "--check").returncode == 0


def test_a_new_import_makes_it_out_of_date(small: Path) -> None:
    draw(small)
    (small / "src" / "cleanset" / "web.py").write_text("from cleanset import review\n")
    done = draw(small, "--check")
    assert (done.returncode, done.stdout) == (
        1, "docs/architecture.svg: out of date; run python docs/architecture.py\n",
    )  # fmt: skip


def test_an_import_that_turns_around_ends_in_an_error(small: Path) -> None:
    (small / "src" / "cleanset" / "plumbing" / "files.py").write_text("from cleanset.review import page\n")
    done = draw(small)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "packages import each other: plumbing, review, scoring"
