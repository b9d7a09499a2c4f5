"""The files of audits below `reviews/audit/`: for each model its plan, the order of drawing, the auditors' verdicts."""

import csv
import io
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cleanset.dataset.ilsvrc import class_indices, wnids
from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text, write_text
from cleanset.images.boxes import box_of, parse_box
from cleanset.parsing import parse_csv, parse_json, read_yaml
from cleanset.review.audit import (
    AuditPlan,
    AuditResult,
    GoldCount,
    Kind,
    SetImage,
    audit_result,
    calibrations,
    draw_order,
    draws_for,
)
from cleanset.review.gold import GoldAnswer, Key, gold_answers, read_gold_key, without_golds
from cleanset.review.store import AUDIT, BOARD, Votes, check_reviews, read_reviews, read_votes, review_file
from cleanset.validation import Role, Section, first_problem, shown

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("wnid", "image_id", "left", "top", "right", "bottom")
"""Columns of the order of drawing; a whole image has no box."""


class _Plan(Section):
    """The plan as in the file; the images are beside it."""

    model: Role
    kind: Kind
    drawn: int
    seed: str


def plan_file(reviews: Path, role: str) -> Path:
    """The plan of the audit of a model's set."""
    return reviews / AUDIT / f"{role}.yaml"


def order_file(reviews: Path, role: str) -> Path:
    """The images of the set, in the order of drawing."""
    return reviews / AUDIT / f"{role}.csv"


def verdicts_folder(reviews: Path, role: str) -> Path:
    """The folder of the auditors' folders."""
    return reviews / AUDIT / role


def read_plan(reviews: Path, role: str) -> AuditPlan | None:
    """The plan of an audit; None if there is no audit. Raises CleansetError for a file that is not as written."""
    path, listed = plan_file(reviews, role), order_file(reviews, role)
    if not is_there(path):
        return None
    remedy = "restore it, or remove reviews/audit and draw anew"
    try:
        plan = _Plan.model_validate(read_yaml(path, remedy))
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}") from None
    images = tuple(
        _image(row, f"{listed}, line {number}")
        for number, row in parse_csv(read_text(listed, remedy), COLUMNS, str(listed))
    )
    if plan.model != role or not 1 <= plan.drawn <= len(images) or draw_order(images, plan.seed) != images:
        raise CleansetError(
            f"{path}: {shown(plan.drawn)} of {len(images)} images of {plan.model}, not in the order of seed "
            f"{shown(plan.seed)}; expected the files as they were drawn: {remedy}"
        )
    return AuditPlan(plan.model, plan.kind, plan.seed, plan.drawn, images)


def _image(row: Mapping[str, str], where: str) -> SetImage:
    edges = [row[name] for name in COLUMNS[2:]]
    try:
        box = parse_box([int(edge) for edge in edges]) if any(edges) else None
        return SetImage(class_indices()[row["wnid"]], row["image_id"], box)
    except (KeyError, ValueError):
        raise CleansetError(
            f"{where}: {shown(','.join(row.values()))}; expected a wnid, an image id, and a box or nothing"
        ) from None


def write_plan(reviews: Path, plan: AuditPlan) -> None:
    """Write the plan, the order of drawing first: without the plan it counts for nothing."""
    verdicts_folder(reviews, plan.model).mkdir(parents=True, exist_ok=True)
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([wnids()[each.class_index], each.image_id, *(each.crop or [""] * 4)] for each in plan.images)
    write_text(order_file(reviews, plan.model), rows.getvalue())
    about = f"model: {plan.model}\nkind: {plan.kind}\ndrawn: {plan.drawn}\nseed: {json.dumps(plan.seed)}\n"
    write_text(plan_file(reviews, plan.model), about)


def audited_roles(reviews: Path, roles: Collection[str]) -> list[str]:
    """The models whose sets are audited, in the order of params.yaml."""
    return [role for role in roles if is_there(plan_file(reviews, role))]


def read_audit_votes(reviews: Path, role: str) -> Votes:
    """The auditors' verdicts on a set, answers to gold items among them."""
    folder = verdicts_folder(reviews, role)
    return read_votes(folder) if is_there(folder) else {}


def draws_of_auditor(reviews: Path, plan: AuditPlan, auditor: str) -> list[SetImage]:
    """The draws that one auditor looks at. Raises CleansetError for an invalid name, the board, and without a draw."""
    review_file(reviews, auditor, wnids()[0])
    if auditor == BOARD:
        raise CleansetError(f"audit of {plan.model}: {BOARD} decides on reviews; expected the name of an auditor")
    draws = draws_for(auditor, plan, reviewers_of(read_reviews(reviews)))
    if not draws:
        raise CleansetError(
            f"audit of {plan.model}: {auditor} has reviewed every image that is drawn; expected somebody who has not"
        )
    return draws


def set_images(selection: "pd.DataFrame") -> list[SetImage]:
    """The images of a set that are delivered, from table SELECTION: all but those whose box is not known."""
    delivered = selection[~selection["box_unknown"].astype(bool)]
    columns = (delivered[name].tolist() for name in ("class_index", "image_id", "crop"))
    return [SetImage(int(each), name, box_of(crop)) for each, name, crop in zip(*columns, strict=True)]


def reviewers_of(votes: Votes) -> dict[tuple[int, str], frozenset[str]]:
    """Who has reviewed each image, whatever the verdict rests on."""
    return {key: frozenset(by_reviewer) for key, by_reviewer in votes.items()}


def all_gold_answers(reviews: Path, roles: Collection[str]) -> list[GoldAnswer]:
    """The answers to gold items that reviewers gave while reviewing and while auditing."""
    golds = read_gold_key(reviews)
    if not golds:
        return []
    sources = [read_votes(reviews), *(read_audit_votes(reviews, role) for role in roles)]
    return [answer for votes in sources for answer in gold_answers(votes, golds)]


def judged_elsewhere(reviews: Path, reviewer: str, answered: Collection[Key] | None) -> set[Key]:
    """The images that somebody has judged in other places than the page shows, gold items among them.

    `answered`: the gold items answered among the reviews, where the page shows these; None where it shows an audit.
    """
    folders = sorted(path for path in (reviews / AUDIT).glob("*") if path.is_dir())
    sources = [read_votes(folder) for folder in folders] + ([read_votes(reviews)] if answered is None else [])
    return {key for votes in sources for key, by_name in votes.items() if reviewer in by_name}.difference(
        answered or ()
    )


def read_audit(
    reviews: Path, role: str, roles: Collection[str], votes: Votes, index: "pd.DataFrame", selection: "pd.DataFrame"
) -> AuditResult | None:
    """The result of the audit of a model's set; None without one.

    `votes`: those that decide; `roles`: all models, whose audits may have gold items, too. Raises CleansetError for
    a verdict on other bytes than the index has.
    """
    plan = read_plan(reviews, role)
    if plan is None:
        return None
    of_audit = without_golds(read_audit_votes(reviews, role), read_gold_key(reviews))
    # the plan has the ids of this edition's own images, and no auditor draws a box in a source image
    check_reviews(_without_boxes(of_audit), index, official_images=True)
    golds = {
        each.reviewer: GoldCount(each.sensitivity.correct, each.sensitivity.golds)
        for each in calibrations(all_gold_answers(reviews, roles))
    }
    return audit_result(plan, of_audit, reviewers_of(votes), golds, set_images(selection))


def _without_boxes(votes: Votes) -> Votes:
    """The votes with their boxes unknown: they are in pixels of the delivered image."""
    return {
        key: {
            name: replace(vote, review=vote.review.model_copy(update={"crop": vote.review.crop and "unknown"}))
            for name, vote in by_reviewer.items()
        }
        for key, by_reviewer in votes.items()
    }


def audit_json(result: AuditResult | None) -> str:
    """An audit's result as JSON, null without one: the table data/audit/<role>.json."""
    return json.dumps(None if result is None else asdict(result), indent=2) + "\n"


def read_audit_json(path: Path) -> AuditResult | None:
    """The result in data/audit/<role>.json. Raises CleansetError for anything else."""
    content = parse_json(read_text(path, "run dvc repro"), str(path), "what stage review_apply writes: run dvc repro")
    if content is None:
        return None
    try:
        return AuditResult(**{**content, "auditors": tuple(content["auditors"])})
    except (KeyError, TypeError):
        raise CleansetError(
            f"{path}: {shown(content)}; expected what stage review_apply writes: run dvc repro"
        ) from None
