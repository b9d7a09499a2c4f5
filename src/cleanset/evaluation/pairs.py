"""Two models compared on the same images, by the images that only one of them classifies correctly."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from pydantic import JsonValue

from cleanset.evaluation.measures import Difference, corrected
from cleanset.statistics.differences import PairedCounts, difference_interval, mcnemar_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Difference):
    """Two models compared on the same images: the difference of their accuracies, by McNemar's exact test."""

    counts: PairedCounts
    """Number of images that both classify correctly, only one, and neither."""

    only_model: tuple[str, ...]
    """Sorted images that only the model classifies correctly: files, or of stored results as in `misclassified`."""

    only_other: tuple[str, ...]
    """The same of the other model."""

    def as_json(self) -> dict[str, JsonValue]:
        """The comparison for programs."""
        return {
            "first": self.model,
            "second": self.other,
            "difference": self.value,
            "interval": [self.low, self.high],
            "p": self.p,
            "p_holm": self.p_holm,
            "both": self.counts.both,
            "neither": self.counts.neither,
            "only_first": list(self.only_model),
            "only_second": list(self.only_other),
        }


def compare_pairwise(misses: Sequence[tuple[str, Counter[str]]], images: int) -> list[Pair]:
    """Every two of some models, the earlier one first, on `images` images.

    `misses`: the name of each model, and its misclassified images.
    """
    found = []
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
        pair = Pair.of(
            counts.difference,
            difference_interval(counts),
            model=model,
            other=other,
            images=images,
            counts=counts,
            p=mcnemar_p(counts),
            only_model=tuple(sorted(only_model.elements())),
            only_other=tuple(sorted(only_other.elements())),
        )
        found.append(pair)
    return corrected(found, lambda _: "all")
