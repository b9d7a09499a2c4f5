"""Running libraries that draw from global generators, write to loggers, and stop where no gradient flows."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cleanset.statistics.seeds import numpy_seeded
from cleanset.studies.attacks.base import Ball, Result, Subject, to_pixels

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    import torch
    from torch import nn


@contextmanager
def globally_seeded(seed: int, device: "torch.device") -> Iterator[None]:
    """Seed the global generators of torch and numpy, and put their states back at the end."""
    import torch

    # without a list, fork_rng saves the state of every GPU
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), numpy_seeded(seed):
        torch.manual_seed(seed)
        yield


@contextmanager
def collect_warnings(name: str) -> Iterator[list[str]]:
    """Collect the warnings that a logger gives in the block, each once, and print nothing of them."""
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


def with_gradient(network: "nn.Module") -> "nn.Module":
    """The network with a gradient of 0 where none flows: pyautoattack stops where there is none at all."""
    import torch

    class WithGradient(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = network(pixels)
            if pixels.requires_grad and not logits.requires_grad:
                logits = logits + 0 * pixels.flatten(1).sum(dim=1, keepdim=True)
            return logits

    return WithGradient().eval()


def results_of_group(
    levels: NDArray[np.float64],
    group: Sequence[Subject],
    ball: Ball,
    queries: int,
    seed: int,
    notices: Iterable[str] = (),
) -> list[Result]:
    """The results of a library that searches for a whole group at once: each image has its share of the queries."""
    share = -(-queries // len(group))
    return [
        Result(to_pixels(level, subject.pixels, ball), share, seed=seed, notices=tuple(notices))
        for level, subject in zip(levels, group, strict=True)
    ]
