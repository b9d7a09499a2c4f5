"""Who only builds sets imports nothing of what robustness needs."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROBUSTNESS = "cleanset.studies.robustness"
HEAVY = {"cv2", "foolbox", "imagecorruptions", "numba", "skimage", "statsmodels"}
"""Libraries that only the extras robustness and training install."""


def is_of_types(node: ast.AST) -> bool:
    """Whether a block is for types alone, and never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that a file imports on import, not those that a function imports when it runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.module or ""
        elif not isinstance(child, ast.FunctionDef) and not is_of_types(child):
            yield from imported(child)


@pytest.mark.long
@pytest.mark.slow
def test_only_robustness_imports_its_libraries(repository: Path) -> None:
    package = repository / "src" / "cleanset"
    found = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        modules = set(imported(ast.parse(path.read_text(encoding="utf-8"))))
        if not name.startswith(("studies/robustness/", "studies/attacks/", "studies/training/")):
            found += [f"{name}: {module}" for module in sorted(modules) if module.split(".")[0] in HEAVY]
        if not name.startswith(("studies/", "reproduce/")):
            found += [f"{name}: {module}" for module in sorted(modules) if module.startswith(f"{ROBUSTNESS}.")]
    assert found == []
