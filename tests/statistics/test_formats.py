"""Numbers as people read them, and that nothing else makes them."""

import ast
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cleanset.statistics.formats import counted, decimal, interval_text, p_value, percent, rounded_p

SOURCE = Path(__file__).parents[2] / "src" / "cleanset"
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
"""The places where numbers may be rounded, or 0 may replace a value, and why."""

DRAWN = (
    r"(?:x|y|x1|x2|y1|y2|cx|cy|r|d|width|height|points|transform|style|data-[a-z]+)"
    r'="(?:[^"{]|\{\{.*?\}\}|\{%.*?%\})*"'
)
"""An attribute that only a browser reads."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "< 0.0001"), (0.00009999, "< 0.0001"), (0.0001, "0.0001"), (0.03125, "0.0313"), (0.5, "0.5000"),
        (1.0, "1.0000"), (None, "–"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_p_values(value: float | None, text: str) -> None:
    assert p_value(value) == text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "image", "0 images"), (1, "image", "1 image"), (1200, "class", "1,200 classes"), (1, "class", "1 class"),
        (2, "simulated person", "2 simulated people"),
    ],
)  # fmt: skip
def test_numbers_of_things(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text


def test_shares() -> None:
    assert (percent(0.98765), percent(1), percent(0.5, 0), percent(None)) == ("98.77 %", "100.00 %", "50 %", "–")
    assert decimal(-0.04, 1) == "0.0"
    assert (decimal(0.25, 1, 100, signed=True), decimal(-0.0, 1, signed=True)) == ("+25.0", "+0.0")


def test_a_share_of_images_is_rounded_as_the_fraction_is() -> None:
    """Every share of up to 400 images; one that is half-way goes up, as on paper."""
    for images in range(1, 401):
        for correct in range(images + 1):
            exact = Fraction(100 * correct, images)
            tenths = (exact * 10 + Fraction(1, 2)).__floor__()
            found = decimal(correct / images, 1, 100)
            assert found == f"{tenths // 10}.{tenths % 10}", (correct, images)
    assert (decimal(1 / 8, 0, 100), decimal(3 / 8, 0, 100), decimal(261 / 480, 2, 100)) == ("13", "38", "54.38")


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
        path.relative_to(SOURCE).as_posix(): problems
        for path in sorted(SOURCE.rglob("*.py"))
        if (problems := list(roundings(path)))
    }
    assert {name: problems for name, problems in found.items() if name not in ALLOWED} == {}
    # what needs no exception any more has none
    assert ALLOWED.keys() == found.keys()


def in_template(path: Path) -> Iterator[str]:
    """Numbers that a template rounds by itself, but for those of drawings."""
    text = re.sub(DRAWN, "", path.read_text("utf-8"))
    for found in re.finditer(r'.{0,20}(?:%[+]?\.\d+f[^"]*" *\| *format|\| *round).{0,20}', text):
        yield f"{path.name}: {found[0]}"


def test_the_scan_of_templates_sees_other_makers(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<p x="{{ "%.1f"|format(x) }}">{{ "%.1f"|format(100 * share) }} {{ share|round(2) }}</p>')
    assert len(list(in_template(page))) == 2


def test_templates_and_scripts_print_numbers_by_the_formatter() -> None:
    templates = [*SOURCE.rglob("*.html")]
    assert len(templates) > 30
    assert [each for path in templates for each in in_template(path)] == []
    scripts = [path for path in SOURCE.rglob("*.js") if not path.name.endswith(".min.js")]
    # seconds that are left
    assert [path.name for path in scripts if re.search(r"toFixed|toPrecision", path.read_text("utf-8"))] == [
        "all_clean.js"
    ]


def test_an_interval_is_its_ends() -> None:
    assert interval_text((0.523, 0.61)) == "0.52 to 0.61"
    assert interval_text((-0.0004, 1), 3) == "0.000 to 1.000"


def test_a_p_value_is_never_stored_as_0() -> None:
    assert rounded_p(2e-9, 6) == 2e-09
    assert rounded_p(0.0312345678, 6) == 0.031235
    assert math.isnan(rounded_p(math.nan, 6))


def test_ends_that_differ_are_distinguished() -> None:
    assert interval_text((0.99971, 0.99993)) == "0.9997 to 0.9999"
    assert interval_text((0.5, 0.6)) == "0.50 to 0.60"
    assert interval_text((math.nan, math.nan)) == "no interval"


def test_thousands_and_signs() -> None:
    assert decimal(12345.675, 2, grouped=True) == "12,345.68"
    assert decimal(1234.5, 0, signed=True, grouped=True) == "+1,235"
