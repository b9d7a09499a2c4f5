"""The audit of a finished set: which images are looked at again, and the bound that follows.

The images are drawn at random, without replacement, and looked at by people who did not review them. Whatever is not
found clean counts as flawed. The files are below `reviews/audit/`: for each model the plan, the order of drawing, the
auditors' verdicts.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import ConfigDict, TypeAdapter

from cleanset.classes import ClassTable
from cleanset.csv_files import csv_text, read_rows
from cleanset.errors import CleansetError
from cleanset.files import is_there, write_text
from cleanset.images.boxes import Box, box_of, parse_box
from cleanset.json_files import check_digest, read_json, with_digest
from cleanset.review.gold import GoldAnswer, GoldScore, Key, calibrations, gold_answers, read_gold_key, without_golds
from cleanset.review.store import AUDIT, BOARD, Votes, check_reviewer, check_reviews, read_reviews, read_votes
from cleanset.review.verdicts import Vote
from cleanset.statistics.basics import LEVEL
from cleanset.statistics.finite import (
    Draws,
    fixed_bound,
    lower_limit,
    lower_limit_at_any_time,
    open_bound,
)
from cleanset.validation import Role, Section, shown, validate
from cleanset.yaml_files import read_yaml

if TYPE_CHECKING:
    import pandas as pd


AuditKind = Literal["fixed", "open"]
"""`fixed`: the number of draws is decided before the first. `open`: one may look on and stop at any time."""


class SetImage(NamedTuple):
    """An image of a set, as it is delivered: whole, or the part inside a box."""

    class_index: int
    image_id: str
    crop: Box | None


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The images of a model's set in drawing order; the first `drawn` are looked at."""

    classes: ClassTable
    model: str
    kind: AuditKind
    seed: str
    drawn: int
    images: tuple[SetImage, ...]

    @property
    def draws(self) -> tuple[SetImage, ...]:
        """The images to look at."""
        return self.images[: self.drawn]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit of a set.

    `images`: the images of the set when it was drawn from; `seen`: how many draws are looked at, up to the first that
    is not; `flawed`: how many of these are not clean. `at_most`: the bound on the flawed images if the auditors miss
    nothing, None while a fixed audit is not finished. `corrected`: the bound if they miss as much as their gold items
    allow, with `sensitivity` as the lower limit; both None if no auditor has judged one. `left`: the flawed draws that
    are no longer in the set; `came`: the images that are new in it since; `now`: its images today. Both bounds are on
    the set of today. `unmeasured`: the auditors without gold items who alone looked at a draw, while others have some;
    None in a result of an older version.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str
    kind: AuditKind
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
    unmeasured: tuple[str, ...] | None = None

    @property
    def bound(self) -> int | None:
        """The bound to state: the corrected one, if any."""
        return self.at_most if self.corrected is None else self.corrected

    @property
    def is_outdated(self) -> bool:
        """Whether an older version corrected the bound otherwise, or not at all, where it is corrected today."""
        is_other = len(self.auditors) > 1 or (self.kind == "open" and self.corrected is not None)
        return self.unmeasured is None and self.bound is not None and is_other


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
    is_flawed = [any(vote.review.verdict != "clean" for vote in by_auditor.values()) for by_auditor in draws]
    auditors = tuple(sorted({name for by_auditor in draws for name in by_auditor}))
    looked_at = Draws(len(plan.images), len(draws), sum(is_flawed))
    today = set(now)
    found = {image for image, flawed in zip(plan.draws, is_flawed, strict=False) if flawed}
    left, came = len(found - today), len(today.difference(plan.images))

    def today_at_most(bound: int | None) -> int | None:
        # whatever came since may be flawed; only what was found to be flawed is known to have left with its flaw
        return None if bound is None else min(len(today), bound - left + came)

    measured = {name: golds[name] for name in auditors if name in golds and golds[name].golds}
    sensitivity = least_sensitivity(draws, measured, plan.kind)
    alone = {name for by_auditor in draws if measured.keys().isdisjoint(by_auditor) for name in by_auditor}
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
        tuple(sorted(alone)) if measured else (),
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
    level, limit = 1 - (1 - LEVEL) / 2 / sharers, lower_limit if kind == "fixed" else lower_limit_at_any_time
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
    return f"{hundredths(images, of) / 100:.2f} %"


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
                "This takes it that the auditors miss nothing: none of them has judged a flawed gold item, so that it "
                "cannot be corrected for what they miss."
            )
        else:
            yield (
                "Corrected for what the auditors miss: by their gold items they find at least "
                f"{100 * result.sensitivity:.0f} % of the flaws. If they missed nothing, it would be "
                f"{percent(result.at_most, result.now)}."
            )
    if result.unmeasured:
        yield (
            f"Draws looked at only by people without flawed gold items ({', '.join(result.unmeasured)}) count as if "
            "every flaw had been missed: let these people judge gold items, or others look at their draws again."
        )
    if result.is_outdated:
        yield (
            "An older version made this result. Today what the auditors miss is taken into account otherwise, and the "
            "bound may be higher: run dvc repro."
        )
    if result.left or result.came:
        yield (
            f"The set has changed since: {result.left:,} images found to be flawed were taken out, and {result.came:,} "
            "that came count as flawed."
        )


DRAW_COLUMNS = ("image_id", "left", "top", "right", "bottom")
"""Columns of the order of drawing; a whole image has no box."""


class _Plan(Section):
    """The plan as in the file; the images are beside it."""

    model: Role
    kind: AuditKind
    drawn: int
    seed: str
    content_sha256: str | None = None


def plan_file(reviews: Path, role: str) -> Path:
    """The plan of the audit of a model's set."""
    return reviews / AUDIT / f"{role}.yaml"


def order_file(reviews: Path, role: str) -> Path:
    """The images of the set, in the order of drawing."""
    return reviews / AUDIT / f"{role}.csv"


def verdicts_folder(reviews: Path, role: str) -> Path:
    """The folder of the auditors' folders."""
    return reviews / AUDIT / role


def read_plan(reviews: Path, role: str, classes: ClassTable) -> AuditPlan | None:
    """The plan of an audit; None without an audit. Raises CleansetError for a file that is not as written."""
    path = plan_file(reviews, role)
    listed = order_file(reviews, role)
    if not is_there(path):
        return None
    remedy = "restore it, or remove reviews/audit and draw anew"
    plan = validate(_Plan, read_yaml(path, remedy), path)
    check_digest(plan.model_dump(exclude_unset=True), path, remedy)
    rows = read_rows(listed, (classes.key_column, *DRAW_COLUMNS), partial(_image, classes), remedy)
    images = tuple(image for _, image in rows)
    is_complete = plan.model == role and 1 <= plan.drawn <= len(images)
    if not is_complete or draw_order(images, plan.seed, classes) != images:
        raise CleansetError(
            f"{path} or {listed.name}: {shown(plan.drawn)} of {len(images)} images of {plan.model}, not in the order "
            f"of seed {shown(plan.seed)}; expected the files as they were drawn: {remedy}"
        )
    return AuditPlan(classes=classes, model=plan.model, kind=plan.kind, seed=plan.seed, drawn=plan.drawn, images=images)


def _image(classes: ClassTable, cells: Mapping[str, str]) -> SetImage:
    edges = [cells[name] for name in DRAW_COLUMNS[1:]]
    try:
        box = parse_box([int(edge) for edge in edges]) if any(edges) else None
        return SetImage(classes.indices[cells[classes.key_column]], cells["image_id"], box)
    except (KeyError, ValueError):
        raise ValueError(f"expected a {classes.key_column}, an image id, and a box or nothing") from None


def write_plan(reviews: Path, plan: AuditPlan) -> None:
    """Write the plan, the order of drawing first: without the plan it counts for nothing."""
    verdicts_folder(reviews, plan.model).mkdir(parents=True, exist_ok=True)
    keys = plan.classes.keys
    rows = ([keys[each.class_index], each.image_id, *(each.crop or [""] * 4)] for each in plan.images)
    write_text(order_file(reviews, plan.model), csv_text((plan.classes.key_column, *DRAW_COLUMNS), rows))
    about = with_digest({"model": plan.model, "kind": plan.kind, "drawn": plan.drawn, "seed": plan.seed})
    write_text(plan_file(reviews, plan.model), "".join(f"{key}: {json.dumps(each)}\n" for key, each in about.items()))


def audited_roles(reviews: Path, roles: Collection[str]) -> list[str]:
    """The models whose sets are audited, in the order of params.yaml."""
    return [role for role in roles if is_there(plan_file(reviews, role))]


def read_audit_votes(reviews: Path, role: str, classes: ClassTable) -> Votes:
    """The auditors' verdicts on a set, answers to gold items among them."""
    folder = verdicts_folder(reviews, role)
    return read_votes(folder, classes) if is_there(folder) else {}


def draws_of_auditor(reviews: Path, plan: AuditPlan, auditor: str) -> list[SetImage]:
    """The draws that one auditor looks at. Raises CleansetError for an invalid name, the board, and without a draw."""
    check_reviewer(auditor)
    if auditor == BOARD:
        raise CleansetError(f"audit of {plan.model}: {BOARD} decides on reviews; expected the name of an auditor")
    draws = draws_for(auditor, plan, read_reviews(reviews, plan.classes))
    if not draws:
        raise CleansetError(
            f"audit of {plan.model}: {auditor} has reviewed every image that is drawn; let somebody else audit them"
        )
    return draws


def set_images(selection: "pd.DataFrame") -> list[SetImage]:
    """The images of a set that are delivered, from table SELECTION: all but those whose box is not known."""
    delivered = selection[~selection["box_unknown"].astype(bool)]
    columns = (delivered[name].tolist() for name in ("class_index", "image_id", "crop"))
    return [SetImage(int(each), name, box_of(crop)) for each, name, crop in zip(*columns, strict=True)]


def all_gold_answers(reviews: Path, roles: Collection[str], classes: ClassTable) -> list[GoldAnswer]:
    """The answers to gold items that reviewers gave while reviewing and while auditing."""
    golds = read_gold_key(reviews, classes)
    if not golds:
        return []
    sources = [read_votes(reviews, classes), *(read_audit_votes(reviews, role, classes) for role in roles)]
    return [answer for votes in sources for answer in gold_answers(votes, golds)]


def judged_elsewhere(reviews: Path, reviewer: str, answered: Collection[Key] | None, classes: ClassTable) -> set[Key]:
    """The images that somebody has judged in other places than the page shows, gold items among them.

    `answered`: the gold items answered among the reviews, where the page shows these; None where it shows an audit.
    """
    folders = sorted(path for path in (reviews / AUDIT).glob("*") if path.is_dir())
    sources = [read_votes(folder, classes) for folder in (*folders, *([reviews] if answered is None else ()))]
    return {key for votes in sources for key, by_name in votes.items() if reviewer in by_name}.difference(
        answered or ()
    )


def read_audit(
    reviews: Path,
    role: str,
    *,
    roles: Collection[str],
    votes: Votes,
    index: "pd.DataFrame",
    selection: "pd.DataFrame",
    classes: ClassTable,
) -> AuditResult | None:
    """The result of the audit of a model's set; None without one.

    `votes`: those that decide; `roles`: all models, whose audits may have gold items, too. Raises CleansetError for
    a verdict on other bytes than the index has.
    """
    plan = read_plan(reviews, role, classes)
    if plan is None:
        return None
    of_audit = without_golds(read_audit_votes(reviews, role, classes), read_gold_key(reviews, classes))
    # the plan has the ids of this edition's own images; boxes are in pixels of the delivered images
    check_reviews(of_audit, index, classes, None, official_images=True)
    answers = all_gold_answers(reviews, roles, classes)
    golds = {each.reviewer: each.sensitivity for each in calibrations(answers)}
    return audit_result(plan, of_audit, votes, golds, set_images(selection))


def audit_json(result: AuditResult | None) -> str:
    """An audit's result as JSON, null without one: the table data/audit/<role>.json."""
    return json.dumps(None if result is None else asdict(result), indent=2) + "\n"


def read_audit_json(path: Path) -> AuditResult | None:
    """The result in data/audit/<role>.json. Raises CleansetError for anything else."""
    kind: TypeAdapter[AuditResult | None] = TypeAdapter(AuditResult | None)
    return read_json(path, kind, "the output of stage review_apply", "run dvc repro")
