"""Numbers as people read them, and that nothing else makes them."""

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cleanset.statistics.formats import decimal, interval_text, p_value, percent

SOURCE = Path(__file__).parents[2] / "src" / "cleanset"
OTHER_MAKERS = {
    # a bound is rounded up, in whole numbers
    "review/audit.py",
    # of a hint: one per cent at least
    "review/hints/kinds.py",
    # below statistics: how long workers waited
    "plumbing/progress.py",
}
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


def test_shares() -> None:
    assert (percent(0.98765), percent(1), percent(0.5, 0), percent(None)) == ("98.77 %", "100.00 %", "50 %", "–")
    assert decimal(-0.04, 1) == "0.0"
    assert (decimal(0.25, 1, 100, signed=True), decimal(-0.0, 1, signed=True)) == ("+25.0", "+0.0")


def test_a_share_of_images_is_rounded_as_the_fraction_is() -> None:
    """Every share of up to 400 images; one that lies half-way goes up, as on paper."""
    for images in range(1, 401):
        for correct in range(images + 1):
            exact = Fraction(100 * correct, images)
            tenths = (exact * 10 + Fraction(1, 2)).__floor__()
            found = decimal(correct / images, 1, 100)
            assert found == f"{tenths // 10}.{tenths % 10}", (correct, images)
    assert (decimal(1 / 8, 0, 100), decimal(3 / 8, 0, 100), decimal(261 / 480, 2, 100)) == ("13", "38", "54.38")


def in_code(path: Path) -> Iterator[str]:
    """Texts that a module rounds by itself: 100 times something, or with a percent sign."""
    for each in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(each, ast.FormattedValue) and each.format_spec is not None:
            spec = ast.unparse(each.format_spec)
            value = ast.unparse(each.value)
            if re.search(r"\.\d%", spec) or (re.search(r"\.\d+f", spec) and re.search(r"\b100 \*|\* 100\b", value)):
                yield f"{path.name}, line {each.lineno}: {value}"
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "round" and "100 *" in ast.unparse(each.args[0]):
            yield f"{path.name}, line {each.lineno}: {ast.unparse(each)}"


def in_template(path: Path) -> Iterator[str]:
    """Numbers that a template rounds by itself, but for those of drawings."""
    text = re.sub(DRAWN, "", path.read_text("utf-8"))
    for found in re.finditer(r'.{0,20}(?:%[+]?\.\d+f[^"]*" *\| *format|\| *round).{0,20}', text):
        yield f"{path.name}: {found[0]}"


def test_the_scans_see_other_makers(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text('a = f"{100 * share:.1f}"\nb = f"{share:.1%}"\nc = round(100 * share, 1)\nd = f"{seconds:.1f}"\n')
    assert len(list(in_code(code))) == 3
    page = tmp_path / "page.html"
    page.write_text('<p x="{{ "%.1f"|format(x) }}">{{ "%.1f"|format(100 * share) }} {{ share|round(2) }}</p>')
    assert len(list(in_template(page))) == 2


def test_no_other_maker_of_shares() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).as_posix() not in OTHER_MAKERS]
    templates = [*SOURCE.rglob("*.html")]
    assert len(modules) > 400
    assert len(templates) > 30
    found = [each for path in modules for each in in_code(path)]
    found += [each for path in templates for each in in_template(path)]
    assert found == []
    scripts = [path for path in SOURCE.rglob("*.js") if not path.name.endswith(".min.js")]
    # seconds that are left
    assert [path.name for path in scripts if re.search(r"toFixed|toPrecision", path.read_text("utf-8"))] == [
        "all_clean.js"
    ]


def test_an_interval_is_its_ends() -> None:
    assert interval_text((0.523, 0.61)) == "0.52 to 0.61"
    assert interval_text((-0.0004, 1), 3) == "0.000 to 1.000"
