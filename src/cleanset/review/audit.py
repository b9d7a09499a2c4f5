"""The audit of a finished set: which images are looked at again, and the bound that follows.

The images are drawn at random, without replacement, and looked at by people who did not review them. Whatever is not
found clean counts as flawed.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import ConfigDict

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, Unknown
from cleanset.review.calibration import GoldScore
from cleanset.review.verdicts import Clean, Vote
from cleanset.selection.selected import boxes_of
from cleanset.statistics.basics import LEVEL
from cleanset.statistics.finite import Draws, fixed_bound, open_bound
from cleanset.statistics.formats import decimal
from cleanset.statistics.shares import lower_limit, lower_limit_at_any_time

if TYPE_CHECKING:
    import pandas as pd


AuditKind = Literal["fixed", "open"]
"""`fixed`: the number of draws is decided before the first. `open`: one may look on and stop at any time."""


class SetImage(NamedTuple):
    """An image of a set as delivered: whole, or the part inside a box."""

    class_index: int
    image_id: str
    crop: Box | None


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The images of a model's set in drawing order; the first ones are looked at."""

    classes: ClassTable
    model: str
    """The role of the model whose set is audited."""

    kind: AuditKind
    seed: str
    """Any text; with the set it determines the order."""

    drawn: int
    """Number of images to look at, 1 to all."""

    images: tuple[SetImage, ...]
    """All images of the set, in drawing order."""

    @property
    def draws(self) -> tuple[SetImage, ...]:
        """The images to look at."""
        return self.images[: self.drawn]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit of a set. Both bounds are on the set of today."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str
    """The role of the model whose set is audited."""

    kind: AuditKind
    images: int
    """Number of images of the set when it was drawn from."""

    drawn: int
    """Number of draws, 1 to `images`."""

    seen: int
    """Number of draws that are looked at, up to the first that is not."""

    flawed: int
    """How many of these are not clean."""

    auditors: tuple[str, ...]
    at_most: int | None
    """Bound on the flawed images if the auditors miss nothing; None while a fixed audit is not finished."""

    corrected: int | None
    """Bound if the auditors miss as much as their gold items allow; None if no auditor has judged one."""

    sensitivity: float | None
    """Lower limit of the share of flaws that the auditors find, 0 to 1; None if no auditor has judged a gold item."""

    now: int
    """Number of images in the set today."""

    left: int
    """Number of flawed draws not in the set any more."""

    came: int
    """Number of images that are new in the set."""

    unmeasured: tuple[str, ...]
    """The auditors without gold items who alone looked at a draw, while others have some."""

    @property
    def bound(self) -> int | None:
        """The bound to state: the corrected one, if any."""
        return self.at_most if self.corrected is None else self.corrected


def draw_order(images: Collection[SetImage], seed: str, classes: ClassTable) -> tuple[SetImage, ...]:
    """The images of a set in a random order that depends on nothing but the set and the seed.

    By the SHA-256 of seed, set and image: as good as random for anybody who does not choose the seed by the outcome.
    """
    by_class = sorted(images, key=lambda image: (image.class_index, image.image_id))
    listed = json.dumps([[classes.keys[each.class_index], each.image_id, each.crop] for each in by_class])
    start = hashlib.sha256(json.dumps([seed, listed]).encode()).hexdigest()

    def number(image: SetImage) -> bytes:
        return hashlib.sha256(json.dumps([start, image.class_index, image.image_id]).encode()).digest()

    return tuple(sorted(images, key=number))


def new_plan(
    *, model: str, kind: AuditKind, seed: str, drawn: int, images: Collection[SetImage], classes: ClassTable
) -> AuditPlan:
    """The plan of a new audit. Raises CleansetError for more draws than images."""
    _check_size(model, drawn, len(images))
    in_order = draw_order(images, seed, classes)
    return AuditPlan(classes=classes, model=model, kind=kind, seed=seed, drawn=drawn, images=in_order)


def continued(plan: AuditPlan, drawn: int) -> AuditPlan:
    """The plan with that number of draws. Raises CleansetError for fewer, and where the number was fixed."""
    _check_size(plan.model, drawn, len(plan.images))
    if drawn != plan.drawn and plan.kind == "fixed":
        raise CleansetError(
            f"audit of {plan.model}: found {drawn} draws, but {plan.drawn} were fixed beforehand, and the bound holds "
            f"for these alone; expected {plan.drawn} (an audit that may grow is begun with --open)"
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
    golds: Mapping[str, GoldScore],
    now: Collection[SetImage],
) -> AuditResult:
    """The result of an audit, for the set of today, `now`.

    `votes`: the auditors' verdicts; `reviewers`: who has reviewed an image, whose verdicts do not count in its audit.
    `golds`: by auditor, how many flawed gold items were found. Several verdicts on a draw count as flawed if any is not
    clean.
    """
    draws: list[dict[str, Vote]] = []
    for each in plan.draws:
        key = each.class_index, each.image_id
        by_auditor = {name: vote for name, vote in votes.get(key, {}).items() if name not in reviewers.get(key, ())}
        if not by_auditor:
            break  # which image is left out may depend on what it shows, so that the ones after it do not count
        draws.append(by_auditor)
    is_flawed = [
        not all(isinstance(vote.review.verdict, Clean) for vote in by_auditor.values()) for by_auditor in draws
    ]
    auditors = tuple(sorted({name for by_auditor in draws for name in by_auditor}))
    looked_at = Draws(len(plan.images), len(draws), sum(is_flawed))
    today = set(now)
    found = {image for image, flawed in zip(plan.draws, is_flawed, strict=False) if flawed}
    left = len(found - today)
    came = len(today.difference(plan.images))

    def today_at_most(bound: int | None) -> int | None:
        # whatever came since may be flawed; only what was found to be flawed is known to have left with its flaw
        return None if bound is None else min(len(today), bound - left + came)

    measured = {name: golds[name] for name in auditors if name in golds and golds[name].golds}
    sensitivity = least_sensitivity(draws, measured, plan.kind)
    alone = {name for by_auditor in draws if measured.keys().isdisjoint(by_auditor) for name in by_auditor}
    # half of the risk for the draws, half for the gold items
    corrected = None if sensitivity is None else _bound(plan, looked_at, (1 + LEVEL) / 2, sensitivity)
    return AuditResult(
        model=plan.model,
        kind=plan.kind,
        images=len(plan.images),
        drawn=plan.drawn,
        seen=len(draws),
        flawed=sum(is_flawed),
        auditors=auditors,
        at_most=today_at_most(_bound(plan, looked_at, LEVEL, 1.0)),
        corrected=today_at_most(corrected),
        sensitivity=sensitivity,
        now=len(today),
        left=left,
        came=came,
        unmeasured=tuple(sorted(alone)) if measured else (),
    )


def _bound(plan: AuditPlan, draws: Draws, level: float, sensitivity: float) -> int | None:
    if plan.kind == "open":
        return open_bound(draws, level, sensitivity)
    return fixed_bound(draws, level, sensitivity) if draws.drawn == plan.drawn else None


def least_sensitivity(
    draws: Iterable[Collection[str]], golds: Mapping[str, GoldScore], kind: AuditKind
) -> float | None:
    """A lower limit of the sensitivity with which each draw was looked at, wrong with a probability of 2.5 % at most.

    `draws`: the auditors of each; `golds`: the flawed gold items of those who have judged any; None if nobody has. As a
    flaw counts if anybody finds it, the most sensitive auditor of a draw counts. An auditor without gold items counts
    as one who finds nothing. The limits share the risk (C. E. Bonferroni). In an open audit, which others may join, the
    k-th auditor has the part 1 / (k (k + 1)) of it at most, and the limits hold whenever one stops.
    """
    if not golds:
        return None
    sharers = len(golds) if kind == "fixed" else len(golds) * (len(golds) + 1)
    level = 1 - (1 - LEVEL) / 2 / sharers
    limit = lower_limit if kind == "fixed" else lower_limit_at_any_time
    limits = {name: limit(share.correct, share.golds, level) for name, share in golds.items()}
    return min(max(limits.get(name, 0.0) for name in auditors) for auditors in draws)


def audit_numbers(result: AuditResult | None) -> dict[str, float | int]:
    """Numbers for a model's metrics: draws looked at, flawed ones, the bound in percent; empty without an audit.

    A bound that is not corrected for flaws missed by the auditors has another name.
    """
    if result is None:
        return {}
    numbers: dict[str, float | int] = {"audit_seen": result.seen, "audit_flawed": result.flawed}
    if result.bound is not None and result.now:
        name = "audit_flawed_at_most" if result.corrected is not None else "audit_flawed_at_most_uncorrected"
        numbers[name] = hundredths(result.bound, result.now) / 100
    return numbers


def hundredths(images: int, of: int) -> int:
    """A share in hundredths of a percent, rounded up: a bound must not get smaller."""
    return -(-images * 10_000 // of) if of else 0


def percent(images: int, of: int) -> str:
    """A share in percent with two decimals, rounded up, such as 0.98 %."""
    return f"{decimal(hundredths(images, of) / 100)} %"


def sentences(result: AuditResult) -> Iterator[str]:
    """The result of an audit in sentences, the bound first."""
    if result.bound is None:
        yield (
            f"No statement yet: {result.seen} of {result.drawn} draws are looked at, and a fixed number says nothing "
            "before the last."
        )
    else:
        yield (
            f"At most {percent(result.bound, result.now)} flawed ({result.bound:,} of {result.now:,} images), with "
            "95 % confidence."
        )
    validity = "a number fixed beforehand" if result.kind == "fixed" else "valid whenever one stops"
    auditors = ", ".join(result.auditors) or "nobody yet"
    yield (
        f"Drawn at random from {result.images:,}: {result.drawn:,} ({validity}); looked at again by people who had not "
        f"reviewed them ({auditors}): {result.seen:,}, of which flawed: {result.flawed:,}."
    )
    if result.at_most is not None and result.seen:
        if result.corrected is None or result.sensitivity is None:
            yield (
                "This assumes that the auditors miss nothing: none of them has judged a flawed gold item, so it cannot "
                "be corrected for misses."
            )
        else:
            yield (
                "Corrected for what the auditors miss: by their gold items they find at least "
                f"{decimal(result.sensitivity, 0, 100)} % of the flaws. If they missed nothing, it would be "
                f"{percent(result.at_most, result.now)}."
            )
    if result.unmeasured:
        yield (
            f"Draws looked at only by people without flawed gold items ({', '.join(result.unmeasured)}) count as if "
            "every flaw had been missed: let these people judge gold items, or others look at their draws again."
        )
    if result.left or result.came:
        yield (
            f"The set has changed since: {result.left:,} images found to be flawed were removed, and {result.came:,} "
            "new ones count as flawed."
        )


def set_images(selection: "pd.DataFrame") -> list[SetImage]:
    """The images of a set that are delivered, from table SELECTION: all but those whose box is not known."""
    rows = zip(selection["class_index"].tolist(), selection["image_id"].tolist(), boxes_of(selection), strict=True)
    return [SetImage(class_index, name, box) for class_index, name, box in rows if not isinstance(box, Unknown)]
