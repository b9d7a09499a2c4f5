"""Running libraries that draw from global generators and write to loggers."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from cleanset.statistics.seeds import numpy_seeded


@contextmanager
def globally_seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch and numpy, and put their states back at the end."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), numpy_seeded(seed):
        torch.manual_seed(seed)
        yield


@contextmanager
def heard(name: str) -> Iterator[list[str]]:
    """The warnings that a logger gives in the block, each once, and nothing of them printed."""
    found: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if (text := record.getMessage()) not in found:
                found.append(text)

    logger, handler = logging.getLogger(name), Collecting(logging.WARNING)
    propagates = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
