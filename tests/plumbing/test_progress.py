"""The words beside a progress bar."""

import pytest

from cleanset.plumbing.progress import rate_text


@pytest.mark.parametrize(
    ("speed", "workers", "text"),
    [
        (None, 1, ""), (0.0, 4, ""), (12.34, 1, "12.3/s"), (1234.0, 1, "1,234.0/s"), (0.5, 1, "2.0 s each"),
        (52.0, 4, "52.0/s by 4 workers"),
    ],
)  # fmt: skip
def test_the_rate(speed: float | None, workers: int, text: str) -> None:
    assert rate_text(speed, workers) == text
