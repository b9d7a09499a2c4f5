"""A plan as a table for the terminal, with its sums below, and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.measure.table import MODEL, NUMBER, SHORT
from cleanset.planning.work import (
    HOUR,
    KNOWN_GPU,
    Machine,
    Plan,
    PlannedWork,
    Work,
    duration_on,
    duration_on_gpus,
)

UNITS = (("M", 10**6), ("G", 10**9), ("T", 10**12))
"""Units with their sizes, as in TIMES, the smallest first."""
DAY = 24 * HOUR
MANY_HOURS = 48
"""From so many hours on days are said, too."""
MANY_DAYS = 100
"""More are shown as whole ones."""
TIMES = (("s", 1), ("min", 60), ("h", HOUR), ("d", DAY))
MODEL_WIDTH = 17
"""Characters of corruption_robust."""
AT_MOST = "≤"
"""Stands before a number that is an upper bound."""


def duration(seconds: float) -> str:
    """A time of three digits, in its unit: 2.31 d, 3.14 h, 2.45 min, 0.44 s."""
    return _in_unit(seconds, TIMES) if seconds >= 1 else f"{seconds:.2g} s"


def hours_text(hours: float) -> str:
    """A time in hours, as a budget is: days beside many, another unit for few."""
    seconds = hours * HOUR
    if hours < 1:
        return duration(seconds)
    if hours < MANY_HOURS:
        text = f"{hours:.3g}"
        return f"{text} hour{'' if text == '1' else 's'}"
    days = seconds / DAY
    return f"{days:,.0f} days ({hours:,.0f} hours)" if days > MANY_DAYS else f"{days:.3g} days ({hours:,.0f} hours)"


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
    shown = f"{value / size:,.0f}" if value / size >= 999.5 else f"{value / size:.3g}"
    return f"{shown} {unit}"


def _images(work: Work) -> str:
    return number(work.left) if not work.finished else f"{number(work.left)} of {number(work.images)}"


def _passes(work: Work, count: int) -> str:
    if not count:
        return "–"
    return f"{AT_MOST} {number(count)}" if work.bound == "at most" else number(count)


def _time(planned: PlannedWork, machine: Machine) -> str:
    if planned.cost is None:
        return "unknown"
    bound = f"{AT_MOST} " if planned.work.bound == "at most" else ""
    return bound + duration(duration_on(machine, planned))


def _is_shown(planned: PlannedWork) -> bool:
    return planned.work.state == "needed" and bool(planned.work.images or planned.cost is None)


def plan_text(plan: Plan, gpus: int | None) -> RenderableType:
    """The needed computations, a row each; below them what else is needed, what is finished, the sums and the notes.

    `gpus`: a line for that number of GPUs; None: none.
    """
    shown = list(filter(_is_shown, plan.works))
    parts: list[RenderableType] = []
    if shown:
        parts.append(_table(shown, plan.machine))
    # a line each, as wide as it is: people search in them
    parts += [Text(line) for line in lines(plan, gpus)]
    return Group(*parts)


def _table(shown: Sequence[PlannedWork], machine: Machine) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("computation", **SHORT)
    table.add_column("model", **{**MODEL, "min_width": MODEL_WIDTH})
    for title in ("images\nleft", "passes\nforward", "passes\nbackward", "time\nhere"):
        table.add_column(title, **NUMBER)
    for planned in shown:
        work = planned.work
        table.add_row(
            work.name,
            work.model,
            _images(work),
            _passes(work, work.passes.forward),
            _passes(work, work.passes.backward),
            _time(planned, machine),
        )
    return table


def _gpus_text(plan: Plan, gpus: int) -> str:
    kind = plan.machine.device if plan.machine.is_separate else KNOWN_GPU
    return f"{gpus} {kind}"


def lines(plan: Plan, gpus: int | None) -> list[str]:
    """The lines below the table: further stages, finished ones, the sums, the notes."""
    further = [each for each in plan.needed if not _is_shown(each)]
    finished = [each for each in plan.works if each.work.state == "finished"]
    found = []
    if further:
        seconds = sum(duration_on(plan.machine, each) for each in further)
        names = ", ".join(each.work.name for each in further)
        found.append(f"besides, without a network: {names} ({duration(seconds)})")
    if finished:
        found.append(f"done already: {_names(finished)}")
    if plan.needed:
        is_bound = any(each.work.bound == "at most" for each in plan.needed)
        bound = "at most " if is_bound else ""
        found.append(f"all: {'; '.join(_sums(plan, bound))}")
        others = ", and what was not measured" if plan.unmeasured else ""
        found.append(f"here, on {_machine(plan)}: {bound}{hours_text(plan.hours)}{others}")
        if gpus is not None:
            hours = plan.hours_on(gpus)
            found.append(f"on {_gpus_text(plan, gpus)}, with {_cores(plan)} as here: {_on_gpus(plan, hours, bound)}")
    reasons = dict.fromkeys(each.remark for each in plan.unmeasured)
    found += [f"not measured: {reason}" for reason in reasons]
    return [*found, *plan.notes]


def _sums(plan: Plan, bound: str) -> list[str]:
    """The passes and the bytes, without what is none."""
    passes = plan.passes
    backward = f" and {number(passes.backward)} backward" if passes.backward else ""
    forward = [f"{bound}{number(passes.forward)} passes forward{backward}"] if passes.forward else []
    written = f", {size_text(plan.bytes_written)} written" if plan.bytes_written else ""
    return [*forward, f"{size_text(plan.bytes_read)} read{written}"]


def _on_gpus(plan: Plan, hours: float | None, bound: str) -> str:
    if hours is None:
        return "unknown"
    if plan.machine.is_separate:
        return f"{bound}{hours_text(hours)}"
    # derived from operations: the rate of full batches, which small groups do not reach
    return f"{hours_text(hours)} or more, by full batches"


def _machine(plan: Plan) -> str:
    machine = plan.machine
    device = f"{machine.devices} × {machine.device} and " if machine.is_separate else ""
    return f"{device}{_cores(plan, 'idle ')}"


def _cores(plan: Plan, adjective: str = "") -> str:
    cores = plan.machine.cores
    return f"{cores} {adjective}core{'s' if cores > 1 else ''}"


def _names(finished: Sequence[PlannedWork]) -> str:
    """Each computation once, with the number of its models."""
    counts = dict[str, int]()
    for each in finished:
        counts[each.work.name] = counts.get(each.work.name, 0) + 1
    return ", ".join(name if count == 1 else f"{name} ({count} models)" for name, count in counts.items())


def plan_json(plan: Plan, gpus: int | None) -> str:
    """The plan as JSON: each computation with its work, its cost and its seconds, and the sums."""
    works = [
        {
            **asdict(each.work),
            "left": each.work.left,
            "cost": None if each.cost is None else asdict(each.cost),
            "remark": each.remark,
            "seconds": None if each.cost is None else duration_on(plan.machine, each),
            **({} if gpus is None else {"seconds_on_gpus": duration_on_gpus(plan.machine, each, gpus)}),
        }
        for each in plan.works
    ]
    content = {
        "plan": plan.name,
        "machine": asdict(plan.machine),
        "works": works,
        "passes": asdict(plan.passes),
        "bytes_read": plan.bytes_read,
        "bytes_written": plan.bytes_written,
        "hours": plan.hours,
        "processor_hours": plan.processor_hours,
        "unmeasured": len(plan.unmeasured),
        **({} if gpus is None else {"gpus": gpus, "hours_on_gpus": plan.hours_on(gpus)}),
        "notes": list(plan.notes),
    }
    return json.dumps(content, indent=2)
