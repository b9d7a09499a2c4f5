"""The reports of `cleanset agreement`, `cleanset audit` and `cleanset review calibration`.

How far reviewers agree and where they differ; the results of audits, and starting one; how each reviewer judges gold
items.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review import agreement, audit
from cleanset.review.decided import checked_votes, decisions_under
from cleanset.review.gold import ACCEPTABLE_MISSES, ALARM, MANY_MISSES, Calibration, GoldScore, calibrations
from cleanset.review.verdicts import Review
from cleanset.selection.fill import UNREVIEWED, Decision
from cleanset.statistics.finite import Draws, fixed_bound, open_bound
from cleanset.tables import INDEX, REJECTED, SELECTION, read_table


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """`reviewers`: number of images that each has reviewed, without the board. `differences`: with their decisions."""

    classes: ClassTable
    reviewers: dict[str, int]
    overall: agreement.Agreement
    verdicts: dict[str, agreement.VerdictAgreement]
    pairs: dict[tuple[str, str], agreement.Agreement]
    differences: list[tuple[agreement.Difference, Decision]]


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
                "decision": asdict(decision) | {"box_unknown": decision.box_unknown},
            }
            for found, decision in report.differences
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _review_json(review: Review) -> dict[str, Any]:
    return review.model_dump(mode="json", include={"verdict", "reason", "crop", "note"}, exclude_none=True)


def agreement_table(report: AgreementReport) -> Group:
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


def grid(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    footer: Sequence[object] = (),
    left: int = 1,
    no_wrap: bool = False,
) -> Table:
    """A table for the terminal: its first `left` columns are aligned to the left, numbers to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=bool(footer))
    for place, heading in enumerate(headings):
        last = str(footer[place]) if footer else ""
        table.add_column(heading, last, justify="left" if place < left else "right", no_wrap=no_wrap)
    for row in rows:
        table.add_row(*map(str, row))
    return table


def _numbers(report: AgreementReport) -> Table:
    given = sum(found.given for found in report.verdicts.values())
    return grid(
        ("verdict", "given", "agreement", "kappa"),
        [(name, found.given, *_agreed(found)) for name, found in report.verdicts.items()],
        ("all", given, *_agreed(report.overall)),
    )


def _pairs(report: AgreementReport) -> Table:
    return grid(
        ("reviewers", "images", "agreement", "kappa"),
        [(f"{a}, {b}", found.images, *_agreed(found)) for (a, b), found in report.pairs.items()],
    )


def _agreed(found: agreement.Agreement | agreement.VerdictAgreement) -> tuple[str, str]:
    """Agreement and kappa."""
    return (
        "–" if found.agreement is None else f"{100 * found.agreement:.1f} %",
        "–" if found.kappa is None else f"{found.kappa:.3f}",
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
    crop = [str(list(review.box) if review.box else review.crop)] if review.crop else []
    return " ".join([review.verdict, *_plain(review.reason), *crop])


def _decided(decision: Decision, found: agreement.Difference) -> str:
    words = [decision.verdict.replace("undecided", "open:"), *_plain(decision.reason)]
    if decision.crop is not None:
        words.append(str(list(decision.crop)))
        if any(review.box not in (None, decision.crop) for review in found.reviews.values()):
            words.append("(the smallest of boxes within review.box_tolerance)")
    return " ".join(words)


def _plain(reason: str | None) -> list[str]:
    return [reason.replace("_", " ")] if reason else []


def one_role(params: Params, role: str | None) -> str:
    """The model to audit; by default the only one. Raises CleansetError for an unknown or missing name."""
    if role is None and len(params.models) > 1:
        raise CleansetError(f"audit: which model, of {', '.join(params.models)}? Add --model ROLE")
    found = role or next(iter(params.models))
    params.model(found)
    return found


def draw(
    edition: Edition,
    role: str | None,
    drawn: int,
    kind: audit.AuditKind | None,
    seed: str | None,
    auditor: str | None = None,
) -> tuple[audit.AuditPlan, bool]:
    """The plan of an audit, written if it is new or grows, and whether it was.

    `kind` and `seed`: None takes the existing audit's, else fixed and 1. `auditor`: who is to look at the
    draws. Raises CleansetError unless every class of the set is settled, where the existing plan differs, and
    as `draws_of_auditor` does; then nothing is written.
    """
    params = read_params(edition.folder)
    role = one_role(params, role)
    classes = edition.read_classes()
    plan = audit.read_plan(edition.reviews, role, classes)
    if plan is None:
        wanted = audit.new_plan(
            model=role,
            kind=kind or "fixed",
            seed=seed or "1",
            drawn=drawn,
            images=_finished_set(edition, role, classes),
            classes=classes,
        )
    elif kind not in (None, plan.kind):
        raise CleansetError(f"audit of {role}: it was begun as {plan.kind}; that cannot be changed afterwards")
    elif seed not in (None, plan.seed):
        raise CleansetError(f"audit of {role}: it was drawn with seed {plan.seed!r}, not {seed!r}; leave out --seed")
    else:
        wanted = audit.continued(plan, drawn)
    if auditor is not None:
        audit.draws_of_auditor(edition.reviews, wanted, auditor)
    if wanted != plan:
        audit.write_plan(edition.reviews, wanted)
    return wanted, wanted != plan


def _finished_set(edition: Edition, role: str, classes: ClassTable) -> list[audit.SetImage]:
    """The images of a model's set. Raises CleansetError unless every class is settled."""
    rejected = read_table(edition.rejected(role), REJECTED, classes)
    open_classes = int(rejected.loc[rejected["open"], "class_index"].nunique())
    if open_classes:
        raise CleansetError(
            f"audit of {role}: {open_classes} classes of its set still wait for reviews; expected a finished set: "
            "cleanset review status names them; then run dvc repro"
        )
    return audit.set_images(read_table(edition.selection(role), SELECTION, classes))


def outlook(plan: audit.AuditPlan) -> str:
    """A line on the least bound that the draws can give."""
    clean = Draws(len(plan.images), plan.drawn, 0)
    bound = open_bound(clean) if plan.kind == "open" else fixed_bound(clean)
    return (
        f"{plan.model}: {plan.drawn:,} of {len(plan.images):,} images are drawn ({plan.kind}). If all are clean, and "
        f"the auditors miss nothing, at most {audit.percent(bound, len(plan.images))} of the set is flawed, with 95 % "
        "confidence."
    )


def run_audit(edition: Edition, role: str | None = None) -> list[audit.AuditResult]:
    """The results of the audits of an edition, of one model or of all. Raises CleansetError without one."""
    params = read_params(edition.folder)
    roles = audit.audited_roles(edition.reviews, [one_role(params, role)] if role else list(params.models))
    if not roles:
        raise CleansetError(
            f"{edition.reviews / 'audit'}: no audit{f' of {role}' if role else ''}; cleanset review audit "
            "100 --model ROLE draws images of a finished set"
        )
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    votes = checked_votes(edition, params, index, classes)
    results = []
    for each in roles:
        selection = read_table(edition.selection(each), SELECTION, classes)
        result = audit.read_audit(
            edition.reviews,
            each,
            roles=list(params.models),
            votes=votes,
            index=index,
            selection=selection,
            classes=classes,
        )
        assert result is not None
        results.append(result)
    return results


def audit_as_json(results: Sequence[audit.AuditResult]) -> str:
    """By model, the numbers of each audit; `bound` is the one to state, or null."""
    return json.dumps({each.model: asdict(each) | {"bound": each.bound} for each in results}, indent=2)


def as_text(results: Sequence[audit.AuditResult]) -> str:
    """A paragraph for each audit, the bound first."""
    return "\n\n".join(f"{each.model}: " + "\n".join(audit.sentences(each)) for each in results)


def run_calibration(edition: Edition) -> list[Calibration]:
    """The calibration of each reviewer, from their answers in reviews and audits. Raises CleansetError without any."""
    params = read_params(edition.folder)
    found = calibrations(audit.all_gold_answers(edition.reviews, list(params.models), edition.read_classes()))
    if not found:
        raise CleansetError(
            f"{edition.reviews}: no answer to a gold item yet; cleanset review gold makes items, and "
            "review.gold in params.yaml mixes them in"
        )
    return found


def calibration_as_json(found: Sequence[Calibration]) -> str:
    """By reviewer: sensitivity, specificity and sensitivity by reason with their intervals, and the evidence."""
    content = {
        each.reviewer: {
            "sensitivity": _share_json(each.sensitivity),
            "specificity": _share_json(each.specificity),
            "by_reason": {reason: _share_json(share) for reason, share in each.by_reason.items()},
            "evidence_misses_many": each.against,
            "evidence_careful": each.in_favour,
            "finding": each.finding,
        }
        for each in found
    }
    return json.dumps(content, indent=2)


def _share_json(share: GoldScore) -> dict[str, Any]:
    low, high = share.interval
    return asdict(share) | {"share": share.share, "low": low, "high": high}


def calibration_table(found: Sequence[Calibration]) -> Group:
    """A table for the terminal: a line for each reviewer and reason."""
    rows: list[Sequence[str]] = []
    for each in found:
        rows.append((each.reviewer, "flawed: sensitivity", *_cells(each.sensitivity)))
        rows += [("", f"  {reason.replace('_', ' ')}", *_cells(share)) for reason, share in each.by_reason.items()]
        rows.append(("", "clean: specificity", *_cells(each.specificity)))
    headings = ("reviewer", "gold items", "correct", "of", "share", "95 % interval")
    return Group(grid(headings, rows, left=2, no_wrap=True), *map(_finding, found), "", _NOTE)


def _finding(found: Calibration) -> str:
    if found.finding == "not known yet":
        return f"{found.reviewer}: too few gold items for a finding"
    evidence = found.against if found.finding == "misses many" else found.in_favour
    return f"{found.reviewer}: {found.finding} (evidence {min(evidence, 1e6):,.0f})"


def _cells(share: GoldScore) -> tuple[str, str, str, str]:
    if share.share is None:
        return str(share.correct), str(share.golds), "–", "–"
    low, high = share.interval
    return str(share.correct), str(share.golds), f"{100 * share.share:.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %"


_NOTE = (
    f"Misses many: the answers are {ALARM:.0f} times likelier of somebody who misses {100 * MANY_MISSES:.0f} % than of "
    f"one who misses {100 * ACCEPTABLE_MISSES:.0f} %; careful: the reverse. Either is wrong in 1 of 100 cases at most, "
    "however often one looks."
)
