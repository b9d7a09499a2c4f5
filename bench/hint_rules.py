"""The code that decides which hints an image has, and its digest, which each measured rate is kept with."""

import ast
import hashlib
from pathlib import Path

from measuring import PROJECT

RATES = PROJECT / "bench" / "hint_rates.yaml"
"""The rates that the docs state, each part with the digest of the rules that it was measured with."""
RULES = (
    "dataset/duplicates.py",
    "dataset/near_duplicates.py",
    "dataset/shared_parts.py",
    "images/fingerprints.py",
    "images/local_features.py",
    "images/reduction.py",
    "review/hints/added_text.py",
    "review/hints/kinds.py",
    "review/hints/measures.py",
    "review/hints/ranked.py",
    "review/hints/text.py",
)
"""The modules of the package that decide which hints an image has."""


def rules_sha256(package: Path = PROJECT / "src" / "cleanset") -> str:
    """SHA-256 of the code of RULES, without comments and docstrings."""
    digest = hashlib.sha256()
    for name in RULES:
        tree = ast.parse((package / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [each for each in body if not is_docstring(each)]  # type: ignore[attr-defined]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a text alone, as docstrings of modules, classes, functions and fields are."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
