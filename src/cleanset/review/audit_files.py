"""The files of an audit below `reviews/audit/`: for each model the plan, the order of drawing, the verdicts."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.images.boxes import parse_box
from cleanset.plumbing.csv_files import read_rows, write_csv
from cleanset.plumbing.files import is_there, write_text
from cleanset.plumbing.json_files import check_digest, read_json, with_digest
from cleanset.plumbing.validation import Role, Section, shown, validate
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.review.audit import (
    AuditKind,
    AuditPlan,
    AuditResult,
    SetImage,
    audit_result,
    draw_order,
    draws_for,
    set_images,
)
from cleanset.review.calibration import calibrations
from cleanset.review.gold import GoldAnswer, gold_answers, without_golds
from cleanset.review.gold_files import read_gold_key
from cleanset.review.store import AUDIT, BOARD, Votes, check_reviewer, check_reviews, read_reviews, read_votes
from cleanset.review.verdicts import ImageKey

if TYPE_CHECKING:
    import pandas as pd


DRAW_COLUMNS = ("image_id", "left", "top", "right", "bottom")
"""Columns of the order of drawing; a whole image has no box."""


class _Plan(Section):
    """The plan as in the file; the images are next to it."""

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
    remedy = "restore it, or remove reviews/audit and draw again"
    plan = validate(_Plan, read_yaml(path, remedy), path)
    check_digest(plan.model_dump(mode="json", exclude_unset=True), path, remedy)
    rows = read_rows(listed, (classes.key_column, *DRAW_COLUMNS), partial(_image, classes), remedy, is_own=True)
    images = tuple(image for _, image in rows)
    is_complete = plan.model == role and 1 <= plan.drawn <= len(images)
    if not is_complete or draw_order(images, plan.seed, classes) != images:
        raise CleansetError(
            f"{path} or {listed.name}: {shown(plan.drawn)} of {len(images)} images of {plan.model}, not in the order "
            f"of seed {shown(plan.seed)}; expected the drawn files: {remedy}"
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
    write_csv(order_file(reviews, plan.model), (plan.classes.key_column, *DRAW_COLUMNS), rows)
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


def all_gold_answers(reviews: Path, roles: Collection[str], classes: ClassTable) -> list[GoldAnswer]:
    """The answers to gold items that reviewers gave while reviewing and while auditing."""
    golds = read_gold_key(reviews, classes)
    if not golds:
        return []
    sources = [read_votes(reviews, classes), *(read_audit_votes(reviews, role, classes) for role in roles)]
    return [answer for votes in sources for answer in gold_answers(votes, golds)]


def judged_elsewhere(
    reviews: Path, reviewer: str, answered: Collection[ImageKey] | None, classes: ClassTable
) -> set[ImageKey]:
    """The images that somebody has judged in other places than the page shows, gold items among them.

    `answered`: the gold items answered among the reviews, where the page shows these; None if it shows an audit.
    """
    folders = sorted(path for path in (reviews / AUDIT).glob("*") if path.is_dir())
    sources = [read_votes(folder, classes) for folder in (*folders, *([reviews] if answered is None else ()))]
    return {key for votes in sources for key, by_name in votes.items() if reviewer in by_name}.difference(
        answered or ()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFiles:
    """What is read of the audit of a model's set."""

    plan: AuditPlan
    votes: Votes
    """The auditors' verdicts on the set, answers to gold items left out."""

    answers: Sequence[GoldAnswer]
    """The answers to gold items that reviewers gave while reviewing and while auditing, whatever model it was for."""


def read_audit_files(reviews: Path, role: str, *, roles: Collection[str], classes: ClassTable) -> AuditFiles | None:
    """Read the audit of a model's set; None without one. `roles`: all models, whose audits may have gold items, too."""
    plan = read_plan(reviews, role, classes)
    if plan is None:
        return None
    return AuditFiles(
        plan=plan,
        votes=without_golds(read_audit_votes(reviews, role, classes), read_gold_key(reviews, classes)),
        answers=all_gold_answers(reviews, roles, classes),
    )


def result_of_audit(
    audit: AuditFiles | None, *, votes: Votes, index: "pd.DataFrame", selection: "pd.DataFrame", classes: ClassTable
) -> AuditResult | None:
    """The result of the audit of a model's set; None without one.

    `votes`: those that decide. Raises CleansetError for a verdict on other bytes than the index has.
    """
    if audit is None:
        return None
    # the plan has the ids of this edition's own images; boxes are in pixels of the delivered images
    check_reviews(audit.votes, index, classes, None, official_images=True)
    golds = {each.reviewer: each.sensitivity for each in calibrations(audit.answers)}
    return audit_result(audit.plan, audit.votes, reviewers=votes, golds=golds, now=set_images(selection))


def audit_json(result: AuditResult | None) -> str:
    """An audit's result as JSON, null without one: the table data/audit/<role>.json."""
    return json.dumps(None if result is None else asdict(result), indent=2) + "\n"


def read_audit_json(path: Path) -> AuditResult | None:
    """The result in data/audit/<role>.json. Raises CleansetError for anything else."""
    kind: TypeAdapter[AuditResult | None] = TypeAdapter(AuditResult | None)
    return read_json(path, kind, "the output of stage review_apply", "run dvc repro")
