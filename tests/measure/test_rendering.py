"""Numbers as the tables of `cleanset evaluate` show them."""

import math

import pytest

from cleanset.measure.rendering import percent, shown_p
from cleanset.measure.table import Cell, MeasureTable, cell


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "< 0.0001"), (0.00009999, "< 0.0001"), (0.0001, "0.0001"), (0.03125, "0.0312"), (0.5, "0.5000"),
        (1.0, "1.0000"),
    ],
)  # fmt: skip
def test_p_values(value: float, text: str) -> None:
    assert shown_p(value) == text


def test_shares() -> None:
    assert (percent(0.98765), percent(1), percent(0.5, 0)) == ("98.77 %", "100.00 %", "50 %")
    # 100 * (261 / 480) is 54.37499999999999
    assert percent(261 / 480) == "54.38 %"
    assert cell(261 / 480, (261 / 480, 0.98765)) == ("54.38", "54.38", "98.77", "")
    assert cell(math.nan, (0, 1)) == Cell()
    assert cell(-0.00001, (-0.25, 0.25)) == ("0.00", "-25.00", "25.00", "")


TABLE = MeasureTable(
    ("model",), ("accuracy", "p"),
    [
        (("a_1|b",), [cell(0.5, (0.25, 0.75), unit=" %"), Cell()]),
        (("c",), [cell(-0.5, (-0.75, 0.25)), Cell("< 0.0001")]),
    ],
    "2 images",
)  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "latex",
            "% 2 images\n\\begin{tabular}{lrr}\n\\toprule\nmodel & accuracy & p \\\\\n\\midrule\n"
            "a\\_1|b & 50.00 {\\scriptsize [25.00, 75.00]} & -- \\\\\n"
            "c & $-$50.00 {\\scriptsize [$-$75.00, 25.00]} & $<$ 0.0001 \\\\\n\\bottomrule\n\\end{tabular}\n",
        ),
        (
            "markdown",
            "| model | accuracy | p |\n| --- | ---: | ---: |\n| a_1\\|b | 50.00 (25.00–75.00) | – |\n"
            "| c | -50.00 (-75.00 to 25.00) | < 0.0001 |\n\n2 images\n",
        ),
        (
            "csv",
            'model,accuracy,"accuracy, low","accuracy, high",p\na_1|b,50.00,25.00,75.00,\n'
            "c,-50.00,-75.00,25.00,< 0.0001\n",
        ),
    ],
)
def test_a_table_for_a_paper(form: str, text: str) -> None:
    assert TABLE.in_form(form) == text
