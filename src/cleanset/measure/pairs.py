"""Two models compared on the same images, by the images that only one of them classifies correctly."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from pydantic import JsonValue

from cleanset.statistics.differences import PairedCounts, difference_interval, holm, mcnemar_p


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models compared on the same images."""

    first: str
    second: str
    counts: PairedCounts
    """Number of images that both classify correctly, only one, and neither."""

    p: float
    """McNemar's exact p-value."""

    p_holm: float
    """The same, corrected for the number of pairs."""

    only_first: tuple[str, ...]
    """Sorted images that only the first classifies correctly: files, or of stored results as in `misclassified`."""

    only_second: tuple[str, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference of the accuracies."""
        return difference_interval(self.counts)

    def as_json(self) -> dict[str, JsonValue]:
        """The comparison for programs."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.counts.difference,
            "interval": list(self.interval),
            "p": self.p,
            "p_holm": self.p_holm,
            "both": self.counts.both,
            "neither": self.counts.neither,
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
        }


def compare_pairwise(misses: Sequence[tuple[str, Counter[str]]], images: int) -> list[Pair]:
    """Every two of some models, the earlier one first, on `images` images.

    `misses`: the name of each model, and its misclassified images.
    """
    found = []
    for (first, of_first), (second, of_second) in combinations(misses, 2):
        only_first = of_second - of_first
        only_second = of_first - of_second
        neither = (of_first & of_second).total()
        counts = PairedCounts(
            both=images - only_first.total() - only_second.total() - neither,
            only_first=only_first.total(),
            only_second=only_second.total(),
            neither=neither,
        )
        p = mcnemar_p(counts)
        found.append(
            Pair(
                first=first,
                second=second,
                counts=counts,
                p=p,
                p_holm=p,
                only_first=tuple(sorted(only_first.elements())),
                only_second=tuple(sorted(only_second.elements())),
            )
        )
    corrected = holm([pair.p for pair in found])
    return [replace(pair, p_holm=p) for pair, p in zip(found, corrected, strict=True)]
