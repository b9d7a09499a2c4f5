"""Every table fits a terminal of 80 columns, and none cuts a digit, with large numbers, signs and long names."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from unittest.mock import Mock

import pytest
from rich.console import Console, RenderableType

from cleanset.evaluation.table import Cell, MeasureTable, cell
from cleanset.planning.rendering import plan_text
from cleanset.planning.work import Passes, Plan, Work
from cleanset.review.calibration import Calibration, GoldScore
from cleanset.review.calibration_report import calibration_table
from cleanset.review.page.team import ReviewerProgress
from cleanset.review.page.team import as_table as team_table
from cleanset.review.status import STATES
from cleanset.review.terminal import grid
from cleanset.scoring.parts import FinishedPart
from cleanset.statistics.formats import p_value
from cleanset.statistics.raters import coefficient_text
from cleanset.studies.contest import report as contest_report
from cleanset.studies.contest.courses import DefenceStanding
from cleanset.studies.contest.standing import Standing
from cleanset.studies.robustness import further_models
from cleanset.studies.robustness.further_models import FurtherMember

WIDTH = 80
NAME = "a-name-of-45-characters-without-any-blank-xxx"
NAMES = "two words that are names, of one another"


def lines_of(shown: RenderableType) -> list[str]:
    console = Console(width=WIDTH, color_system=None)
    with console.capture() as captured:
        console.print(shown, highlight=False)
    return captured.get().splitlines()


def measures() -> MeasureTable:
    """All kinds of cells."""
    titles = ["accuracy", "difference in mean error", "confidence", "images", "NLL, in nats", "p", "nothing"]
    cells = [
        cell(0.98765, (0.91234, 0.99999), unit=" %"),
        cell(-123.45678, (-234.56789, -12.34567)),
        cell(0.99987, (0.99971, 0.99993), factor=1),
        Cell("12,345"),
        cell(-12345.678, (-12399.123, 12345.678), factor=1, digits=3),
        Cell(p_value(2e-9)),
        Cell(problem="no image of the class was classified correctly, so that there is nothing to take a mean of"),
    ]
    return MeasureTable(("#", "model", "threat model"), titles, [((str(row), NAME, NAMES), cells) for row in range(3)])


def progress() -> ReviewerProgress:
    classes = [f"n{place:08}" for place in range(12345)]
    return ReviewerProgress(asked=classes, to_review=classes, verdicts=12345)


def calibrated() -> Calibration:
    scores = GoldScore(correct=12345, golds=23456)
    reasons = {"several_main_objects": scores, "watermark_or_text": scores}
    return Calibration(reviewer=NAME, sensitivity=scores, specificity=scores, by_reason=reasons)


COEFFICIENT = coefficient_text(-0.1234, (-0.9876, -0.1234))
AGREEMENT = [(f"{NAME}, {NAME}", "12,345", "98.7 %", COEFFICIENT, COEFFICIENT)]
WORK = Work(
    name="further attacks",
    model=NAME,
    images=999_500,
    changes=99_500,
    part=FinishedPart(images=12_345, seconds=98_765.0),
    besides=Passes(forward=10**15, backward=10**15),
    is_bound=True,
)

DEFENCE = DefenceStanding(
    name=f"{NAME}/defence-12345",
    status="awaiting",
    staked_on=date(2026, 11, 30),
    broken_in=date(2026, 12, 7),
    shares={NAME: Fraction(1234567, 8901234)},
    open_until="2026-12-31",
)
STANDING = Standing(
    on=date(2026, 12, 7),
    contest=Mock(),
    defences=[DEFENCE],
    attackers={},
    defenders={NAME: Fraction(1234567, 8901234)},
    left_out={NAME: "12345 of 23456 controls are answered otherwise"},
    notes=(),
    head="f" * 64,
)
FURTHER = FurtherMember(
    role=NAME, model=NAMES, classes=12345, weights=f"{NAME}/{NAME}.pth", found="f" * 64, pinned="e" * 64, state="there"
)

TABLES: Mapping[str, tuple[Callable[[], RenderableType], list[str]]] = {
    "measures": (
        lambda: measures().in_terminal(),
        ["98.77 %", "91.23", "100.00", "-12345.68", "-23456.79", "-1234.57", "0.9999", "0.9997", "12,345", "-12345.678",
         "-12399.123", "< 0.0001", "– (1)", "(1) no image of"],
    ),
    "measures, on two lines": (
        lambda: measures().in_terminal("\n", first=" "), ["-12345.68", "(-23456.79 to -1234.57)"],
    ),
    "status of a review": (
        lambda: grid(("classes", *STATES, "at least", "at most"), [(NAME, *["12,345"] * 6)], ("all", *["98,765"] * 6)),
        ["12,345", "98,765"],
    ),
    "team": (lambda: team_table({NAME: progress()}), ["12345"]),
    "calibration": (lambda: calibration_table([calibrated()]), ["12345", "23456", "53 %", "52 to 53 %"]),
    "agreement": (
        lambda: grid(("reviewers", "images", "agreement", "kappa", "AC1"), AGREEMENT),
        ["12,345", "98.7 %", "-0.12", "(-0.99 to", "-0.12)"],
    ),
    "standing of a contest": (lambda: contest_report.as_text(STANDING), ["1234567/8901234", "2026-11-30", "12345"]),
    "further models": (lambda: further_models.as_table([FURTHER]), ["12345", "f" * 64]),
    "plan": (
        lambda: plan_text(Plan(name="x", works=[WORK])), ["987,155", "of 999,500", "99,500", "≤ 1,000 T", "91.4 d"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_and_cuts_no_digit(name: str) -> None:
    make, numbers = TABLES[name]
    lines = lines_of(make())
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    # a name may be cut, a number may not
    assert not re.search(r"\d…", text)
    for number in numbers:
        assert number in text, f"{number} is missing in\n{text}"
