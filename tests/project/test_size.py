"""The table of sizes counts code, not its formatting."""

from pathlib import Path

from tests.project.size import Size, size_of, table

MODULE = '''"""A module.

Two lines more.
"""

import os  # on a line of code
from pathlib import (
    Path,
)

# a comment of its own
LIMIT = """a text
on two lines"""
"""The limit."""


def f(path: Path) -> str:
    """Return."""
    return os.fspath(path)
'''


def test_a_module_is_counted() -> None:
    found = size_of(MODULE)
    assert (found.modules, found.lines, found.imports, found.comments) == (1, 8, 4, 1)
    assert found.nodes == size_of(MODULE.replace("(\n    Path,\n)", "Path")).nodes


def test_a_docstring_alone_is_no_code() -> None:
    assert size_of('"""A package."""\n') == Size(0, 0, 3, 0, 0)


def test_the_table(tmp_path: Path) -> None:
    for name in ("src/cleanset/a.py", "src/cleanset/studies/b/c.py", "src/cleanset/d/e/f.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import os\n\nprint(os.sep)\n# why\n")
    lines = [line.split() for line in table(tmp_path)]
    assert [line[0] for line in lines[1:]] == ["(root)", "d", "studies/b", "src", "tests", "bench", "sample"]
    assert lines[4] == ["src", "3", "6", "0.0", "50.0", "%", "50.0"]
    assert all(len(line) <= 80 for line in table(tmp_path))
