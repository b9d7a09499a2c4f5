"""A second and third try after a transient error."""

import time

import pytest

from cleanset.plumbing.retries import retried


class Plan:
    """Raises each of some errors in turn, then returns 7."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def test_two_broken_tries_and_a_good_one(waits: list[float]) -> None:
    plan = Plan(TimeoutError("first"), ConnectionError("second"))
    assert retried(plan, ConnectionError, TimeoutError) == 7
    assert (plan.calls, waits) == (3, [0.5, 1.0])


def test_the_third_error_is_raised(waits: list[float]) -> None:
    plan = Plan(*map(TimeoutError, "abc"))
    with pytest.raises(TimeoutError, match=r"^c$"):
        retried(plan, TimeoutError)
    assert (plan.calls, waits) == (3, [0.5, 1.0])


def test_any_other_error_is_raised_at_once(waits: list[float]) -> None:
    plan = Plan(ValueError("refused"))
    with pytest.raises(ValueError, match="refused"):
        retried(plan, TimeoutError)
    assert (plan.calls, waits) == (1, [])
