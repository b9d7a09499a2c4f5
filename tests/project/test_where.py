"""docs/where.md, and the tables of docs/architecture.md: every file that they name is there, and every name in it."""

import ast
import re
from pathlib import Path

import pytest

PLACE = re.compile(r"`([a-z_/0-9]+(?:/|\.py|\.md|\.yaml|/VERSION))(?::([\w.]+))?`")
ASKED = (
    "the number of images per class for one model", "WebP instead of PNG for crops", "a new metric of the contest",
    "a new training recipe", "a new layout or naming of the archives", "the order of ties",
    "one more column in the manifest", "a new hint", "a new distance for attacks", "a new exit from the review page",
    "another precision", "a number that `evaluate` gives", "a field of a review", "a command or an option",
    "the contents of a new edition", "a library that only some commands need",
)  # fmt: skip


def rows(repository: Path) -> dict[str, list[tuple[str, str]]]:
    """The files and names of each row, by what it changes, or what is made there."""
    pages = (repository / "docs" / name for name in ("where.md", "architecture.md"))
    lines = (line for page in pages for line in page.read_text().splitlines() if line.startswith("| "))
    tables = (line.strip("| ").split(" | ") for line in lines if "to change" not in line and "made by" not in line)
    return {cells[0]: PLACE.findall(" | ".join(cells[1:])) for cells in tables}


def names_in(path: Path) -> set[str]:
    """The names that a module defines at its top level, and those that its classes do, as in Entry.row."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        for prefix, statement in [
            ("", node),
            *((f"{node.name}.", each) for each in getattr(node, "body", ()) if isinstance(node, ast.ClassDef)),
        ]:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + statement.name)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                found |= {
                    prefix + each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                }
    return found


@pytest.mark.long
def test_every_place_is_there(repository: Path) -> None:
    missing = []
    for what, places in rows(repository).items():
        assert places, what
        for file, name in places:
            path = next(
                (each / file for each in (repository / "src" / "cleanset", repository) if (each / file).exists()), None
            )
            if path is None or (name and name not in names_in(path)):
                missing.append(f"{what}: {file}:{name}")
    assert missing == []


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_most_has_a_row(asked: str, repository: Path) -> None:
    assert any(what.startswith(asked) for what in rows(repository))
