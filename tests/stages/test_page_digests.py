"""Digests of the report's pages: all code and templates of the package name their folder."""

import shutil
from pathlib import Path

import pytest

import cleanset
from cleanset.stages.report import usual_page_digests


def test_other_code_has_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path))
    package = tmp_path / "package"
    shutil.copytree(
        Path(cleanset.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "template", "pages")
    )
    before = usual_page_digests(package)
    assert before == usual_page_digests()
    for name in ("report/templates/parts.html", "selection/rule.py"):
        with (package / name).open("a") as file:
            file.write("\n")
        assert usual_page_digests(package) != before
        before = usual_page_digests(package)
