"""The report of `cleanset agreement`: how far the reviewers of an edition agree, and where they differ."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from cleanset.dataset.class_names import class_names
from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.review.agreement import (
    Agreement,
    Difference,
    VerdictAgreement,
    differences,
    overall,
    pairs,
    verdict_agreements,
    verdict_counts,
    without_board,
)
from cleanset.review.decisions import decisions_under
from cleanset.review.store import checked_reviews
from cleanset.review.verdicts import Review
from cleanset.selection.decision import UNREVIEWED, Decision
from cleanset.tables import INDEX, read_table


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """`reviewers`: number of images that each has reviewed, without the board. `differences`: with their decisions."""

    reviewers: dict[str, int]
    overall: Agreement
    verdicts: dict[str, VerdictAgreement]
    pairs: dict[tuple[str, str], Agreement]
    differences: list[tuple[Difference, Decision]]


def run(edition: Edition) -> AgreementReport:
    """Read and check the reviews of an edition, and measure their agreement."""
    params = read_params(edition.folder)
    policy = params.review
    official = images_are_official(edition, params.dataset.images)
    votes = checked_reviews(edition.reviews, read_table(edition.index, INDEX), policy.min_crop_pixels, official)
    decided = decisions_under(policy, votes)
    reviews = list(without_board(votes).values())
    counts = verdict_counts(reviews)
    names = sorted({name for by_reviewer in reviews for name in by_reviewer})
    return AgreementReport(
        {name: sum(name in by_reviewer for by_reviewer in reviews) for name in names},
        overall(counts),
        verdict_agreements(counts),
        pairs(reviews),
        [(found, decided.get((found.class_index, found.image_id), UNREVIEWED)) for found in differences(votes)],
    )


def as_json(report: AgreementReport) -> str:
    """The whole report as JSON; agreement as a fraction, null where undefined."""
    content = {
        "reviewers": report.reviewers,
        **asdict(report.overall),
        "verdicts": {verdict: asdict(found) for verdict, found in report.verdicts.items()},
        "pairs": [{"a": a, "b": b, **asdict(found)} for (a, b), found in report.pairs.items()],
        "differences": [
            {
                "wnid": wnids()[found.class_index],
                "image_id": found.image_id,
                "votes": {name: _review_json(review) for name, review in found.reviews.items()},
                "board": _review_json(found.board) if found.board else None,
                "decision": asdict(decision),
            }
            for found, decision in report.differences
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _review_json(review: Review) -> dict[str, Any]:
    return review.model_dump(mode="json", include={"verdict", "reason", "crop", "note"}, exclude_none=True)


def as_table(report: AgreementReport) -> Group:
    """Tables for the terminal."""
    seen = ", ".join(f"{name} {count}" for name, count in report.reviewers.items()) or "nobody yet"
    lines: list[Any] = [f"Images reviewed by each: {seen}. By two or more: {report.overall.images}."]
    if report.overall.images:
        lines += ["", _numbers(report), _pairs(report)]
        lines += ["Kappa is Fleiss'; – where only one verdict was ever given, which leaves it undefined."]
    if report.differences:
        lines += ["", _differences(report)]
    elif report.overall.images:
        lines += ["They differ on no image."]
    return Group(*lines)


def _numbers(report: AgreementReport) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("verdict", "all")
    given = sum(found.given for found in report.verdicts.values())
    for heading, footer in (
        ("given", str(given)),
        ("agreement", _percent(report.overall.agreement)),
        ("kappa", _kappa(report.overall.kappa)),
    ):
        table.add_column(heading, footer, justify="right")
    for verdict, found in report.verdicts.items():
        table.add_row(verdict, str(found.given), _percent(found.agreement), _kappa(found.kappa))
    return table


def _pairs(report: AgreementReport) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("reviewers")
    for heading in ("images", "agreement", "kappa"):
        table.add_column(heading, justify="right")
    for (a, b), found in report.pairs.items():
        table.add_row(f"{a}, {b}", str(found.images), _percent(found.agreement), _kappa(found.kappa))
    return table


def _differences(report: AgreementReport) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("class", ratio=1, max_width=24)
    table.add_column("differ on", no_wrap=True)
    table.add_column("verdicts")
    table.add_column("decision")
    for found, decision in report.differences:
        wnid = wnids()[found.class_index]
        verdicts = "\n".join(f"{name}: {_described(review)}" for name, review in found.reviews.items())
        outcome = f"board: {_described(found.board)}" if found.board else _decided(decision, found)
        table.add_row(f"{wnid}\n{class_names()[found.class_index].name}", found.image_id, verdicts, outcome)
    return table


def _described(review: Review) -> str:
    crop = [str(list(review.box) if review.box else review.crop)] if review.crop else []
    return " ".join([review.verdict, *_plain(review.reason), *crop])


def _decided(decision: Decision, found: Difference) -> str:
    words = [decision.verdict.replace("undecided", "open:"), *_plain(decision.reason)]
    if decision.crop is not None:
        words.append(str(list(decision.crop)))
        if any(review.box not in (None, decision.crop) for review in found.reviews.values()):
            words.append("(the smallest of boxes within review.box_tolerance)")
    return " ".join(words)


def _plain(reason: str | None) -> list[str]:
    return [reason.replace("_", " ")] if reason else []


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _kappa(kappa: float | None) -> str:
    return "–" if kappa is None else f"{kappa:.3f}"
