"""What a computation takes, measured on a sample of its own images: a start, and the same time for each image."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TypeVar

Item = TypeVar("Item")

MAX_SHARE = 0.1
"""Share of a computation's time that measuring it may take."""
MAX_SECONDS = 20.0
"""Seconds after which no further part is measured."""
SHORT_SECONDS = 2.0
"""A first part that is shorter is followed by another one even where both are more than MAX_SHARE."""
IMAGENET_IMAGE_BYTES = 134_000
"""Mean size of an image of ILSVRC2012's validation set, 6.7 GB by 50,000, for images that are not here yet."""
MAX_FILES = 1_000
"""Files whose sizes are read; the mean of as many is within a few percent of that of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The linear cost of a computation on this machine."""

    start: float = 0.0
    """Seconds before the first image, and of what is done once."""
    image: float
    """Seconds of an image, with all workers at work."""


def measured_costs(
    compute: Callable[[Sequence[Item]], object],
    items: Sequence[Item],
    *,
    batch: int = 1,
    workers: int = 1,
    clock: Callable[[], float] = process_time,
) -> Costs:
    """The costs of computing `items`, from a random sample of them, in parts of `batch` and more.

    The first part is the start: what it takes beyond the parts after it, such as loading a model, is taken once.
    Measuring ends with MAX_SHARE of the time of all items, or after MAX_SECONDS; each part is twice the one before.
    `workers`: those that share the images in the computation itself. `clock`: seconds, by default of the processor,
    so that other programs do not count.
    """
    drawn = random.Random(0).sample(items, len(items))

    def seconds_of(part: Sequence[Item]) -> float:
        begin = clock()
        compute(part)
        return clock() - begin

    first = seconds_of(drawn[:batch])
    if len(drawn) <= batch:
        return Costs(start=first, image=0.0)
    is_share_taken = first > SHORT_SECONDS and batch > MAX_SHARE * len(drawn)
    if is_share_taken or 2 * batch > len(drawn):
        return Costs(start=0.0, image=first / batch / workers)
    images = 0
    seconds = 0.0
    size = batch
    while images + batch + size <= len(drawn):
        seconds += seconds_of(drawn[batch + images :][:size])
        images += size
        size *= 2
        image = seconds / images
        start = max(0.0, first - batch * image)
        if seconds + size * image > min(MAX_SECONDS, MAX_SHARE * (start + image * len(drawn))):
            break
    return Costs(start=start, image=image / workers)


def total_size(paths: Sequence[Path]) -> int:
    """The size of files in bytes, of more than MAX_FILES estimated by a random sample; missing ones count as 0."""
    drawn = paths if len(paths) <= MAX_FILES else random.Random(0).sample(paths, MAX_FILES)
    found = sum(path.stat().st_size for path in drawn if path.is_file())
    return round(found / max(1, len(drawn)) * len(paths))
