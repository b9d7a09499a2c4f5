"""The audit of a finished set: which images are looked at again, and the bound that follows.

The images are drawn at random, without replacement, and looked at by people who did not review them. Whatever is not
found clean counts as flawed.

Reviewers on gold items: sensitivity and specificity with intervals, and the evidence against each.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cleanset.dataset.ilsvrc import wnids
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.review.gold import GoldAnswer, reasons_in
from cleanset.review.verdicts import Vote
from cleanset.statistics.finite import (
    LEVEL,
    Draws,
    exact_interval,
    fixed_bound,
    likelihood_ratio,
    lower_limit,
    open_bound,
)

Kind = Literal["fixed", "open"]
"""`fixed`: the number of draws is decided before the first. `open`: one may look on and stop at any time."""


class SetImage(NamedTuple):
    """An image of a set, as it is delivered: whole, or the part inside a box."""

    class_index: int
    image_id: str
    crop: Box | None


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The images of a model's set in the order in which they are drawn; the first `drawn` are looked at."""

    model: str
    kind: Kind
    seed: str
    drawn: int
    images: tuple[SetImage, ...]

    @property
    def draws(self) -> tuple[SetImage, ...]:
        """The images to look at."""
        return self.images[: self.drawn]


@dataclass(frozen=True, slots=True)
class GoldCount:
    """An auditor's gold items: `found` of the `flawed` ones were not judged clean."""

    found: int
    flawed: int


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit of a set.

    `images`: those of the set when it was drawn from; `seen`: how many draws are looked at, up to the first that is
    not; `flawed`: how many of these are not clean. `at_most`: the bound on the flawed images if the auditors miss
    nothing, None while a fixed audit is not finished. `corrected`: the bound if they miss as much as their gold items
    allow, with `sensitivity` as the lower limit; both None without gold items. `left`: the flawed draws that are no
    longer in the set; `came`: the images that are new in it since; `now`: its images today. Both bounds are on the
    set of today.
    """

    model: str
    kind: Kind
    images: int
    drawn: int
    seen: int
    flawed: int
    auditors: tuple[str, ...]
    at_most: int | None
    corrected: int | None
    sensitivity: float | None
    now: int
    left: int
    came: int

    @property
    def bound(self) -> int | None:
        """The bound to state: the corrected one where there is one."""
        return self.at_most if self.corrected is None else self.corrected


def draw_order(images: Collection[SetImage], seed: str) -> tuple[SetImage, ...]:
    """The images of a set in a random order that depends on nothing but the set and the seed.

    By the SHA-256 of seed, set and image: as good as random for anybody who does not choose the seed by the outcome.
    """
    listed = json.dumps([[wnids()[each.class_index], each.image_id, each.crop] for each in sorted_images(images)])
    start = hashlib.sha256(json.dumps([seed, listed]).encode()).hexdigest()

    def number(image: SetImage) -> bytes:
        return hashlib.sha256(json.dumps([start, image.class_index, image.image_id]).encode()).digest()

    return tuple(sorted(images, key=number))


def sorted_images(images: Collection[SetImage]) -> list[SetImage]:
    """The images by class and id."""
    return sorted(images, key=lambda image: (image.class_index, image.image_id))


def new_plan(model: str, kind: Kind, seed: str, drawn: int, images: Collection[SetImage]) -> AuditPlan:
    """The plan of a new audit. Raises CleansetError for more draws than images."""
    _check_size(model, drawn, len(images))
    return AuditPlan(model, kind, seed, drawn, draw_order(images, seed))


def continued(plan: AuditPlan, drawn: int) -> AuditPlan:
    """The plan with that number of draws. Raises CleansetError for fewer, and where the number was fixed."""
    _check_size(plan.model, drawn, len(plan.images))
    if drawn != plan.drawn and plan.kind == "fixed":
        raise CleansetError(
            f"audit of {plan.model}: found {drawn} draws, but {plan.drawn} were fixed beforehand, and the bound holds "
            f"for these alone; expected --audit {plan.drawn} (an audit that may grow is begun with --open)"
        )
    if drawn < plan.drawn:
        raise CleansetError(
            f"audit of {plan.model}: found {drawn} draws, but {plan.drawn} are drawn; expected at least as many"
        )
    return replace(plan, drawn=drawn)


def _check_size(model: str, drawn: int, images: int) -> None:
    if not 1 <= drawn <= images:
        raise CleansetError(f"audit of {model}: found {drawn} draws; expected 1 to {images}, the images of its set")


def draws_for(auditor: str, plan: AuditPlan, reviewers: Mapping[tuple[int, str], Collection[str]]) -> list[SetImage]:
    """The draws that one auditor may look at: those whose image they have not reviewed."""
    return [each for each in plan.draws if auditor not in reviewers.get((each.class_index, each.image_id), ())]


def audit_result(
    plan: AuditPlan,
    votes: Mapping[tuple[int, str], Mapping[str, Vote]],
    reviewers: Mapping[tuple[int, str], Collection[str]],
    golds: Mapping[str, GoldCount],
    now: Collection[SetImage],
) -> AuditResult:
    """The result of an audit, for the set of today, `now`.

    `votes`: the auditors' verdicts; `reviewers`: who has reviewed an image, whose verdicts do not count in its audit.
    `golds`: of each auditor. Several verdicts on a draw count as flawed if any is not clean.
    """
    draws: list[dict[str, Vote]] = []
    for each in plan.draws:
        key = each.class_index, each.image_id
        by_auditor = {name: vote for name, vote in votes.get(key, {}).items() if name not in reviewers.get(key, ())}
        if not by_auditor:
            break  # which image is left out may depend on what it shows, so that the ones after it do not count
        draws.append(by_auditor)
    is_flawed = [any(vote.review.verdict != "clean" for vote in by_auditor.values()) for by_auditor in draws]
    auditors = tuple(sorted({name for by_auditor in draws for name in by_auditor}))
    looked_at = Draws(len(plan.images), len(draws), sum(is_flawed))
    today = set(now)
    found = {image for image, flawed in zip(plan.draws, is_flawed, strict=False) if flawed}
    left, came = len(found - today), len(today.difference(plan.images))

    def today_at_most(bound: int | None) -> int | None:
        # whatever came since may be flawed; only what was found to be flawed is known to have left with its flaw
        return None if bound is None else min(len(today), bound - left + came)

    sensitivity = least_sensitivity([golds.get(name, GoldCount(0, 0)) for name in auditors])
    return AuditResult(
        plan.model,
        plan.kind,
        len(plan.images),
        plan.drawn,
        len(draws),
        sum(is_flawed),
        auditors,
        today_at_most(_bound(plan, looked_at, LEVEL, 1.0)),
        # half of the risk for the draws, half for the gold items
        today_at_most(None if sensitivity is None else _bound(plan, looked_at, (1 + LEVEL) / 2, sensitivity)),
        sensitivity,
        len(today),
        left,
        came,
    )


def _bound(plan: AuditPlan, draws: Draws, level: float, sensitivity: float) -> int | None:
    if plan.kind == "open":
        return open_bound(draws, level, sensitivity)
    return fixed_bound(draws, level, sensitivity) if draws.drawn == plan.drawn else None


def least_sensitivity(golds: Sequence[GoldCount]) -> float | None:
    """A lower limit of the sensitivity of each auditor, wrong for any of them with a probability of 2.5 % at most.

    None unless every auditor has judged a flawed gold item. The limits share the risk (C. E. Bonferroni).
    """
    if not golds or any(count.flawed == 0 for count in golds):
        return None
    level = 1 - (1 - LEVEL) / 2 / len(golds)
    return min(lower_limit(count.found, count.flawed, level) for count in golds)


def audit_numbers(result: AuditResult | None) -> dict[str, float | int]:
    """Numbers for a model's metrics: draws looked at, flawed ones, the bound in percent; none without an audit."""
    if result is None:
        return {}
    numbers: dict[str, float | int] = {"audit_seen": result.seen, "audit_flawed": result.flawed}
    if result.bound is not None and result.now:
        numbers["audit_flawed_at_most"] = hundredths(result.bound, result.now) / 100
    return numbers


def hundredths(images: int, of: int) -> int:
    """A share in hundredths of a percent, rounded up: a bound must not get smaller."""
    return -(-images * 10_000 // of) if of else 0


def percent(images: int, of: int) -> str:
    """A share in percent with two decimals, rounded up, such as 0.98 %."""
    return f"{hundredths(images, of) / 100:.2f} %"


def sentences(result: AuditResult) -> list[str]:
    """The result of an audit in sentences, the bound first."""
    return [_bound_sentence(result), _draws_sentence(result), *_sensitivity_sentences(result), *_changes(result)]


def _bound_sentence(result: AuditResult) -> str:
    if result.bound is None:
        return (
            f"No statement yet: {result.seen} of {result.drawn} draws are looked at, and a fixed number says nothing "
            "before the last."
        )
    return (
        f"At most {percent(result.bound, result.now)} flawed ({result.bound:,} of {result.now:,} images), with 95 % "
        "confidence."
    )


def _draws_sentence(result: AuditResult) -> str:
    validity = "a number fixed beforehand" if result.kind == "fixed" else "valid whenever one stops"
    auditors = ", ".join(result.auditors) or "nobody yet"
    return (
        f"Drawn at random from {result.images:,}: {result.drawn:,} ({validity}); looked at again by people who had not "
        f"reviewed them ({auditors}): {result.seen:,}, of which flawed: {result.flawed:,}."
    )


def _sensitivity_sentences(result: AuditResult) -> Iterable[str]:
    if result.at_most is None or not result.seen:
        return
    if result.corrected is None or result.sensitivity is None:
        yield (
            "This takes it that the auditors miss nothing: not every one of them has judged a flawed gold item, so "
            "that it cannot be corrected for what they miss."
        )
    else:
        yield (
            f"Corrected for what the auditors miss: by their gold items they find at least "
            f"{100 * result.sensitivity:.0f} % of the flaws. If they missed nothing, it would be "
            f"{percent(result.at_most, result.now)}."
        )


def _changes(result: AuditResult) -> Iterable[str]:
    if result.left or result.came:
        yield (
            f"The set has changed since: {result.left:,} images found to be flawed were taken out, and {result.came:,} "
            "that came count as flawed."
        )


ACCEPTABLE_MISSES = 0.15
"""Share of missed flaws with which a reviewer counts as careful."""

MANY_MISSES = 0.30
"""Share of missed flaws with which a reviewer is to be found."""

ALARM = 100.0
"""Evidence from which on it counts: it is reached wrongly by 1 in 100 at most, however often one looks."""

Finding = Literal["misses many", "careful", "not known yet"]


@dataclass(frozen=True, slots=True)
class Share:
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

    `sensitivity`: of the flawed ones, also by reason; `specificity`: of the clean ones. Any verdict but clean finds a
    flaw, whatever reason it gives.
    """

    reviewer: str
    sensitivity: Share
    specificity: Share
    by_reason: Mapping[str, Share]

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
    by_reason = {
        reason: _share([answer for answer in flawed if answer.item.reason == reason])
        for reason in reasons_in([answer.item for answer in flawed])
    }
    return Calibration(reviewer, _share(flawed), _share(clean), by_reason)


def _share(answers: Sequence[GoldAnswer]) -> Share:
    return Share(sum(answer.is_correct for answer in answers), len(answers))
