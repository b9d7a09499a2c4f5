"""A pattern, a limit or a message is in one place of the package: no eye sees that two modules write the same."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

MIN_WORDS = 10
"""Smallest number of words of a message that must be in one place."""

MIN_DIGITS = 3
"""Smallest number of digits, without trailing zeros, of a whole number that counts as a limit."""

MIN_LIMIT = 10_000
SEARCHES = {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
CHECKS = {"matching", "_matches"}
"""The package's own functions whose first argument is a pattern."""
ALLOWED: Mapping[str, str] = {
    "[0-9]{1,4}": "an ILSVRC id of the devkit, and a class index, which may be longer one day",
    "[0-9a-f]{32}": "an MD5, and the key of a study's address, drawn by secrets.token_hex",
    "[a-z][a-z0-9_]*": "a role, and the name of a folder of a scenario",
    "65535": "the longest side of a JPEG, and the last port",
    "65536": "the most images of a batch in scoring and in training, and the most samples of an attack's step",
}
"""By the literal: why it is in two places."""
ALONE = "sets/from_verdicts.py"
"""A program that imports nothing of the package, and writes again what it shares with it."""


def literals(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each pattern, limit and long message; docstrings aside."""
    passed = set[ast.AST]()
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            passed |= set(node.values)
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            forms = [(each.lineno, text(each).strip("^$")) for each in patterns(node)]
            # "{}" alone is another module's pattern
            yield from (form for form in forms if form[1].replace("{}", ""))
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            if node.value >= MIN_LIMIT and len(str(node.value).rstrip("0")) >= MIN_DIGITS:
                yield node.lineno, str(node.value)
        elif isinstance(node, ast.expr) and node not in passed and len(text(node).split()) >= MIN_WORDS:
            yield node.lineno, " ".join(text(node).split())


def patterns(call: ast.Call) -> Iterator[ast.expr]:
    """The regular expressions among the arguments of a call of `re`, of CHECKS, or of a field that has one."""
    function = call.func
    is_search = isinstance(function, ast.Attribute) and function.attr in SEARCHES
    if (is_search and ast.unparse(function).startswith("re.")) or ast.unparse(function) in CHECKS:
        yield from call.args[:1]
    yield from (each.value for each in call.keywords if each.arg == "pattern")


def text(node: ast.AST) -> str:
    """The text of a string, of an f-string with {} in place of what is put in; "" of anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def repeated(folder: Path) -> dict[str, list[str]]:
    """The places of each literal that is in several."""
    found = defaultdict[str, list[str]](list)
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name != ALONE:
            for line, literal in literals(ast.parse(path.read_text(encoding="utf-8"))):
                found[literal].append(f"{name}:{line}")
    # a limit may come several times in the module that it belongs to
    return {
        literal: places
        for literal, places in found.items()
        if len({place.partition(":")[0] for place in places} if literal.isdigit() else places) > 1
    }


def test_a_literal_is_in_one_place(repository: Path) -> None:
    found = repeated(repository / "src" / "cleanset")
    assert {literal: places for literal, places in found.items() if literal not in ALLOWED} == {}
    assert ALLOWED.keys() - found.keys() == set(), "no longer in two places: remove the allowance"


def test_it_finds_patterns_limits_and_messages(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        '"""Ten words of a docstring that two modules have are no message."""\n'
        'import re\nFORM = re.compile(r"[a-f]{3}")\nMOST = 65_535\nROUND = 1_000_000\n'
        'def f(path): raise ValueError(f"{path}: the one file of this folder that nobody expected here")\n'
    )
    (tmp_path / "b.py").write_text(
        '"""Ten words of a docstring that two modules have are no message."""\n'
        'KEY = Field(pattern="^[a-f]{3}$", le=65535, ge=1_000_000)\n'
        'A = matching("[x-z]+", "x to z")\nB = _matches("[x-z]+")\n'
        'def g(name): raise OSError(f"{name}: the one file of this "\n'
        '    "folder that nobody expected here")\n'
    )
    assert repeated(tmp_path) == {
        "[a-f]{3}": ["a.py:3", "b.py:2"],
        "65535": ["a.py:4", "b.py:2"],
        "[x-z]+": ["b.py:3", "b.py:4"],
        "{}: the one file of this folder that nobody expected here": ["a.py:6", "b.py:5"],
    }
