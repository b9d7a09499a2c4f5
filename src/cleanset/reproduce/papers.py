"""The papers whose numbers can be reproduced, and the table of one."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.evaluation.table import Cell, MeasureTable
from cleanset.plumbing.yaml_files import data_beside
from cleanset.reproduce import imagenet_c, scooter, ximagenet_12
from cleanset.reproduce.numbers import Number, Reproduction, Verdict, reproduction
from cleanset.statistics.formats import decimal


def _without_numbers(name: str, _files: Path | None) -> Reproduction:
    """A paper without any computable number: its numbers, each with the reason."""
    return reproduction(data_beside(__file__, name), ())


PAPERS: dict[str, Callable[[Path | None], Reproduction]] = {
    "scooter": scooter.reproduce,
    "imagenet-c": imagenet_c.reproduce,
    "imagenet-p": partial(_without_numbers, "imagenet_p.yaml"),
    "ximagenet-12": ximagenet_12.reproduce,
    "unrestricted": partial(_without_numbers, "unrestricted.yaml"),
    "imagenet-validation": partial(_without_numbers, "imagenet_validation.yaml"),
}
"""By the name that the command takes."""

WORDS: dict[Verdict, str] = {
    "equal": "equal as printed",
    "rounding": "equal but for the rounding of printed numbers that they are computed from",
    "differs": "differ",
}
MORE_DIGITS = 2
"""Shown beyond the printed ones, where the numbers are not equal."""


TITLES = ("printed", "computed", "difference", "verdict", "evidence")


def table_of(paper: Reproduction) -> MeasureTable:
    """All numbers of a paper, for LaTeX, Markdown and CSV."""
    return MeasureTable(
        labels=("where", "number"),
        titles=TITLES,
        rows=[((each.where, each.quantity), _cells(each)) for each in paper.numbers],
        caption=f"{paper.title}: {summary_of(paper)}.",
    )


def _cells(number: Number) -> tuple[Cell, ...]:
    return (
        Cell(number.printed),
        Cell(_computed(number)),
        Cell(_difference(number), problem="" if number.difference is not None else "a bound is printed"),
        Cell(number.verdict),
        Cell(number.evidence),
    )


def _computed(number: Number) -> str:
    if float(number.computed).is_integer() and not number.digits:
        return decimal(number.computed, 0)
    digits = number.digits + (0 if number.verdict == "equal" else MORE_DIGITS)
    return decimal(number.computed, digits)


def _difference(number: Number) -> str:
    if number.difference is None:
        return ""
    if number.verdict == "equal":
        return "0"
    return decimal(number.difference, number.digits + (MORE_DIGITS if number.digits else 0), signed=True)


def summary_of(paper: Reproduction) -> str:
    """How many numbers are computed, from what, and how many are equal; how many are not computed, or are tests."""
    parts = []
    if paper.numbers:
        sources = Counter(each.evidence for each in paper.numbers)
        verdicts = [f"{paper.count(verdict)} {words}" for verdict, words in WORDS.items() if paper.count(verdict)]
        evidence = ", ".join(f"{count} {kind}" for kind, count in sources.items())
        parts.append(f"{len(paper.numbers)} numbers ({evidence}): {', '.join(verdicts)}")
    parts.append(f"{sum(each.numbers for each in paper.not_computed):,} printed numbers not computed")
    if paper.own_input:
        parts.append(f"{sum(each.cases for each in paper.own_input)} tests: the authors' program on our own input")
    return "; ".join(parts)


def in_terminal(paper: Reproduction, *, every: bool) -> Group:
    """The title, the numbers that differ (or all), why these differ, and what is not computed."""
    shown = [each for each in paper.numbers if every or each.verdict == "differs"]
    parts: list[RenderableType] = [Text(paper.title), Text(summary_of(paper))]
    if shown:
        rows = [((f"{each.where}: {each.quantity}",), _cells(each)) for each in shown]
        parts += [Text(), MeasureTable(labels=("number",), titles=TITLES, rows=rows).in_terminal()]
    notes = dict.fromkeys(each.note for each in shown if each.note and each.verdict == "differs")
    parts += [Text(), *map(Text, notes)] if notes else []
    if paper.not_computed:
        parts += [Text(), Text("Not computed:")]
        parts += [Text(f"- {each}") for each in not_computed_lines(paper)]
    if paper.own_input:
        parts += [Text(), Text("Tests, not counted: the authors' program on our own input:")]
        parts += [Text(f"- {each}") for each in own_input_lines(paper)]
    return Group(*parts)


def not_computed_lines(paper: Reproduction) -> list[str]:
    """What is not computed, how many numbers that are, and why."""
    return [f"{each.where}{f' ({each.numbers:,})' if each.numbers else ''}: {each.why}" for each in paper.not_computed]


def own_input_lines(paper: Reproduction) -> list[str]:
    """The programs of the authors that ran on input made up here, and the tests that hold what they gave."""
    return [f"{each.program} ({each.cases}): {each.tests}" for each in paper.own_input]
