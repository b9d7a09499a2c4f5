"""`cleanset agreement`: how far reviewers agree, and where they differ, as tables or JSON."""

import json
from dataclasses import asdict, dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from cleanset.classes import ClassTable
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.images.boxes import UNKNOWN_BOX, known_box
from cleanset.plumbing.waiting import announced
from cleanset.review import agreement
from cleanset.review.decided import checked_votes, decisions_under
from cleanset.review.file_format import review_fields
from cleanset.review.terminal import grid
from cleanset.review.verdicts import Review
from cleanset.selection.fill import UNREVIEWED, Decision
from cleanset.statistics.formats import percent
from cleanset.statistics.raters import MIN_RATED, coefficient_text
from cleanset.tables import INDEX, read_table


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """The agreement of an edition's reviewers."""

    classes: ClassTable
    reviewers: dict[str, int]
    """Number of images that each reviewer has reviewed, by name, without the board."""

    overall: agreement.Agreement
    verdicts: dict[str, agreement.VerdictAgreement]
    pairs: dict[tuple[str, str], agreement.Agreement]
    differences: list[tuple[agreement.Difference, Decision]]
    """The images on which reviewers differ, with the decision on each."""


@announced("measuring the agreement of reviewers")
def run_agreement(edition: Edition) -> AgreementReport:
    """Read and check the reviews of an edition, and measure their agreement."""
    params = read_params(edition.folder)
    classes = edition.read_classes()
    votes = checked_votes(edition, params, read_table(edition.index, INDEX, classes), classes)
    decided = decisions_under(params.review, votes)
    reviews = list(agreement.without_board(votes).values())
    counts = agreement.verdict_counts(reviews)
    names = sorted({name for by_reviewer in reviews for name in by_reviewer})
    return AgreementReport(
        classes=classes,
        reviewers={name: sum(name in by_reviewer for by_reviewer in reviews) for name in names},
        overall=agreement.overall(counts),
        verdicts=agreement.verdict_agreements(counts),
        pairs=agreement.pairs(reviews),
        differences=[
            (found, decided.get((found.class_index, found.image_id), UNREVIEWED))
            for found in agreement.differences(votes)
        ],
    )


def agreement_as_json(report: AgreementReport) -> str:
    """The whole report as JSON; agreement as a fraction, null where undefined."""
    content = {
        "reviewers": report.reviewers,
        **asdict(report.overall),
        "verdicts": {verdict: asdict(found) for verdict, found in report.verdicts.items()},
        "pairs": [{"a": a, "b": b, **asdict(found)} for (a, b), found in report.pairs.items()],
        "differences": [
            {
                report.classes.key_column: report.classes.keys[found.class_index],
                "image_id": found.image_id,
                "votes": {name: _review_json(review) for name, review in found.reviews.items()},
                "board": _review_json(found.board) if found.board else None,
                "decision": _decision_json(decision),
            }
            for found, decision in report.differences
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _review_json(review: Review) -> dict[str, object]:
    fields = review_fields(review)
    return {name: fields[name] for name in ("verdict", "reason", "crop", "note") if fields[name] is not None}


def _decision_json(decision: Decision) -> dict[str, object]:
    return {
        "verdict": decision.verdict,
        "reason": decision.reason,
        "crop": known_box(decision.box),
        "box_unknown": decision.box is UNKNOWN_BOX,
    }


def agreement_table(report: AgreementReport) -> Group:
    """Tables for the terminal."""
    seen = ", ".join(f"{name} {count}" for name, count in report.reviewers.items()) or "nobody yet"
    lines: list[RenderableType] = [f"Images reviewed by each: {seen}. By two or more: {report.overall.images}."]
    if report.overall.images:
        lines += ["", _numbers(report), _pairs(report)]
        lines += [
            "Kappa is Fleiss', AC1 Gwet's, with 95 % intervals by bootstrap over images; – from fewer than "
            f"{MIN_RATED} images, and kappa where only one verdict was ever given."
        ]
    if report.differences:
        lines += ["", _differences(report)]
    elif report.overall.images:
        lines += ["They differ on no image."]
    return Group(*lines)


def _numbers(report: AgreementReport) -> Table:
    given = sum(found.given for found in report.verdicts.values())
    return grid(
        ("verdict", "given", "agreement", "kappa", "AC1"),
        [(name, found.given, *_agreed(found)) for name, found in report.verdicts.items()],
        ("all", given, *_agreed(report.overall)),
    )


def _pairs(report: AgreementReport) -> Table:
    return grid(
        ("reviewers", "images", "agreement", "kappa", "AC1"),
        [(f"{a}, {b}", found.images, *_agreed(found)) for (a, b), found in report.pairs.items()],
    )


def _agreed(found: agreement.Agreement | agreement.VerdictAgreement) -> tuple[str, str, str]:
    """Agreement, kappa and AC1, which is of all verdicts together alone."""
    of_all = found if isinstance(found, agreement.Agreement) else None
    return (
        percent(found.agreement, 1),
        coefficient_text(found.kappa, found.kappa_interval),
        coefficient_text(of_all.ac1, of_all.ac1_interval) if of_all else "",
    )


def _differences(report: AgreementReport) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("class", ratio=1, max_width=24)
    table.add_column("differ on", no_wrap=True)
    table.add_column("verdicts")
    table.add_column("decision")
    for found, decision in report.differences:
        name = report.classes.names[found.class_index]
        verdicts = "\n".join(f"{name}: {_described(review)}" for name, review in found.reviews.items())
        outcome = f"board: {_described(found.board)}" if found.board else _decided(decision, found)
        table.add_row(f"{name.key}\n{name.name}", found.image_id, verdicts, outcome)
    return table


def _described(review: Review) -> str:
    crop = review_fields(review)["crop"]
    return " ".join([review.verdict.kind, *_plain(review.reason), *([str(crop)] if crop else [])])


def _decided(decision: Decision, found: agreement.Difference) -> str:
    words = [decision.verdict.replace("undecided", "open:"), *_plain(decision.reason)]
    box = known_box(decision.box)
    if box is not None:
        words.append(str(list(box)))
        if any(known_box(review.box) not in (None, box) for review in found.reviews.values()):
            words.append("(the smallest of boxes within review.box_tolerance)")
    return " ".join(words)


def _plain(reason: str | None) -> list[str]:
    return [reason.replace("_", " ")] if reason else []
