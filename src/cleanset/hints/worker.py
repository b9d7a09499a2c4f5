"""What runs in the process that measures images for the hints."""

import os
import threading
from multiprocessing import parent_process

from cleanset.hints.measures import Fingerprint, Measures, measure
from cleanset.images.codec import decode


def start() -> None:
    """Let the page go first, and end with the process that started this one, however that ends."""
    os.nice(10)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(0)


def measure_jpeg(data: bytes) -> tuple[Measures, Fingerprint]:
    """The measures of a JPEG. Raises ValueError for anything else."""
    return measure(decode(data))
