"""What makes finished parts of an interrupted study useless: other code that changes images."""

import ast
from pathlib import Path

import pytest

import cleanset
from cleanset.studies.robustness import kernels
from cleanset.studies.robustness.provenance import CHANGING, changing_code

PACKAGE = Path(cleanset.__file__).parent


def imported(module: str) -> set[str]:
    """The modules of images and robustness that a module names in an import."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cleanset."):
            parent = node.module.removeprefix("cleanset.")
            inner = {f"{parent}.{alias.name}" for alias in node.names}
            found |= {each for each in inner if (PACKAGE / f"{each.replace('.', '/')}.py").is_file()} or {parent}
    return {each for each in found if each.startswith(("images.", "robustness."))}


def test_no_module_that_changes_images_is_missing() -> None:
    reached, waiting = set[str](), {"robustness.changes", "robustness.published_images"}
    while waiting:
        module = waiting.pop()
        reached.add(module)
        waiting |= imported(module) - reached
    assert {module.__name__.removeprefix("cleanset.") for module in CHANGING} == reached
    assert "robustness.kernels" in reached


def test_other_code_has_another_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = changing_code()
    assert before == changing_code()
    path = tmp_path / "kernels.py"
    path.write_bytes(Path(str(kernels.__file__)).read_bytes() + b"\n")
    monkeypatch.setattr(kernels, "__file__", str(path))
    assert changing_code() != before
