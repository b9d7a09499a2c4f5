"""A printed number next to the one computed today, and what cannot be computed."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

Verdict = Literal["equal", "rounding", "differs"]
"""`rounding`: differs by no more than the rounding of the printed numbers that it was computed from."""

Evidence = Literal["from raw data", "from other printed numbers", "fitted"]
"""How a number is computed. `fitted`: from a quantity that is not printed, and was fitted to the numbers themselves.

A fourth kind, what the authors' program gives on input made up here, is not a number of the paper: see `OwnInput`.
"""

BELOW = "< "
"""Begins a printed bound, such as a p-value below 0.0001."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number of a paper."""

    where: str
    """Where it is printed, such as `Table 3`."""

    quantity: str
    """What it is, such as `ResNet50, variance, external`."""

    printed: str
    """As printed, with its digits."""

    computed: float
    """By today's code, from what was published."""

    evidence: Evidence

    slack: float = 0.0
    """How much the rounding of printed numbers that it was computed from can change it."""

    note: str = ""
    """What explains a difference."""

    @property
    def digits(self) -> int:
        """The number of printed decimals, and of those shown of the computed number."""
        exponent = Decimal(self.printed.removeprefix(BELOW)).as_tuple().exponent
        return max(0, -int(exponent))

    @property
    def difference(self) -> float | None:
        """Computed minus printed; None for a bound."""
        if self.printed.startswith(BELOW):
            return None
        return self.computed - float(self.printed)

    @property
    def verdict(self) -> Verdict:
        """Whether the computed number, rounded as the printed one, is that number."""
        if self.printed.startswith(BELOW):
            return "equal" if self.computed < float(self.printed.removeprefix(BELOW)) else "differs"
        # a tie may have been rounded either way, and floating point is exact to some 15 digits
        half = 0.5 * 10**-self.digits + 1e-12 * max(1.0, abs(self.computed))
        distance = abs(self.computed - float(self.printed))
        if distance <= half:
            return "equal"
        return "rounding" if distance <= half + self.slack else "differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComputed:
    """A table, figure or number of a paper that is not computed."""

    where: str
    why: str
    """What is missing, and where it is known, what to do."""

    numbers: int = 0
    """How many numbers are printed there; 0 for a figure or text without numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnInput:
    """The authors' program, run on input made up here: a test of cleanset, and no number of the paper."""

    program: str
    cases: int
    tests: str
    """The file of the tests, below the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What a paper prints, and what is computed."""

    title: str
    """Authors, title, year."""

    numbers: tuple[Number, ...]
    not_computed: tuple[NotComputed, ...]
    own_input: tuple[OwnInput, ...]

    def count(self, verdict: Verdict) -> int:
        """The number of numbers with a verdict."""
        return sum(each.verdict == verdict for each in self.numbers)


def reproduction(printed: Any, numbers: Iterable[Number], missing: Iterable[NotComputed] = ()) -> Reproduction:
    """What a paper prints, by the content of its YAML file, next to the numbers that are computed.

    `printed`: its title, `not_computed` and `own_input`. `missing`: what is not computed for want of a file.
    """
    return Reproduction(
        title=printed["title"],
        numbers=tuple(numbers),
        not_computed=(*missing, *(NotComputed(**each) for each in printed["not_computed"])),
        own_input=tuple(OwnInput(**each) for each in printed.get("own_input", ())),
    )
