"""Two models compared on the same images, by the images that only one of them classifies correctly.

Results keep which images each model classifies correctly, a digit an image; pairs are derived from that when they are
read, since their number grows with the square of the models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from pydantic import JsonValue

from cleanset.evaluation.measures import Difference
from cleanset.statistics.basics import Flags, Ints
from cleanset.statistics.differences import PairedCounts, difference_interval, holm, mcnemar_p_values
from cleanset.statistics.groups import Units, paired_interval, paired_p

MAX_PAIRED = 6
"""Models up to which every pair is shown; with more, the first against each other one."""
# images of all models that are counted at once
BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Difference):
    """Two models compared on the same images: the difference of their accuracies, by McNemar's exact test."""

    counts: PairedCounts
    """Number of images that both classify correctly, only one, and neither."""

    only_model: tuple[str, ...]
    """Sorted images that only the model classifies correctly: files, or of stored results their class and digest."""

    only_other: tuple[str, ...]
    """The same of the other model."""

    groups: int | None = None
    """The number of groups of images that are the unit of its test and interval; None: images are."""

    tests: int
    """Number of pairs that `p_holm` is corrected for, shown or not."""

    def as_json(self) -> dict[str, JsonValue]:
        """The comparison for programs."""
        found = super(Pair, self).as_json()
        return {
            "first": self.model,
            "second": self.other,
            "difference": self.value,
            "interval": found["interval"],
            "p": self.p,
            "p_holm": self.p_holm,
            "tests": self.tests,
            "both": self.counts.both,
            "neither": self.counts.neither,
            "only_first": self.counts.only_first,
            "only_second": self.counts.only_second,
        }


def compare_pairwise(
    models: Sequence[tuple[str, Flags]], images: Sequence[str], groups: Sequence[str] = ()
) -> list[Pair]:
    """Every two of at most MAX_PAIRED models, the earlier one first; with more, the first against each other one.

    `models`: the name of each model, and whether it classifies each of `images` correctly. `groups`: the group of each
    image, empty for one without. Holm's correction is over all pairs in any case.
    """
    if len(models) < 2:
        return []
    both = _both_correct([correct for _, correct in models])
    first, second = np.triu_indices(len(models), 1)
    correct = np.diag(both)
    together = both[first, second]
    only_first = correct[first] - together
    only_second = correct[second] - together
    units = Units.of(groups)
    if units is None:
        p = mcnemar_p_values(only_first, only_second).tolist()
    else:
        p = [paired_p(of_model, of_other, units) for (_, of_model), (_, of_other) in combinations(models, 2)]
    p_holm = holm(p)
    names = np.asarray(images, object)
    shown = len(p) if len(models) <= MAX_PAIRED else len(models) - 1
    found = []
    for place, ((model, of_model), (other, of_other)) in zip(range(shown), combinations(models, 2), strict=False):
        counts = PairedCounts(
            both=int(together[place]),
            only_first=int(only_first[place]),
            only_second=int(only_second[place]),
            neither=int(len(images) - together[place] - only_first[place] - only_second[place]),
        )
        pair = Pair.of(
            counts.difference,
            difference_interval(counts) if units is None else paired_interval(of_model, of_other, units),
            model=model,
            other=other,
            images=len(images),
            counts=counts,
            groups=None if units is None else units.count,
            p=p[place],
            p_holm=p_holm[place],
            only_model=tuple(sorted(names[of_model & ~of_other])),
            only_other=tuple(sorted(names[of_other & ~of_model])),
            tests=len(p),
        )
        found.append(pair)
    return found


def _both_correct(models: Sequence[Flags]) -> Ints:
    """The number of images that both of two models classify correctly, of shape (models, models)."""
    found = np.zeros((len(models), len(models)), np.int64)
    for start in range(0, len(models[0]), BLOCK):
        # sums of so few ones are exact, and products of floats are fast
        block = np.stack([correct[start : start + BLOCK] for correct in models]).astype(np.float32)
        found += (block @ block.T).astype(np.int64)
    return found


def image_key(class_index: int, digest: str) -> str:
    """An image by class and bytes, so that results on the same images are compared whatever their names."""
    return f"{class_index} {digest[:16]}"


def answers_text(keys: Sequence[str], correct: Flags) -> str:
    """For each image, sorted by key, 1 if it is classified correctly, else 0; within a key, 0 comes first."""
    ranks = np.unique(np.asarray(keys), return_inverse=True)[1]
    return (correct[np.lexsort((correct, ranks))] + ord("0")).astype(np.uint8).tobytes().decode()


def parse_answers(text: str) -> Flags | None:
    """The inverse of `answers_text`; None for another text."""
    digits = np.frombuffer(text.encode(), np.uint8) - ord("0")
    return digits.astype(bool) if (digits <= 1).all() else None
