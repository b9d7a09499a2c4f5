"""What this process may use of the machine."""

import os
from pathlib import Path


def available_cores() -> int:
    """The number of processor cores that this process may run on, where the system tells; else of all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder() -> Path:
    """The folder of what is downloaded once for all editions: CLEANSET_CACHE, else ~/.cache/cleanset; absolute."""
    return Path(os.environ.get("CLEANSET_CACHE") or Path.home() / ".cache" / "cleanset").absolute()
