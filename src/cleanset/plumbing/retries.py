"""Tries of a download or request after a transient error, such as a broken connection: their number and pauses.

tenacity would be one more dependency of a plain installation, for one loop.
"""

import time
from collections.abc import Callable
from typing import TypeVar

MAX_ATTEMPTS = 3
"""Number of tries in all."""

Result = TypeVar("Result")


def retried(attempt: Callable[[], Result], *transient: type[Exception]) -> Result:
    """The result of `attempt`, which is called again after the exceptions `transient`, MAX_ATTEMPTS times in all.

    Raises the exception of the last call.
    """
    for number in range(1, MAX_ATTEMPTS):
        try:
            return attempt()
        except transient:
            # longer after each failure, so that a busy server gets time to recover
            time.sleep(number / 2)
    return attempt()
