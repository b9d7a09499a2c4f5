"""`cleanset review calibration`: how each reviewer judges gold items, as a table or JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.audit_files import all_gold_answers
from cleanset.review.calibration import ACCEPTABLE_MISSES, ALARM, MANY_MISSES, Calibration, GoldScore, calibrations
from cleanset.review.terminal import grid
from cleanset.statistics.formats import NOTHING, decimal, percent


def run_calibration(edition: Edition) -> list[Calibration]:
    """The calibration of each reviewer, from their answers in reviews and audits. Raises CleansetError without any."""
    params = read_params(edition.folder)
    found = calibrations(all_gold_answers(edition.reviews, list(params.models), edition.read_classes()))
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


def _share_json(share: GoldScore) -> dict[str, object]:
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
    table = grid(headings, rows, left=2)
    parts: list[RenderableType] = [table, *map(_finding, found), "", _NOTE]
    return Group(*parts)


def _finding(found: Calibration) -> str:
    if found.finding == "not known yet":
        return f"{found.reviewer}: too few gold items for a finding"
    evidence = found.against if found.finding == "misses many" else found.in_favour
    return f"{found.reviewer}: {found.finding} (evidence {decimal(min(evidence, 1e6), 0, grouped=True)})"


def _cells(share: GoldScore) -> tuple[str, str, str, str]:
    if share.share is None:
        return str(share.correct), str(share.golds), NOTHING, NOTHING
    low, high = share.interval
    return (
        str(share.correct),
        str(share.golds),
        percent(share.share, 0),
        f"{decimal(low, 0, 100)} to {percent(high, 0)}",
    )


_NOTE = (
    f"Misses many: the answers are {decimal(ALARM, 0)} times likelier of somebody who misses {percent(MANY_MISSES, 0)} "
    f"than of one who misses {percent(ACCEPTABLE_MISSES, 0)}; careful: the reverse. Either is wrong in 1 of 100 "
    "cases at most, however often one looks."
)
