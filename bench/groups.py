"""Coverage of the 95 % intervals by groups of images, such as patients, by simulation.

Groups of ten images, or of 1 to 24, with an intraclass correlation of .3: the share of correct images in a group is
drawn from a beta distribution. Each row has the coverage of Wilson's interval over images, of `share_interval` by
groups with its mean width, of `percentile_interval` of a bootstrap of groups, of `paired_interval` for two models that
share a group's difficulty, and how often `paired_p` finds a difference between equally good ones.

    python bench/groups.py           # 10 minutes on one core
    python bench/groups.py 200       # that number of simulations in place of 2,000
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from cleanset.statistics.basics import Flags, Interval
from cleanset.statistics.bootstrap import Bootstrap, percentile_interval
from cleanset.statistics.groups import Units, paired_interval, paired_p, share_interval
from cleanset.statistics.shares import wilson
from measuring import print_machine, print_table

SIMULATIONS = 2000
CORRELATION = 0.3
SIZES = {"10": (10,), "1 to 24": (1, 2, 4, 6, 8, 10, 12, 15, 18, 24)}
GROUPS = (5, 10, 20, 50)
ACCURACIES = (0.5, 0.8, 0.95)
LOWER = 0.1
"""By how much the second model's accuracy is lower."""


@dataclass(frozen=True, slots=True)
class Row:
    """Shares of the simulations, and a mean width."""

    over_images: float
    by_groups: float
    width: float
    bootstrapped: float
    paired: float
    false_positives: float


def units_of(groups: int, sizes: tuple[int, ...]) -> Units:
    """Groups of the sizes in turn."""
    return Units(np.repeat(np.arange(groups), [sizes[place % len(sizes)] for place in range(groups)]))


def drawn(units: Units, accuracies: tuple[float, ...], generator: np.random.Generator) -> Iterator[Flags]:
    """Yield whether each image is classified correctly by a model of each accuracy; groups are as hard for all."""
    hardness = generator.random(units.count)
    spread = 1 / CORRELATION - 1
    for accuracy in accuracies:
        shares = beta.ppf(hardness, accuracy * spread, (1 - accuracy) * spread)
        yield generator.random(len(units.codes)) < shares[units.codes]


def simulated(groups: int, sizes: tuple[int, ...], accuracy: float, simulations: int) -> Row:
    """The row of a number of groups, their sizes and an accuracy."""
    units = units_of(groups, sizes)
    resamples = Bootstrap().resample(np.zeros(len(units.codes), np.int64), units)
    generator = np.random.default_rng([groups, len(sizes), round(100 * accuracy)])
    found = []
    for _ in range(simulations):
        first, second, equal = drawn(units, (accuracy, accuracy - LOWER, accuracy), generator)
        by_groups = share_interval(first, units)
        ends = percentile_interval(resamples.adjusted_means(first[:, np.newaxis], "a")[:, 0], resamples.level)
        bootstrapped = Interval(min(ends.low, first.mean()), max(ends.high, first.mean()))
        found.append(
            (
                covers(wilson(int(first.sum()), len(first)), accuracy),
                covers(by_groups, accuracy),
                by_groups.high - by_groups.low,
                covers(bootstrapped, accuracy),
                covers(paired_interval(first, second, units), LOWER),
                paired_p(first, equal, units) < 0.05,
            )
        )
    return Row(*np.mean(found, axis=0).tolist())


def covers(interval: Interval, truth: float) -> bool:
    """Whether an interval contains the truth."""
    return interval.low <= truth <= interval.high


def main() -> None:
    """Print the table."""
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS
    rows = []
    for name, sizes in SIZES.items():
        for groups in GROUPS:
            for accuracy in ACCURACIES:
                row = simulated(groups, sizes, accuracy, simulations)
                texts = [f"{getattr(row, each):.3f}" for each in Row.__slots__]
                rows.append((str(groups), name, f"{accuracy:g}", *texts))
                print(rows[-1], flush=True)
    print_machine("scipy")
    print_table(
        f"Coverage by groups, intraclass correlation {CORRELATION}, {simulations:,} simulations",
        ("groups", "images", "accuracy", "Wilson", "by groups", "width", "bootstrap", "difference", "p < .05"),
        rows,
    )


if __name__ == "__main__":
    main()
