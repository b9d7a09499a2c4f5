"""No hostile input gives a traceback, a crash, an endless loop, or a message of more than one short line."""

import os
import time
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from tests.hostile import running
from tests.hostile.kinds import KINDS, Kind
from tests.hostile.running import case, run_cases
from tests.properties import examples

pytestmark = pytest.mark.slow


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS)
def test_every_case_ends_well(kind: str) -> None:
    cases = examples(400, fast=120).max_examples
    outcomes = run_cases(kind, range(cases))
    assert outcomes.defects == {}
    assert outcomes.cases == cases
    assert outcomes.refused > cases / 4


def test_a_case_is_always_the_same() -> None:
    for kind in KINDS:
        assert case(kind, 7) == case(kind, 7) != case(kind, 8)


@pytest.mark.slow
def test_a_crash_a_hang_and_a_traceback_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        number = path.read_bytes()[0]
        if number == 1:
            os._exit(3)
        if number == 2:
            time.sleep(60)
        if number == 3:
            raise KeyError("x")
        if number == 4:
            raise CleansetError("x" * 301)
        if number == 5:
            raise CleansetError("no")

    monkeypatch.setattr(running, "SECONDS_LIMIT", 0.5)
    monkeypatch.setattr(running, "case", lambda kind, number: bytes([number]))
    monkeypatch.setitem(KINDS, "odd", Kind(lambda rng: b"", read))
    outcomes = run_cases("odd", range(7))
    assert (outcomes.cases, outcomes.accepted, outcomes.refused) == (7, 2, 2)
    assert list(outcomes.crashes) == [1, 2]
    assert outcomes.crashes[1] == "exit code 3"
    assert list(outcomes.tracebacks) == [3]
    assert outcomes.long_messages == {4: "x" * 301}
