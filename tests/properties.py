"""How many examples a property is tried on."""

from hypothesis import settings

FAST = "fast"
"""The profile of `make test-fast` and `make test`, registered in conftest.py; not of LONG=1 and ALL=1."""


def examples(count: int, fast: int | None = None) -> settings:
    """So many examples, the same in each run; `fast` or a tenth of them unless in `make test LONG=1` or `ALL=1`."""
    if settings.get_current_profile_name() == FAST:
        count = count // 10 if fast is None else fast
    return settings(max_examples=count, deadline=None, derandomize=True)
