"""Pairs of models on the same images: the paired test, the interval of the difference, the images only one gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from cleanset.statistics.paired import PairedCounts, difference_interval, holm, mcnemar_p

TEST = "McNemar, exact, two-sided"
INTERVAL = "Newcombe 1998, method 10, 95 %"
CORRECTION = "Holm, over all pairs"


@dataclass(frozen=True, slots=True)
class Answers:
    """The name of a model, and whether it classifies each image of a set correctly, by file."""

    name: str
    correct: dict[str, bool]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models compared on the same images.

    `counts` are of both, of one and of neither; `p` is McNemar's exact p-value and `p_holm` the same, corrected for
    the number of pairs; `only_first` and `only_second` are the images that only one of them classifies correctly, by
    file, sorted.
    """

    first: str
    second: str
    counts: PairedCounts
    p: float
    p_holm: float
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference of the accuracies."""
        return difference_interval(self.counts)


def pairs_of(answers: Sequence[Answers]) -> list[Pair]:
    """Every two models, the earlier one first. Raises ValueError if they are of different images."""
    found = [(first, second, *_only(first, second)) for first, second in combinations(answers, 2)]
    counts = [_counts(first, only_first, only_second) for first, _, only_first, only_second in found]
    p = [mcnemar_p(each) for each in counts]
    rows = zip(found, counts, p, holm(p), strict=True)
    return [
        Pair(first.name, second.name, each, value, corrected, only_first, only_second)
        for (first, second, only_first, only_second), each, value, corrected in rows
    ]


def _only(first: Answers, second: Answers) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if first.correct.keys() != second.correct.keys():
        raise ValueError(f"{first.name} and {second.name}: predictions of different images")
    files = sorted(file for file in first.correct if first.correct[file] != second.correct[file])
    return tuple(each for each in files if first.correct[each]), tuple(each for each in files if second.correct[each])


def _counts(first: Answers, only_first: Sequence[str], only_second: Sequence[str]) -> PairedCounts:
    both = sum(first.correct.values()) - len(only_first)
    neither = len(first.correct) - both - len(only_first) - len(only_second)
    return PairedCounts(both, len(only_first), len(only_second), neither)
