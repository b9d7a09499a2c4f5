"""What `cleanset agreement` shows: how far the reviewers of an edition agree, and where they differ."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from cleanset.class_names import class_names
from cleanset.edition import Edition
from cleanset.ilsvrc import wnids
from cleanset.params import read_params
from cleanset.review.agreement import (
    Agreement,
    Difference,
    OfVerdict,
    differences,
    of_verdicts,
    overall,
    pairs,
    verdict_counts,
    without_board,
)
from cleanset.review.consensus import Decision
from cleanset.review.folder import checked_reviews, decisions
from cleanset.review.verdicts import Review
from cleanset.tables import INDEX, read_table


@dataclass(frozen=True, slots=True)
class Report:
    """`reviewers`: how many pictures each has judged, the board not among them. `differences`: with the decision."""

    reviewers: dict[str, int]
    overall: Agreement
    verdicts: dict[str, OfVerdict]
    pairs: dict[tuple[str, str], Agreement]
    differences: list[tuple[Difference, Decision]]


def run(edition: Edition) -> Report:
    """Read and check the reviews of an edition, and measure how far they agree."""
    params = read_params(edition.folder)
    votes = checked_reviews(edition.reviews, read_table(edition.index, INDEX))
    decided = decisions(votes, params.review.policy, params.review.min_reviewers)
    said = list(without_board(votes).values())
    counts = verdict_counts(said)
    names = sorted({name for by_reviewer in said for name in by_reviewer})
    return Report(
        {name: sum(name in by_reviewer for by_reviewer in said) for name in names},
        overall(counts),
        of_verdicts(counts),
        pairs(said),
        [(found, decided[found.class_index, found.image_id]) for found in differences(votes)],
    )


def as_json(report: Report) -> str:
    """The whole report; shares and kappas as fractions, null where nothing can be said."""
    content = {
        "reviewers": report.reviewers,
        **asdict(report.overall),
        "verdicts": {verdict: asdict(found) for verdict, found in report.verdicts.items()},
        "pairs": [{"a": a, "b": b, **asdict(found)} for (a, b), found in report.pairs.items()],
        "differences": [
            {
                "wnid": wnids()[found.class_index],
                "image_id": found.image_id,
                "votes": {name: _review_json(review) for name, review in found.said.items()},
                "board": _review_json(found.board) if found.board else None,
                "decision": asdict(decision),
            }
            for found, decision in report.differences
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _review_json(review: Review) -> dict[str, Any]:
    return review.model_dump(include={"verdict", "reason", "crop", "note"}, exclude_none=True)


def as_table(report: Report) -> Group:
    """The same for people."""
    seen = ", ".join(f"{name} {count}" for name, count in report.reviewers.items()) or "nobody yet"
    lines: list[Any] = [f"Pictures reviewed by each: {seen}. By two or more: {report.overall.pictures}."]
    if report.overall.pictures:
        lines += ["", _numbers(report), _pairs(report)]
        lines += ["Kappa is Fleiss'; – where only one verdict was ever given, so that nothing can be said."]
    if report.differences:
        lines += ["", _differences(report)]
    elif report.overall.pictures:
        lines += ["They differ on no picture."]
    return Group(*lines)


def _numbers(report: Report) -> Table:
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


def _pairs(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("reviewers")
    for heading in ("pictures", "agreement", "kappa"):
        table.add_column(heading, justify="right")
    for (a, b), found in report.pairs.items():
        table.add_row(f"{a}, {b}", str(found.pictures), _percent(found.agreement), _kappa(found.kappa))
    return table


def _differences(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("class", ratio=1, max_width=24)
    table.add_column("differ on", no_wrap=True)
    table.add_column("said")
    table.add_column("decision")
    for found, decision in report.differences:
        wnid = wnids()[found.class_index]
        said = "\n".join(f"{name}: {_said(review)}" for name, review in found.said.items())
        outcome = f"board: {_said(found.board)}" if found.board else _decided(decision)
        table.add_row(f"{wnid}\n{class_names()[found.class_index].name}", found.image_id, said, outcome)
    return table


def _said(review: Review) -> str:
    return " ".join([review.verdict, *(_plain(review.reason)), *([str(review.crop)] if review.crop else [])])


def _decided(decision: Decision) -> str:
    return " ".join([decision.verdict.replace("undecided", "open:"), *_plain(decision.reason)])


def _plain(reason: str | None) -> list[str]:
    return [reason.replace("_", " ")] if reason else []


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _kappa(kappa: float | None) -> str:
    return "–" if kappa is None else f"{kappa:.3f}"
