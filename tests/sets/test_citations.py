"""The command `cite`."""

from pathlib import Path

import yaml

from tests.measure.compare.command import cleanset, says


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


def test_another_format(tmp_path: Path) -> None:
    done = cleanset("cite", "--format", "ris", cwd=tmp_path)
    assert says(done) == (1, "", "error: format 'ris'; expected bibtex or text\n")
