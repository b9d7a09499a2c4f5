"""`cleanset docs`: the pages of docs/ in the terminal, and what messages cite is among them."""

import re
from pathlib import Path

import pytest

from cleanset.documentation import page_text, page_titles
from cleanset.errors import InputError
from tests.evaluation.compare.command import cleanset


def test_every_page_is_listed(repository: Path, tmp_path: Path) -> None:
    done = cleanset("docs", cwd=tmp_path)
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    pages = {
        path.relative_to(repository / "docs").with_suffix("").as_posix() for path in repository.glob("docs/**/*.md")
    }
    assert set(listed) == pages
    assert listed.index("attacks") < listed.index("reference/attacks")
    assert page_titles()["intervals"] == "Intervals and paired tests"


def test_a_page_and_a_section_are_shown(tmp_path: Path) -> None:
    done = cleanset("docs", "reference/robustbench", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "published accuracies" in done.stdout
    assert "<!--" not in done.stdout
    section = page_text("attacks#robust-accuracy")
    assert section.startswith("## Robust accuracy\n")
    assert "## What counts as broken" not in section


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("attack", "docs attack: unknown page 'attack'; expected one of those that `cleanset docs` lists"),
        (
            "robustbench#none",
            "docs robustbench#none: no section 'none'; expected one of compared-with-robu",
        ),
        ("../README", "docs ../README: unknown page '../README'; expected one of those that `cleanset docs` lists"),
    ],
)
def test_what_is_not_there(place: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        page_text(place)
    assert str(raised.value).startswith(message)


def test_what_messages_cite_is_a_page(repository: Path) -> None:
    """In every module, template and table of the package: no reader of an installed package has docs/."""
    cited = set()
    for path in (repository / "src" / "cleanset").rglob("*"):
        if path.suffix in (".py", ".yaml", ".jinja", ".html", ".js") and ".min." not in path.name:
            cited |= set(re.findall(r"cleanset docs ([a-z_]+(?:/[a-z_]+)?)(?![\w/])", path.read_text("utf-8")))
    assert len(cited) > 5
    assert cited - set(page_titles()) == set()
