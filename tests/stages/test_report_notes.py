"""Notes on the report: all code and templates of the package name their folder."""

import shutil
from pathlib import Path

import pytest

import cleanset
from cleanset.stages.report import usual_report_notes


def test_other_code_has_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path))
    package = tmp_path / "package"
    shutil.copytree(
        Path(cleanset.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "template", "pages")
    )
    before = usual_report_notes(package)
    assert before == usual_report_notes()
    for name in ("report/templates/parts.html", "selection/rule.py"):
        with (package / name).open("a") as file:
            file.write("\n")
        assert usual_report_notes(package) != before
        before = usual_report_notes(package)
