"""What this process may use of the machine."""

import os


def available_cores() -> int:
    """The number of processor cores that this process may run on, where the system tells; else of all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
