"""Digests of pages by what they are made from: unknown ones and damaged ones make the page drawn again."""

import shutil
from pathlib import Path

import pytest

import cleanset
from cleanset.report.page_digests import PageDigests, usual_page_digests

OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
"""SHA-256 of the letter a."""


def test_known_ones(tmp_path: Path) -> None:
    digests = PageDigests(tmp_path / "kept")
    assert digests.known("b") == ""
    digests.keep("b", "a")
    assert digests.known("b") == OF_A
    (tmp_path / "kept" / "b").write_bytes(b"\xff")
    assert digests.known("b") == ""


def test_without_a_folder_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file" / "below"):
        PageDigests(folder).keep("b", "a")
        assert PageDigests(folder).known("b") == ""


def test_other_code_has_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path))
    package = tmp_path / "package"
    shutil.copytree(Path(cleanset.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "template"))
    before = usual_page_digests(package)
    assert before == usual_page_digests()
    for name in ("report/templates/parts.html", "selection/rule.py"):
        with (package / name).open("a") as file:
            file.write("\n")
        assert usual_page_digests(package) != before
        before = usual_page_digests(package)
