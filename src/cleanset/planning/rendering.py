"""A plan as a table for the terminal, with its sums below, and as JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.evaluation.table import MODEL, NUMBER, SHORT
from cleanset.planning.work import HOUR, Plan, Work
from cleanset.statistics.formats import decimal

UNITS = (("M", 10**6), ("G", 10**9), ("T", 10**12))
"""Units with their sizes, the smallest first."""
TIMES = (("s", 1), ("min", 60), ("h", HOUR), ("d", 24 * HOUR))
AT_MOST = "≤"
"""Stands before a number that is an upper bound."""
NOT_KNOWN = "hours: not known"
MEASURED = "--measure measures them on a sample of the images"


def duration(seconds: float) -> str:
    """A time of three digits, in its unit: 2.31 d, 3.14 h, 2.45 min, 0.44 s."""
    return _in_unit(seconds, TIMES) if seconds >= 1 else f"{seconds:.2g} s"


def number(value: int) -> str:
    """A number of at most six characters or so: 13,000, or 1.95 M."""
    return _in_unit(value, UNITS) if value >= UNITS[0][1] else f"{value:,}"


def size_text(count: int) -> str:
    """A number of bytes: 320 kB, 1.95 GB."""
    return f"{_in_unit(count, (('', 1), ('k', 1000), *UNITS))}B"


def _in_unit(value: float, units: Sequence[tuple[str, int]]) -> str:
    """A number of three digits, or a whole one of more, in the largest unit that it reaches once it is rounded."""
    unit, size = units[0]
    for larger, size_of_larger in units[1:]:
        if float(f"{value / size:.3g}") * size < size_of_larger:
            break
        unit, size = larger, size_of_larger
        value = max(value, size)
    # .3g would give 1e+03
    shown = decimal(value / size, 0, grouped=True) if value / size >= 999.5 else f"{value / size:.3g}"
    return f"{shown} {unit}"


def plan_text(plan: Plan) -> RenderableType:
    """The needed computations, a row each; below them what else is needed, what is finished, the sums and the notes."""
    shown = [each for each in plan.needed if each.images]
    # a line each, never wrapped: people search in them
    below = map(Text, _lines(plan))
    return Group(*([_table(shown)] if shown else []), *below)


def _table(works: Sequence[Work]) -> Table:
    columns = {
        "images\nleft": [_images(each) for each in works],
        "changes": [number(each.changes) if each.changes else "" for each in works],
        "passes\nforward": [_passes(each, each.passes.forward) for each in works],
        "passes\nbackward": [_passes(each, each.passes.backward) for each in works],
        "time\nhere": ["" if each.seconds is None else duration(each.seconds) for each in works],
    }
    # what no row has is left out
    columns = {title: texts for title, texts in columns.items() if any(texts)}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("computation", **SHORT)
    table.add_column("model", **MODEL)
    for title in columns:
        table.add_column(title, **NUMBER)
    for work, *texts in zip(works, *columns.values(), strict=True):
        table.add_row(work.name, work.model, *texts)
    return table


def _images(work: Work) -> str:
    return f"{number(work.left)} of {number(work.images)}" if work.part.images else number(work.left)


def _passes(work: Work, count: int) -> str:
    return f"{AT_MOST * work.is_bound} {number(count)}".strip() if count else ""


def _lines(plan: Plan) -> list[str]:
    """The lines below the table: further stages, finished ones, the sums, the hours, the notes."""
    further = [each for each in plan.needed if not (each.images or each.remark)]
    finished = [each for each in plan.works if each.state == "finished"]
    found = []
    if further:
        found.append(f"besides, without a network: {_names(further)}")
    if finished:
        found.append(f"done already: {_names(finished)}")
    if any(each.images for each in plan.needed):
        found += [f"all: {'; '.join(_sums(plan))}", _hours(plan)]
    for remark in dict.fromkeys(each.remark for each in plan.works if each.remark):
        found.append(f"not known: {_names([each for each in plan.works if each.remark == remark])} ({remark})")
    return [*found, *plan.notes]


def _names(works: Sequence[Work]) -> str:
    """Each computation once, with the number of its models."""
    counts = Counter(each.name for each in works)
    return ", ".join(name if count == 1 else f"{name} ({count} models)" for name, count in counts.items())


def _sums(plan: Plan) -> list[str]:
    """The passes and the bytes that are not zero."""
    passes = plan.passes
    bound = "at most " if any(each.is_bound for each in plan.needed) else ""
    backward = f" and {number(passes.backward)} backward" if passes.backward else ""
    forward = [f"{bound}{number(passes.forward)} passes forward{backward}"] if passes.forward else []
    written = f", {size_text(plan.bytes_written)} written" if plan.bytes_written else ""
    return [*forward, f"{size_text(plan.bytes_read)} read{written}"]


def _hours(plan: Plan) -> str:
    if plan.hours is None:
        # a measurement that failed is not proposed again: its remark says why
        return f"{NOT_KNOWN}; {MEASURED}" if any(not each.remark for each in plan.not_measured) else NOT_KNOWN
    unknown = [each for each in plan.needed if each.seconds is None]
    besides = f", without {_names(unknown)}" if unknown else ""
    how = "a sample of the images" if any(each.costs for each in plan.needed) else "what is finished"
    return f"here, at the speed of {how}: {duration(plan.hours * HOUR)}{besides}"


def plan_json(plan: Plan) -> str:
    """The plan as JSON: each computation with its work, and the sums; times in seconds, null if not known."""
    works = [
        {
            "name": each.name,
            "model": each.model,
            "stage": each.stage,
            "state": each.state,
            "images": each.images,
            "changes": each.changes,
            "finished": each.part.images,
            "left": each.left,
            "passes": asdict(each.passes),
            "is_bound": each.is_bound,
            "bytes_read": each.bytes_read,
            "bytes_written": each.bytes_written,
            "seconds": each.seconds,
            "remark": each.remark,
        }
        for each in plan.works
    ]
    content = {
        "plan": plan.name,
        "works": works,
        "passes": asdict(plan.passes),
        "bytes_read": plan.bytes_read,
        "bytes_written": plan.bytes_written,
        "hours": plan.hours,
        "notes": list(plan.notes),
    }
    return json.dumps(content, indent=2)
