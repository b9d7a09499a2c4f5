"""The words next to a progress bar, and work in threads behind it."""

from threading import get_ident, main_thread

import pytest

from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import MAX_HANDED_OVER, found_in_threads, rate_text


@pytest.mark.parametrize(
    ("speed", "workers", "text"),
    [
        (None, 1, ""), (0.0, 4, ""), (12.34, 1, "12.3/s"), (1234.0, 1, "1,234.0/s"), (0.5, 1, "2.0 s each"),
        (52.0, 4, "52.0/s by 4 workers"),
    ],
)  # fmt: skip
def test_the_rate(speed: float | None, workers: int, text: str) -> None:
    assert rate_text(speed, workers) == text


def test_threads_give_results_in_order() -> None:
    """With many items a thread gets several at a time, and the last batch is smaller."""
    cores = available_cores()
    for count in (0, 1, 3 * MAX_HANDED_OVER**2 * cores + 1):
        assert found_in_threads(str, range(count), "count") == list(map(str, range(count)))
    threads = set(found_in_threads(lambda _: get_ident(), range(MAX_HANDED_OVER * cores), "few"))
    assert main_thread().ident not in threads
    some = found_in_threads(lambda each: -each, range(9), "some", lambda each: each if each % 3 else None)
    assert some == [0, 1, 2, -3, 4, 5, -6, 7, 8]
    with pytest.raises(ZeroDivisionError):
        found_in_threads(lambda each: 1 // (each - 700), range(1_000), "fail")
