"""Numbers are rounded and printed by one module: `statistics/formats.py`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "cleanset"
DIGITS = re.compile(r"\.(\d+|\{\})[fFeE%]")
"""A format of a fixed number of digits: Python rounds halves of the binary number, and to even."""

ALLOWED = {
    "statistics/formats.py": "the formatter",
    "plumbing/progress.py": "rates of work under way, which are stored nowhere; plumbing knows no statistics",
    "plumbing/metrics.py": "six digits of what people read with fewer; plumbing knows no statistics",
    "scoring/shards.py": "seconds in a record of a shard",
    "studies/realness/pilot.py": "what is typed into a page; a test that cannot be made has the power 0",
    "studies/realness/study_server.py": "a time in a log",
    "studies/training/curves.py": "coordinates of a drawing",
    "api/results.py": "coordinates of a drawing",
    "studies/robustness/corruptions/params.py": "names of folders as published",
    "studies/robustness/corruptions/caustics.py": "pixels beyond the edge",
    "studies/robustness/corruptions/measures.py": "the precision of a computation",
    "studies/robustness/corruptions/family.py": "the end of an axis without numbers",
    "statistics/differences.py": "equal means that differ by rounding",
    "statistics/groups.py": "a correlation with what does not vary",
    "statistics/shares.py": "the lower limit of a share without successes",
    "review/hints/measures.py": "the noise of an image without pixels",
    "review/page/gold_items.py": "a confidence below all others",
    "scoring/distance.py": "the largest of no differences",
    "sets/from_verdicts.py": "the order of lists without log-odds",
    "studies/realness/ratings.py": "a scale that was not measured",
}
"""Where numbers may be rounded, or 0 may stand in for a value, and why."""


def roundings(path: Path) -> Iterator[str]:
    """Formats of a fixed number of digits, roundings to digits, and fallbacks to 0.0."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else "{}" for each in node.format_spec.values]
            if DIGITS.search("".join(map(str, parts))):
                yield f"line {node.lineno}: a format of fixed digits"
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            is_method = isinstance(node.func, ast.Attribute) and not (
                isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "torch")
            )
            if name == "round" and len(node.args) + len(node.keywords) == 2 - is_method:
                yield f"line {node.lineno}: round() to digits"
        else:
            is_choice = isinstance(node, ast.IfExp)
            last = node.orelse if isinstance(node, ast.IfExp) else None
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
                last = node.values[-1]
            if isinstance(last, ast.Constant) and type(last.value) is float and last.value == 0:
                yield f"line {last.lineno}: {'else' if is_choice else 'or'} 0.0"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('f"{x:.4f}"', True), ('f"{x:,.1f}"', True), ('f"{x:+.{n}f}"', True), ('f"{x:.0%}"', True),
        ("round(x, 2)", True),
        ("table.round(6)", True), ("np.round(x, 6)", True), ("x if x else 0.0", True), ("x or 0.0", True),
        ('f"{x:,}"', False), ('f"{x:g}"', False), ('f"{x:.3g}"', False), ("round(x)", False), ("np.round(x)", False),
        ("decimal(x, 2)", False), ("x if x else 0", False), ("image.round()", False),
    ],
)  # fmt: skip
def test_what_the_lint_finds(tmp_path: Path, line: str, found: bool) -> None:
    path = tmp_path / "x.py"
    path.write_text(f"{line}\n")
    assert bool(list(roundings(path))) == found


def test_numbers_are_rounded_by_the_formatter_alone() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): problems
        for path in sorted(SOURCES.rglob("*.py"))
        if (problems := list(roundings(path)))
    }
    assert {name: problems for name, problems in found.items() if name not in ALLOWED} == {}
    # what needs no exception any more has none
    assert ALLOWED.keys() == found.keys()


NUMBER_IN_TEXT = re.compile(r'"%[+,]?\.\d+f"\s*\|\s*format|\|\s*round')


def test_templates_print_numbers_by_its_filters() -> None:
    """A fixed number of digits stands in attributes alone, such as coordinates."""
    wrong = []
    for path in sorted(SOURCES.rglob("*.html")):
        for match in NUMBER_IN_TEXT.finditer(text := path.read_text()):
            before = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text[: match.start()], flags=re.DOTALL)
            if before.rfind("<") <= before.rfind(">"):
                wrong.append(f"{path.name}: {text[match.start() - 40 : match.end() + 20]}")
    assert wrong == []
