"""How reviewers judge gold items: sensitivity and specificity with intervals, and the evidence for missed flaws."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cleanset.review.gold import GoldAnswer
from cleanset.statistics.shares import exact_interval, likelihood_ratio
from cleanset.vocabulary import REASONS

ACCEPTABLE_MISSES = 0.15
"""Share of missed flaws with which a reviewer counts as careful."""

MANY_MISSES = 0.30
"""Share of missed flaws with which a reviewer is to be found."""

# evidence that counts: it is reached wrongly by 1 in 100 at most, however often one looks
ALARM = 100.0

Finding = Literal["misses many", "careful", "not known yet"]


@dataclass(frozen=True, slots=True)
class GoldScore:
    """`correct` of `golds` gold items were judged as is known."""

    correct: int
    golds: int

    @property
    def share(self) -> float | None:
        """The share that was judged correctly; None without a gold item."""
        return self.correct / self.golds if self.golds else None

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval (Clopper and Pearson)."""
        return exact_interval(self.correct, self.golds)


@dataclass(frozen=True, slots=True)
class Calibration:
    """One reviewer's answers to gold items.

    `sensitivity`: share of the flawed ones, also by reason; `specificity`: share of the clean ones. Any verdict but
    clean finds a flaw, whatever reason it gives.
    """

    reviewer: str
    sensitivity: GoldScore
    specificity: GoldScore
    by_reason: Mapping[str, GoldScore]

    @property
    def against(self) -> float:
        """The evidence that more than ACCEPTABLE_MISSES are missed: an e-value, valid whenever one looks."""
        return evidence_of_misses(self.sensitivity.golds - self.sensitivity.correct, self.sensitivity.golds)

    @property
    def in_favour(self) -> float:
        """The evidence that fewer than MANY_MISSES are missed, likewise."""
        return 1 / self.against

    @property
    def finding(self) -> Finding:
        """Which of the two has reached ALARM."""
        if self.against >= ALARM:
            return "misses many"
        return "careful" if self.in_favour >= ALARM else "not known yet"


def evidence_of_misses(missed: int, golds: int) -> float:
    """The likelihood of the misses at MANY_MISSES, divided by that at ACCEPTABLE_MISSES.

    The sequential probability ratio test of A. Wald (1945).
    """
    return likelihood_ratio(missed, golds, MANY_MISSES, ACCEPTABLE_MISSES)


def calibrations(answers: Iterable[GoldAnswer]) -> list[Calibration]:
    """The calibration of each reviewer who has answered a gold item, by name."""
    by_reviewer: dict[str, list[GoldAnswer]] = {}
    for answer in answers:
        by_reviewer.setdefault(answer.reviewer, []).append(answer)
    return [_calibration(reviewer, by_reviewer[reviewer]) for reviewer in sorted(by_reviewer)]


def _calibration(reviewer: str, answers: Sequence[GoldAnswer]) -> Calibration:
    flawed = [answer for answer in answers if answer.item.is_flawed]
    clean = [answer for answer in answers if not answer.item.is_flawed]
    reasons = dict.fromkeys((*REASONS, *sorted({str(each.item.reason) for each in flawed})))
    of_reasons = {reason: [each for each in flawed if each.item.reason == reason] for reason in reasons}
    by_reason = {reason: _share(of_reason) for reason, of_reason in of_reasons.items() if of_reason}
    return Calibration(reviewer, _share(flawed), _share(clean), by_reason)


def _share(answers: Sequence[GoldAnswer]) -> GoldScore:
    return GoldScore(sum(answer.is_correct for answer in answers), len(answers))
