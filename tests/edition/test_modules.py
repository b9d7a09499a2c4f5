"""Which modules a function reaches, in a package of a few lines, and in this one."""

from pathlib import Path
from textwrap import dedent

import pytest

from cleanset.edition.modules import ReachedDefinition, SourceCode, is_within

FILES = {
    "stage.py": """
        from typing import TYPE_CHECKING
        from cleanset.rules import decide, LIMIT as MAX
        from cleanset import helpers
        if TYPE_CHECKING:
            from cleanset.types import Row

        def run(row: "Row") -> None:
            from cleanset.lazy import once
            once(decide(row), MAX, helpers.first(row))

        def other() -> None:
            from cleanset.unused import nothing
            nothing()
        """,
    "rules.py": """
        from cleanset.shares import share
        from cleanset.constants import HALF
        from cleanset.unused import Answer
        LIMIT = 3 * HALF

        def decide(row: object) -> Answer:
            return share(row)

        def unrelated() -> None:
            from cleanset.far import away
            away()
        """,
    "helpers.py": """
        from cleanset.errors import fail
        from cleanset.far import away

        def first(row):
            return fail(row)

        def second(row):
            return away(row)
        """,
    "shares.py": """
        from cleanset.boxes import side

        def share(row): return Box(row)

        class Box:
            sides = side()
        """,
    "boxes.py": "def side(): ...\n",
    "constants.py": "HALF = 1\n",
    "lazy.py": "from cleanset.handed_on import once\n",
    "handed_on.py": "def once(*found): ...\n",
    "errors.py": "from cleanset.far import away\ndef fail(row): return away(row)\n",
    "far.py": "def away(row=None): ...\n",
    "unused.py": "def nothing(): ...\n\nclass Answer: ...\n",
    "types.py": "class Row: ...\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a package of this name with these files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


def names(found: list[str]) -> list[str]:
    return [each.removeprefix("cleanset.") for each in found]


@pytest.mark.parametrize(
    ("root", "plumbing", "expected"),
    [
        # not what its neighbors import, nor what only annotations name; at `errors` the walk stops
        (("stage", "run"), ["errors"], "boxes constants handed_on helpers lazy rules shares stage"),
        (("stage", "run"), [], "boxes constants errors far handed_on helpers lazy rules shares stage"),
        (("stage", "other"), [], "stage unused"),
        (("rules", ""), [], "boxes constants far rules shares"),
    ],
)
def test_what_is_reached(root: tuple[str, str], plumbing: list[str], expected: str, package: Path) -> None:
    code = SourceCode(package)
    found = code.reached([ReachedDefinition(f"cleanset.{root[0]}", root[1])], {f"cleanset.{each}" for each in plumbing})
    assert names(found) == expected.split()


@pytest.mark.parametrize(
    "statement",
    ["register(away)", "if True:\n    TABLE = away()", "try:\n    TABLE = away()\nexcept OSError:\n    TABLE = 1"],
)
def test_statements_at_the_top_level(statement: str, package: Path) -> None:
    """One that defines nothing counts for every definition; one that defines a name, for what uses the name."""
    text = f"from cleanset.far import away\n{statement}\ndef once(*found): return TABLE\n"
    (package / "handed_on.py").write_text(text)
    assert "far" in names(
        SourceCode(package).reached([ReachedDefinition("cleanset.stage", "run")], {"cleanset.errors"})
    )


def test_a_module_or_its_package() -> None:
    assert is_within("cleanset.edition.params", {"cleanset.edition"})
    assert is_within("cleanset.edition", {"cleanset.edition"})
    assert not is_within("cleanset.editions", {"cleanset.edition"})


def test_the_standing_of_a_contest_reaches_who_is_eligible() -> None:
    """Its constants were in no list of deps that people wrote: an edit left the standing unchanged."""
    found = SourceCode().reached([ReachedDefinition("cleanset.studies.contest.commands", "standing")])
    assert "cleanset.statistics.coverage" in found
    assert "cleanset.studies.contest.standing" in found
    assert "cleanset.scoring.models" not in found
