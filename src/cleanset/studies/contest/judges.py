"""Judges: what each is asked about, and whether the answers count, by images whose answers are known (controls)."""

import datetime
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256 as digest_of
from typing import NamedTuple

from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.rules import JudgingRules

EDGES = ("left", "right", "top", "bottom")


class JudgeTask(NamedTuple):
    """An image that a judge is asked about in a week; of equally large objects the one nearest to `side` counts."""

    week: datetime.date
    sha256: str
    side: str


class Draw(NamedTuple):
    """What controls are drawn from when a week is published, and how many each judge gets."""

    week: datetime.date
    pool: frozenset[str]
    number: int


def drawn_controls(draws: Iterable[Draw], judge: str, seed: int) -> dict[datetime.date, list[str]]:
    """By week, the controls that are drawn for a judge; none is drawn twice."""
    found: dict[datetime.date, list[str]] = {}
    drawn = set[str]()
    for week, pool, number in draws:
        found[week] = _shuffled(pool - drawn, seed, judge, "controls")[:number]
        drawn |= {*found[week]}
    return found


def control_count(images: int, share: float) -> int:
    """The number of control images that, added to `images` submitted ones, make up at least this share of all."""
    # of the text: the float 0.1 is slightly more than 1/10, and would ask for one image too many
    exact = Fraction(str(share))
    return math.ceil(images * exact / (1 - exact))


def tasks_of_week(week: datetime.date, images: Iterable[str], judge: str, seed: int) -> list[JudgeTask]:
    """The tasks of a judge in a week, in the judge's own order."""
    order = _shuffled(images, seed, judge, str(week))
    return [JudgeTask(week, each, EDGES[_digest(seed, judge, each)[0] % len(EDGES)]) for each in order]


def _shuffled(images: Iterable[str], seed: int, judge: str, what: str) -> list[str]:
    # by digest, not by a generator: an added image leaves the order of the others unchanged
    return sorted(images, key=lambda each: (_digest(seed, judge, what, each), each))


def _digest(*names: str | int) -> bytes:
    # as JSON, in which "a", "bc" and "ab", "c" differ
    return digest_of(json.dumps(names).encode()).digest()


@dataclass(slots=True)
class JudgeRecord:
    """The answers of a judge by the SHA-256 of the image; how many are to controls, and how many of these correct."""

    answers: dict[str, JudgeAnswer] = field(default_factory=dict)
    control_count: int = 0
    correct: int = 0

    def add_control(self, answer: JudgeAnswer, control: ControlImage) -> None:
        """Score the answer to a control."""
        self.control_count += 1
        self.correct += control.is_met_by(answer)

    def problem(self, rules: JudgingRules) -> str | None:
        """Why what the judge answers now does not count; None if it does."""
        controls = self.control_count
        # of the text: 0.7 as a float is slightly less than 7/10
        if controls < rules.min_controls or Fraction(self.correct, controls) >= Fraction(str(rules.min_accuracy)):
            return None
        return f"{self.correct} of {controls} controls correct; expected a share of {rules.min_accuracy:g}"
