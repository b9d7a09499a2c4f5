"""Two models compared on the same images, by the images that only one of them classifies correctly."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
from pydantic import JsonValue

from cleanset.evaluation.measures import Difference, corrected
from cleanset.statistics.differences import PairedCounts, difference_interval, mcnemar_p
from cleanset.statistics.groups import Units, paired_interval, paired_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Difference):
    """Two models compared on the same images: the difference of their accuracies, by McNemar's exact test."""

    counts: PairedCounts
    """Number of images that both classify correctly, only one, and neither."""

    only_model: tuple[str, ...]
    """Sorted images that only the model classifies correctly: files, or of stored results as in `misclassified`."""

    only_other: tuple[str, ...]
    """The same of the other model."""

    groups: int | None = None
    """The number of groups of images that are the unit of its test and interval; None: images are."""

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
            "both": self.counts.both,
            "neither": self.counts.neither,
            "only_first": list(self.only_model),
            "only_second": list(self.only_other),
        }


def compare_pairwise(
    misses: Sequence[tuple[str, Counter[str]]], images: int, group_of: Mapping[str, str] = MappingProxyType({})
) -> list[Pair]:
    """Every two of some models, the earlier one first, on `images` images.

    `misses`: the name of each model, and its misclassified images. `group_of`: the group of every image; empty where
    no two images share one.
    """
    found = []
    units = Units.of(list(group_of.values()))
    for (model, of_model), (other, of_other) in combinations(misses, 2):
        only_model = of_other - of_model
        only_other = of_model - of_other
        neither = (of_model & of_other).total()
        counts = PairedCounts(
            both=images - only_model.total() - only_other.total() - neither,
            only_first=only_model.total(),
            only_second=only_other.total(),
            neither=neither,
        )
        interval = difference_interval(counts)
        p = mcnemar_p(counts)
        if units is not None:
            first, second = (np.array([image not in each for image in group_of]) for each in (of_model, of_other))
            interval = paired_interval(first, second, units)
            p = paired_p(first, second, units)
        pair = Pair.of(
            counts.difference,
            interval,
            model=model,
            other=other,
            images=images,
            counts=counts,
            p=p,
            groups=None if units is None else units.count,
            only_model=tuple(sorted(only_model.elements())),
            only_other=tuple(sorted(only_other.elements())),
        )
        found.append(pair)
    return corrected(found, lambda _: "all")
