"""The arithmetic of a plan, with numbers that are computed by hand; its measured hours, its table and its JSON."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from cleanset.errors import CleansetError
from cleanset.planning import work as of_work
from cleanset.planning.costs import Costs
from cleanset.planning.rendering import duration, number, plan_json, plan_text, size_text
from cleanset.planning.work import Passes, Plan, Work, check_budget, measured_plan, no_measure
from cleanset.scoring.parts import FinishedPart


def measure() -> None:
    raise AssertionError("nothing is measured")


SPSA = Work(
    name="spsa", model="standard", stage="attacks@spsa-standard", images=1000, part=FinishedPart(images=400),
    of_image=Passes(forward=13_000), besides=Passes(forward=7, backward=3), is_bound=True, bytes_read=60_000_000,
    bytes_written=54_000_000, measure=measure,
)  # fmt: skip
BEGUN = replace(SPSA, part=FinishedPart(images=400, seconds=4_800))
"""12 seconds an image: 600 images take two hours."""
NONE = Work(name="none", model="standard", images=9, state="finished", of_image=Passes(forward=2))
PAGES = Work(name="pages")


def plan(*works: Work) -> Plan:
    return Plan(name="studies/attacks", works=works, notes=["A note."])


def test_passes() -> None:
    assert (Passes(forward=1, backward=2) + Passes(forward=10)) * 3 == Passes(forward=33, backward=6)
    assert SPSA.passes == Passes(forward=600 * 13_000 + 7, backward=3)
    assert plan(SPSA, NONE, SPSA).passes == Passes(forward=2 * (600 * 13_000 + 7), backward=6)


def test_what_is_finished_costs_nothing() -> None:
    assert (NONE.left, NONE.passes, NONE.seconds) == (0, Passes(), 0)
    assert plan(NONE).hours == 0


def test_hours_are_those_of_what_has_begun() -> None:
    assert (SPSA.seconds, BEGUN.seconds) == (None, 7_200)
    assert plan(SPSA, PAGES).hours is None
    assert plan(BEGUN, SPSA, PAGES).hours == 2
    assert plan(BEGUN, SPSA, PAGES, replace(SPSA, measure=no_measure)).not_measured == [SPSA]


def test_the_budget() -> None:
    check_budget(plan(BEGUN, NONE, PAGES), 2)
    check_budget(plan(SPSA), None)
    message = r"^studies/attacks: 2 hours; expected at most 1\.9: run a part of it, or raise the budget$"
    with pytest.raises(CleansetError, match=message):
        check_budget(plan(BEGUN), 1.9)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (SPSA, r"the hours of 1 of 2 computations are not known; expected at most 2 hours: add --measure"),
        (replace(PAGES, remark="no images"), r"its hours are not known \(no images\); expected at most 2 hours"),
    ],
)
def test_a_budget_needs_hours(work: Work, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        check_budget(plan(BEGUN, work), 2)


def test_measured_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command starts once; each stage of DVC is a process of its own. A start counts whatever is left."""
    monkeypatch.setattr(of_work, "process_time", lambda: 3.0)
    costs = Costs(start=1.0, image=0.5)
    first = Work(name="a", images=10, measure=lambda: costs)
    found = measured_plan(lambda: plan(first, replace(first, name="b")))
    assert [each.seconds for each in found.works] == [1 + 3 + 5, 1 + 5]
    stage = replace(first, stage="s", part=FinishedPart(images=4))
    found = measured_plan(lambda: plan(BEGUN, stage, replace(stage, name="b")))
    assert [each.seconds for each in found.works] == [7_200, 1 + 3 + 3, 1 + 3 + 3]
    assert shown(found)[-2].startswith("here, at the speed of a sample of the images: 2 h")


def test_what_could_not_be_measured_is_reported() -> None:
    def fail() -> None:
        raise CleansetError("no weights")

    found = measured_plan(lambda: plan(replace(SPSA, measure=fail), replace(BEGUN, model="b")))
    assert [each.remark for each in found.works] == ["no weights", ""]


def shown(found: Plan, width: int = 100) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(plan_text(found), highlight=False)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_table() -> None:
    other = replace(NONE, model="other")
    lost = Work(name="guess", remark="no table")
    changed = Work(name="corruptions", model="b", images=152, changes=76, of_image=Passes(forward=1))
    assert shown(plan(BEGUN, changed, NONE, other, PAGES, lost)) == [
        "                                 images            passes    passes  time",
        "computation  model                 left  changes  forward  backward  here",
        "spsa         standard      600 of 1,000           ≤ 7.8 M       ≤ 3   2 h",
        "corruptions  b                      152       76      152",
        "besides, without a network: pages",
        "done already: none (2 models)",
        "all: at most 7.8 M passes forward and 3 backward; 60 MB read, 54 MB written",
        "here, at the speed of what is finished: 2 h, without corruptions",
        "not known: guess (no table)",
        "A note.",
    ]


def test_nothing_is_shown_of_columns_that_are_empty() -> None:
    (head, *_, last, _note) = shown(plan(Work(name="hints", images=3, bytes_read=400)))
    assert head.split() == ["images"]
    assert last == "hours: not known"


def test_a_measurement_is_proposed_until_it_has_failed() -> None:
    begun = Work(name="hints", images=3, measure=lambda: None)
    assert shown(plan(begun))[-2].startswith("hours: not known; --measure measures them")
    failed = shown(plan(replace(begun, remark="no images")))
    assert failed[-3:-1] == ["hours: not known", "not known: hints (no images)"]


def test_json() -> None:
    content = json.loads(plan_json(plan(BEGUN, NONE)))
    assert (content["hours"], content["passes"]) == (2, {"forward": 7_800_007, "backward": 3})
    (spsa, none) = content["works"]
    assert (spsa["finished"], spsa["left"], spsa["is_bound"], spsa["seconds"]) == (400, 600, True, 7_200)
    assert (none["state"], none["passes"]["forward"]) == ("finished", 0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.44, "0.44 s"), (9.99, "9.99 s"), (60, "1 min"), (147, "2.45 min"), (11307.2, "3.14 h"), (200_000, "2.31 d"),
        (59.94, "59.9 s"), (59.96, "1 min"), (3599, "1 h"), (86_399, "1 d"), (1e8, "1,157 d"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_numbers() -> None:
    assert [number(each) for each in (0, 13_000, 999_999, 1_950_000, 39_000_000, 999_600_000, 2 * 10**15)] == [
        "0", "13,000", "999,999", "1.95 M", "39 M", "1 G", "2,000 T",
    ]  # fmt: skip
    assert [size_text(each) for each in (0, 12, 999, 320_000, 999_400, 999_600, 6_700_000_000)] == [
        "0 B", "12 B", "999 B", "320 kB", "999 kB", "1 MB", "6.7 GB",
    ]  # fmt: skip
