"""Constants, classes and type aliases have one meaning in the whole package: no name is defined in two modules."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

CONVENTIONS = {
    "app": "the commands of a package, in its commands.py",
    "TEMPLATES": "the folder `templates` beside the module",
    "STATIC": "the folder `static` beside the module",
    "BOARD": "`board`, the reviewer and the party of a contest",
    "COMPARED": "the measures whose differences are on the pages, in each family's measures.py",
    "KIND": "the kind of change from which seeds are derived, in each family's changes.py",
}
"""Names that may be defined in several modules; docs/architecture.md lists them, too."""
ALONE = "sets/from_verdicts.py"
"""A program that imports nothing of the package, and defines anew what it shares with it."""


def definitions(module: ast.Module) -> Iterator[str]:
    """The names of constants, classes and type aliases at the top level, without type variables."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("TypeVar", "ParamSpec"):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def defined_twice(folder: Path) -> dict[str, list[str]]:
    """The modules of each name that several define."""
    found = defaultdict[str, list[str]](list)
    for path in sorted(folder.rglob("*.py")):
        module = path.relative_to(folder).as_posix()
        if module != ALONE:
            for name in dict.fromkeys(definitions(ast.parse(path.read_text(encoding="utf-8")))):
                found[name].append(module)
    return {name: places for name, places in found.items() if len(places) > 1 and not name.startswith("_")}


def test_a_name_is_defined_in_one_module(repository: Path) -> None:
    found = defined_twice(repository / "src" / "cleanset")
    assert found.keys() - CONVENTIONS.keys() == set(), {name: found[name] for name in found.keys() - CONVENTIONS.keys()}
    assert CONVENTIONS.keys() - found.keys() == set()


def test_the_conventions_are_documented(repository: Path) -> None:
    text = (repository / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Names\n")[1]
    for name in CONVENTIONS:
        assert f"`{name}`" in text


def test_it_finds_constants_classes_and_aliases(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("LIMIT, SIDE = 3, 4\nclass Share: ...\n_ID = 1\nRow = TypeVar('Row')\n")
    (tmp_path / "b.py").write_text("LIMIT = 5\nShare: int = 1\n_ID = 2\nRow = TypeVar('Row')\n")
    assert defined_twice(tmp_path) == {"LIMIT": ["a.py", "b.py"], "Share": ["a.py", "b.py"]}
