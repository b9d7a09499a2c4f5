"""The command `cite`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.evaluation.compare.command import cleanset, says


def test_bibtex_and_text_name_the_works_of_the_citation_file(repository: Path, tmp_path: Path) -> None:
    content = yaml.safe_load((repository / "CITATION.cff").read_text())
    works = [content, *content["references"]]
    bibtex = cleanset("cite", cwd=tmp_path).stdout
    lines = cleanset("cite", "--format", "text", cwd=tmp_path).stdout.splitlines()
    assert bibtex.count("\n@") == len(works) - 1
    assert len(lines) == len(works)
    for work, line in zip(works, lines, strict=True):
        assert f"= {{{work['title']}}}" in bibtex
        assert work["title"] in line
        for author in work["authors"]:
            assert f"{author.get('given-names', '')} {author.get('family-names', author.get('name'))}".strip() in line
        assert str(work.get("year", "")) in line
    assert lines[-1].endswith(" arXiv:2507.07776, 2025.")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org/cleanset.git", "https://example.org/cleanset.git"),
        ("file:///srv/cleanset", "https://…/cleanset.git"),
    ],
)
def test_year_version_and_address(url: str, address: str, tmp_path: Path) -> None:
    """The address from which pip installed it; for a checkout, README's placeholder."""
    installed = tmp_path / "cleanset-7.8.9.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.4\nName: cleanset\nVersion: 7.8.9\n")
    (installed / "direct_url.json").write_text(json.dumps({"url": url, "vcs_info": {"vcs": "git"}}))
    program = "from cleanset.sets.description import render; print(render('bibtex') + render('text'))"
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, env=variables
    )
    assert done.stdout.startswith(
        "@misc{cleanset,\n"
        "  title  = {cleanset: a clean, human-verified subset of ImageNet's validation images},\n"
        "  author = {{The cleanset authors}},\n"
        "  year   = {2026},\n"
        "  note   = {Version 7.8.9},\n"
        f"  url    = {{{address}}}\n"
        "}\n"
    )
    assert f"subset of ImageNet's validation images. Version 7.8.9, 2026, {address}\n" in done.stdout


def test_another_format(tmp_path: Path) -> None:
    done = cleanset("cite", "--format", "ris", cwd=tmp_path)
    assert says(done) == (1, "", "error: format 'ris'; expected bibtex or text\n")
