"""Check whether a model's answers depend on more than the image: on chance, order or batch.

One check for accuracy, robustness and attacks: batch normalisation or dropout that was left in training, for example,
makes an image's logits depend on the others in its batch, or on a draw.
"""

from collections.abc import Sequence

import numpy as np

from cleanset.statistics.basics import Floats

Logits = Floats
"""The logits of a batch, of shape (n, classes)."""

MAX_CHECKED = 32
"""Images at most, one batch, that a model is asked for several times."""
ROUNDING = 1e-3
"""Largest difference between the logits of an image in two batches, relative to their range, that rounding makes."""


def batches_to_ask(count: int) -> list[list[int]]:
    """Batches of the same size, of images by number: all of them twice, backwards, copies of the first, pairs."""
    numbers = list(range(count))
    return [numbers, numbers, numbers[::-1], [0] * count, [each // 2 for each in numbers]]


def dependence(answers: Sequence[Logits], rounding: float = ROUNDING) -> str | None:
    """When an image gets another answer, from the answers to `batches_to_ask`; None if it never does."""
    first, again, *others = answers
    if not np.array_equal(first, again):
        return "when asked again"
    for numbers, found in zip(batches_to_ask(len(first))[2:], others, strict=True):
        if is_other(found, first[numbers], rounding):
            return "in another order" if len(set(numbers)) == len(first) > 1 else "in another batch"
    return None


def is_other(answers: Logits, expected: Logits, rounding: float) -> bool:
    """Whether an image gets another answer than expected, apart from rounding relative to the range of its logits."""
    # not `>`, which is false for NaN
    return not (np.abs(answers - expected) <= rounding * np.ptp(expected, axis=1, keepdims=True)).all()
