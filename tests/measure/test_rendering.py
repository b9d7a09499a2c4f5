"""Numbers as the tables of `cleanset evaluate` show them."""

import pytest

from cleanset.measure.rendering import ends, percent, shown_p


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
    assert ends((261 / 480, 0.98765)) == "54.38 – 98.77"
    assert ends((0, 0.123456)) == "0.00 – 12.35"
