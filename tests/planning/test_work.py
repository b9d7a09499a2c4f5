"""The arithmetic of a plan, with numbers that are computed by hand; its table and its JSON."""

import json
from io import StringIO

import pytest
from rich.console import Console

from cleanset.errors import CleansetError
from cleanset.planning.rendering import duration, hours_text, number, plan_json, plan_text, size_text
from cleanset.planning.work import (
    Cost,
    Machine,
    Passes,
    Plan,
    PlannedWork,
    Work,
    check_budget,
    duration_on,
    duration_on_gpus,
)

TWO_CORES = Machine(device="cpu", devices=1, is_separate=False, cores=2)
GPU = Machine(device="NVIDIA H100", devices=1, is_separate=True, cores=16)
SPSA = Work(
    name="spsa", model="standard", stage="attacks@spsa-standard", images=1000, finished=400,
    passes=Passes(forward=600 * 13_000), bound="at most", bytes_read=60_000_000, bytes_written=54_000_000, tasks=600,
)  # fmt: skip


def planned(work: Work = SPSA, **cost: float) -> PlannedWork:
    return PlannedWork(work=work, cost=Cost(**cost))


def test_passes() -> None:
    assert (Passes(forward=1, backward=2) + Passes(forward=10)) * 3 == Passes(forward=33, backward=6)
    assert Passes(forward=10, backward=5).scaled(0.3) == Passes(forward=3, backward=2)


def test_costs_are_added() -> None:
    found = Cost(start=1, device=2, cores=4, gpu=8) + Cost(start=16, device=32, cores=64, gpu=128)
    assert found == Cost(start=17, device=34, cores=68, gpu=136)
    assert (found + Cost(gpu=None)).gpu is None
    assert found.seconds == 119


def test_a_cpu_shares_all_but_the_start() -> None:
    """9 s, then 100 + 20 s on two cores; one task has one core."""
    one = Work(name="a", images=1)
    assert duration_on(TWO_CORES, planned(start=9, device=100, cores=20)) == 69
    assert duration_on(TWO_CORES, planned(one, start=9, device=100, cores=20)) == 129


def test_a_gpu_computes_beside_the_cores() -> None:
    """The slower of one GPU and 16 cores; with eight GPUs the cores are."""
    work = planned(start=9, device=100, cores=320)
    assert duration_on(GPU, work) == 109
    assert duration_on_gpus(GPU, work, 4) == 34
    assert duration_on_gpus(GPU, work, 8) == 29


def test_gpus_of_another_machine() -> None:
    """A CPU tells nothing about a GPU but by the operations: 40 s on one of the known kind."""
    assert duration_on_gpus(TWO_CORES, planned(start=9, device=4000, cores=6, gpu=40), 4) == 19
    assert duration_on_gpus(TWO_CORES, PlannedWork(work=SPSA, cost=Cost(gpu=None)), 4) is None


def test_what_is_finished_costs_nothing() -> None:
    finished = PlannedWork(work=Work(name="none", state="finished"), cost=Cost(start=9))
    assert duration_on(TWO_CORES, finished) == 0
    assert finished.work.left == 0
    assert SPSA.left == 600


def plan(*works: PlannedWork, machine: Machine = TWO_CORES) -> Plan:
    return Plan(name="studies/attacks", machine=machine, works=works, notes=["A note."])


def test_the_budget() -> None:
    """Two hours of two cores after nine seconds."""
    found = plan(planned(start=9, device=14_400))
    assert found.hours == pytest.approx(2.0025)
    assert found.processor_hours == pytest.approx(4.0025)
    check_budget(found, None)
    check_budget(found, 2.01)
    message = r"^studies/attacks: 2\.00 hours; expected at most 2: run a part of it, or raise the budget$"
    with pytest.raises(CleansetError, match=message):
        check_budget(found, 2)


def test_the_digits_of_a_small_budget() -> None:
    """Two after the point; of less than half a minute, two that count."""
    for device, shown_hours in ((3_600, "0.50"), (36, r"0\.005"), (7, "0.00097")):
        message = f"^studies/attacks: {shown_hours} hours; expected at most 0.0001: "
        with pytest.raises(CleansetError, match=message):
            check_budget(plan(planned(device=device)), 0.0001)


def test_a_budget_needs_a_price() -> None:
    unknown = PlannedWork(work=SPSA, remark="standard: its weights are not here")
    message = r"^studies/attacks: 1 of 2 computations could not be measured \(standard: its weights are not here\); "
    with pytest.raises(CleansetError, match=message):
        check_budget(plan(planned(), unknown), 2)


def shown(found: Plan, width: int, gpus: int | None = None) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(plan_text(found, gpus), highlight=False)
    return console.export_text().splitlines()


NONE = PlannedWork(work=Work(name="none", model="standard", state="finished"))
PAGES = planned(Work(name="pages"), start=4)


def test_the_table() -> None:
    found = plan(planned(start=9, device=14_400, gpu=80), NONE, replace_model(NONE, "other"), PAGES)
    assert [line.rstrip() for line in shown(found, 80, gpus=4)] == [
        "                                      images   passes    passes   time",
        "computation  model                      left  forward  backward   here",
        "spsa         standard           600 of 1,000  ≤ 7.8 M         –  ≤ 2 h",
        "besides, without a network: pages (4 s)",
        "done already: none (2 models)",
        "all: at most 7.8 M passes forward; 60 MB read, 54 MB written",
        "here, on 2 idle cores: at most 2 hours",
        "on 4 H200, with 2 cores as here: 33 s or more, by full batches",
        "A note.",
    ]


def replace_model(planned: PlannedWork, model: str) -> PlannedWork:
    return PlannedWork(work=Work(name=planned.work.name, model=model, state=planned.work.state))


def test_json() -> None:
    content = json.loads(plan_json(plan(planned(start=9, device=14_400), NONE), None))
    assert content["hours"] == pytest.approx(2.0025)
    assert content["passes"] == {"forward": 7_800_000, "backward": 0}
    (spsa, none) = content["works"]
    assert (spsa["left"], spsa["bound"], spsa["stage"]) == (600, "at most", "attacks@spsa-standard")
    assert (none["state"], none["seconds"]) == ("finished", None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.44, "0.44 s"), (9.99, "9.99 s"), (60, "1 min"), (147, "2.45 min"), (11307.2, "3.14 h"), (200_000, "2.31 d"),
        (59.94, "59.9 s"), (59.96, "1 min"), (3599, "1 h"), (86_399, "1 d"), (1e8, "1,157 d"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0.01, "36 s"), (0.5, "30 min"), (1.0, "1 hour"), (1.384, "1.38 hours"), (47.9, "47.9 hours"),
        (50.4, "2.1 days (50 hours)"), (2945.8, "123 days (2,946 hours)"),
    ],
)  # fmt: skip
def test_hours(hours: float, text: str) -> None:
    """As a budget is in hours, days stand beside them."""
    assert hours_text(hours) == text


def test_what_is_not_measured_is_said() -> None:
    unknown = PlannedWork(work=SPSA, remark="standard: its weights are not here")
    assert [line.rstrip() for line in shown(plan(planned(start=9, device=14_400), unknown), 120)][-3:] == [
        "here, on 2 idle cores: at most 2 hours, and what was not measured",
        "not measured: standard: its weights are not here",
        "A note.",
    ]


def test_numbers() -> None:
    assert [number(each) for each in (0, 13_000, 999_999, 1_950_000, 39_000_000, 999_600_000, 2 * 10**15)] == [
        "0", "13,000", "999,999", "1.95 M", "39 M", "1 G", "2,000 T",
    ]  # fmt: skip
    assert [size_text(each) for each in (0, 12, 999, 320_000, 999_400, 999_600, 6_700_000_000)] == [
        "0 B", "12 B", "999 B", "320 kB", "999 kB", "1 MB", "6.7 GB",
    ]  # fmt: skip
