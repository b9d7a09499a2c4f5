"""Numbers as people read them: one rounding of shares, intervals and p-values for terminals, papers and pages.

Half-way values are rounded away from zero, as people do. A share is rounded after the noise of its division is gone:
261 of 480 is 54.38 %, although 100 * (261 / 480) is 54.37499999999999.
"""

import math
from collections.abc import Sequence

NOTHING = "–"
"""In place of a value that is not defined."""


def in_percent(share: float) -> float:
    """A share of 0 to 1 in percent, rounded to two digits."""
    return rounded(100 * share, 2)


def rounded(value: float, digits: int) -> float:
    """A finite number as stored or printed with digits after the point; infinite ones and NaN unchanged."""
    if not math.isfinite(value):
        return value
    unit = 10**digits
    # six more digits are kept of the value, and what a division adds is below them
    whole = math.floor(round(abs(value) * unit, 6) + 0.5)
    # + 0: avoids -0.00
    return math.copysign(whole / unit, value) + 0


def rounded_p(p: float, digits: int) -> float:
    """A p-value as stored: never rounded to 0; a smaller one keeps two significant digits."""
    return rounded(p, digits) or float(f"{p:.1e}")


def decimal(
    value: float | None, digits: int = 2, factor: float = 1, *, signed: bool = False, grouped: bool = False
) -> str:
    """A value times a factor with digits after the point; NOTHING if it is undefined.

    `signed`: with a plus, too. `grouped`: with commas between thousands.
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{rounded(factor * value, digits):{'+' if signed else ''}{',' if grouped else ''}.{digits}f}"


MAX_DIGITS = 9


def digits_of(ends: Sequence[float], digits: int, factor: float = 1) -> int:
    """The digits after the point with which the ends of an interval differ: `digits`, or more up to MAX_DIGITS."""
    low, high = ends
    while digits < MAX_DIGITS and low != high and decimal(low, digits, factor) == decimal(high, digits, factor):
        digits += 1
    return digits


def interval_text(ends: Sequence[float], digits: int = 2) -> str:
    """The ends of an interval with digits after the point, such as 0.52 to 0.61; "no interval" if it has none."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        return "no interval"
    digits = digits_of(ends, digits)
    return f"{decimal(low, digits)} to {decimal(high, digits)}"


def percent(share: float | None, digits: int = 2) -> str:
    """A share of 0 to 1 in percent, such as 98.77 %; NOTHING if it is undefined."""
    found = decimal(share, digits, 100)
    return found if found == NOTHING else f"{found} %"


def p_value(p: float | None) -> str:
    """A p-value with four digits after the point; NOTHING if it is undefined."""
    return "< 0.0001" if p is not None and p < 0.0001 else decimal(p, 4)


def counted(count: int, noun: str) -> str:
    """A number of things in words, such as 1 image, or 1,200 clean images."""
    *words, last = noun.split()
    return " ".join([f"{count:,}", *words, last if count == 1 else PLURALS.get(last, f"{last}s")])


PLURALS = {"class": "classes", "person": "people"}

FILTERS = {"decimal": decimal, "percent": percent, "p_value": p_value, "counted": counted}
"""The same for templates of pages."""
