"""`cleanset review --calibration`: how each reviewer judges gold items."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.audit_files import all_gold_answers
from cleanset.review.calibration import ACCEPTABLE_MISSES, ALARM, MANY_MISSES, Calibration, Share, calibrations


def run(edition: Edition) -> list[Calibration]:
    """The calibration of each reviewer, from their answers in reviews and audits. Raises CleansetError without any."""
    params = read_params(edition.folder)
    found = calibrations(all_gold_answers(edition.reviews, list(params.models)))
    if not found:
        raise CleansetError(
            f"{edition.reviews}: no answer to a gold item yet; expected some: cleanset review gold makes items, and "
            "review.gold in params.yaml mixes them in"
        )
    return found


def as_json(found: Sequence[Calibration]) -> str:
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


def _share_json(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return asdict(share) | {"share": share.share, "low": low, "high": high}


def as_table(found: Sequence[Calibration]) -> Group:
    """A table for the terminal: a line for each reviewer and reason."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("reviewer", no_wrap=True)
    table.add_column("gold items", no_wrap=True)
    for heading in ("correct", "of", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    for each in found:
        table.add_row(each.reviewer, "flawed: sensitivity", *_cells(each.sensitivity))
        for reason, share in each.by_reason.items():
            table.add_row("", f"  {reason.replace('_', ' ')}", *_cells(share))
        table.add_row("", "clean: specificity", *_cells(each.specificity))
    return Group(table, *map(_finding, found), "", _NOTE)


def _finding(found: Calibration) -> str:
    if found.finding == "not known yet":
        return f"{found.reviewer}: too few gold items for a finding"
    evidence = found.against if found.finding == "misses many" else found.in_favour
    return f"{found.reviewer}: {found.finding} (evidence {min(evidence, 1e6):,.0f})"


def _cells(share: Share) -> tuple[str, str, str, str]:
    low, high = share.interval
    known = "–" if share.share is None else f"{100 * share.share:.0f} %"
    interval = "–" if share.share is None else f"{100 * low:.0f} to {100 * high:.0f} %"
    return str(share.correct), str(share.golds), known, interval


_NOTE = (
    f"Misses many: the answers are {ALARM:.0f} times likelier of somebody who misses {100 * MANY_MISSES:.0f} % than of "
    f"one who misses {100 * ACCEPTABLE_MISSES:.0f} %; careful: the reverse. Either is wrong in 1 of 100 cases at most, "
    "however often one looks."
)
