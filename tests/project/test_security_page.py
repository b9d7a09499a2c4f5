"""The page Security: every command is on it once; the tests and settings that it names are there."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from cleanset.cli import app
from cleanset.sets.fetching.remotes import SETTINGS
from cleanset.tables import MAX_ROWS

PAGE = "docs/security.md"
NAMES = {
    "S3": "s3", "Google Cloud Storage": "gs", "Azure": "azure", "OSS": "oss", "Google Drive": "gdrive", "folder": "",
    "HTTP(S)": "http", "WebDAV": "webdav", "SSH": "ssh", "HDFS": "hdfs", "WebHDFS": "webhdfs",
}  # fmt: skip
SAME = {"file": "", "https": "http", "webdavs": "webdav"}


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / PAGE).read_text()


def commands(group: object, path: str = "") -> Iterator[str]:
    """Every command that is shown."""
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path}{name} ")
        elif not command.hidden:
            yield f"{path}{name}"


def test_every_command_is_on_the_page_once(text: str) -> None:
    section = text.partition("## What a clone can make each command do")[2]
    table, _, rest = section.partition("All others run nothing of it:")
    running = [name for line in table.splitlines() if line.startswith("| `") for name in named(line.split("|")[1])]
    others = named(rest.partition(".\n")[0])
    found = Counter(name for name in (*running, *others) if not name.startswith(("dvc ", "make", "git")))
    # with an option, and hidden ones too
    del found["plan --start"], found["robustness stage"], found["score"], found["score_crops"]
    assert found == Counter(commands(get_command(app)))


def named(text: str) -> list[str]:
    return re.findall(r"`([a-z][a-z _-]*)`", text)


def test_the_tests_are_there(text: str, repository: Path) -> None:
    rows = [line for line in text.partition("## What is opened")[2].splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row.split("|")[3])
        assert named, row
        for path, name in named:
            assert f"def {name or 'test_'}" in (repository / path).read_text(), row


def test_the_settings_of_remotes(text: str) -> None:
    section = text.partition("## Settings of a repository")[2].partition("\nThe last line")[0]
    found = dict[str, set[str]]()
    for line in section.splitlines():
        for name in NAMES:
            if line.startswith("| ") and re.search(rf"(\| |, ){re.escape(name)}( \||,)", line):
                found[NAMES[name]] = set(named(line.split("|")[2]))
    assert {SAME.get(kind, kind): set(forms) for kind, forms in SETTINGS.items()} == found


def test_the_limit_of_rows(text: str) -> None:
    assert f"| {MAX_ROWS:,} rows |" in text


def test_a_hole_can_be_reported(repository: Path, text: str) -> None:
    assert "](../SECURITY.md)" in text
    assert "docs/security.md" in (repository / "README.md").read_text()
    assert "docs/security.md" in (repository / "SECURITY.md").read_text()
