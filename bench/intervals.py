"""Coverage of the 95 % intervals of a robustness study, by simulation.

Classes are fixed and differ in difficulty; each simulation draws new images. An image has one difficulty in all
changes and, correlated, for both models. Every interval comes from `Resamples.adjusted_means`, as in a study; all
simulations of a cell share the resamples, as do all models of a study.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from cleanset.statistics.basics import Flags, Floats, Ints, Singles
from cleanset.statistics.bootstrap import Bootstrap, Resamples
from cleanset.studies.robustness.corruptions.measures import ALEXNET_ERRORS
from cleanset.studies.robustness.corruptions.params import CORRUPTIONS, SEVERITIES
from cleanset.studies.robustness.sampled import MIN_REFERENCE_SUM
from measuring import print_machine, print_table

SIMULATIONS = 10_000
BLOCK = 250
DESIGNS = ((12, 6), (9, 3), (100, 3), (1000, 3))
ERRORS = (0.02, 0.1, 0.5)
MIN_COVERAGE = 0.94
MIN_DEFINED = 500
SPREAD_OF_CLASSES = 1.0
SPREAD_OF_IMAGES = 1.0
"""Standard deviations of difficulty between classes and between images; that within an image is 1."""
SHARED = 0.7
"""Correlation of an image's difficulty for two models."""
STEPS = 0.3 * (np.arange(5) - 2)
"""Difficulty of the severities."""
EASIER = 0.3
"""Difference in difficulty of a change between the two models."""
COMPARED_FRAMES = 30
REFERENCE = np.array([np.mean(ALEXNET_ERRORS[name]) for name in CORRUPTIONS])


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The images of a cell, the difficulty of each one's class, and the threshold of a change."""

    classes: Ints
    hardness: Floats
    threshold: float

    def share(self, shift: npt.ArrayLike = 0.0, own: float = 1.0) -> Floats:
        """The true share of misclassified images, classes fixed; `own`: the variance within an image."""
        shifts = np.asarray(shift, np.float64)
        latent = self.hardness[:, np.newaxis] + shifts.reshape(1, -1) - self.threshold
        found: Floats = ndtr(latent / np.sqrt(SPREAD_OF_IMAGES**2 + own)).mean(axis=0)
        return found.reshape(shifts.shape)


def cell(classes: int, images: int, error: float, spread: float) -> Cell:
    """Classes whose mean error is exactly the wanted one."""
    generator = np.random.default_rng([classes, images])
    hardness = np.repeat(spread * generator.standard_normal(classes), images)
    low = -20.0
    high = 20.0
    indices = np.repeat(np.arange(classes), images)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if Cell(indices, hardness, middle).share() > error else (low, middle)
    return Cell(indices, hardness, low)


def covered(draws: Floats, value: Floats, truth: float) -> Flags:
    """Whether each simulation's interval covers, as `Sampled.interval` makes it, where there is one."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    ends = np.stack([np.minimum(low, value), np.maximum(high, value)])
    low, high = ends[:, np.isfinite(ends).all(axis=0)]
    found: Flags = (low <= truth) & (truth <= high)
    return found


def simulated(
    given: Cell, resamples: Resamples, generator: np.random.Generator, *, all_ratios: bool
) -> dict[str, list[bool]]:
    """Whether the intervals of a block of simulations cover, by measure; those that are defined.

    `all_ratios`: with mCE relative to a model, 30 statistics.
    """
    shape = len(given.classes), BLOCK
    images = [SPREAD_OF_IMAGES * each for each in correlated(generator, shape)]
    latent = [given.hardness[:, np.newaxis].astype(np.float32) + each - np.float32(given.threshold) for each in images]
    latent[1] -= np.float32(EASIER)
    shifts = np.array([0, -EASIER])
    found: dict[str, list[bool]] = {}

    def record(measure: str, draws: Floats, value: Floats, truth: float) -> None:
        found[measure] = covered(draws, value, truth).tolist()

    def compared(measure: str, values: Sequence[Floats], truths: Floats, largest: float) -> None:
        draws = [resamples.adjusted_means(each, name, largest) for each, name in zip(values, "ab", strict=True)]
        means = [each.mean(axis=0) for each in values]
        record(measure, draws[0], means[0], float(truths[0]))
        record(f"{measure}: difference", draws[0] - draws[1], means[0] - means[1], float(truths[0] - truths[1]))

    wrong = [(each + noise(generator, shape) > 0).astype(np.float64) for each in latent]
    compared("error", wrong, given.share(shifts), 1)
    # of as many flips as misclassified images: a flip rate for each image
    flips = [generator.binomial(COMPARED_FRAMES, ndtr(each)).astype(np.float64) for each in latent]
    compared("FP", [each / COMPARED_FRAMES for each in flips], given.share(shifts), 1)

    counts = [np.empty((len(CORRUPTIONS), *shape), np.int8) for _ in latent]
    for own, each in zip(counts, latent, strict=True):
        for place in range(len(CORRUPTIONS)):
            # an image that is misclassified at one severity mostly is at the higher ones, too
            here = each + noise(generator, shape)
            own[place] = sum((here > -np.float32(step)).astype(np.int8) for step in STEPS)
    truths = np.array([given.share(STEPS + shift).mean() for shift in shifts])
    ces = [np.tensordot(1 / (len(SEVERITIES) * len(CORRUPTIONS) * REFERENCE), each, 1) for each in counts]
    scale = float(np.mean(1 / REFERENCE))
    compared("mCE", [np.asarray(each) for each in ces], truths * scale, scale)
    draws = [
        [resamples.adjusted_means(each, name, len(SEVERITIES)) for each in (own if all_ratios else own[:1])]
        for own, name in zip(counts, "ab", strict=True)
    ]
    sums = np.array([each.sum(axis=1, dtype=np.int64) for each in counts])
    errors = sums[0, 0] / shape[0]
    ratio = float(truths[0] / truths[1])
    record("CE", draws[0][0], errors, float(truths[0]) * len(SEVERITIES))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [own / other for own, other in zip(*draws, strict=True)]
        values = sums[0] / sums[1]
        defined = sums[1] >= MIN_REFERENCE_SUM
        record("CE to a model", ratios[0][:, defined[0]], values[0][defined[0]], ratio)
        if all_ratios:
            all_defined = defined.all(axis=0)
            mean = np.mean([each[:, all_defined] for each in ratios], axis=0)
            record("mCE to a model", mean, values.mean(axis=0)[all_defined], ratio)
    return found


def correlated(generator: np.random.Generator, shape: tuple[int, int]) -> list[Singles]:
    """The difficulty of each image for two models."""
    both = noise(generator, shape)
    return [np.float32(SHARED**0.5) * both + np.float32((1 - SHARED) ** 0.5) * noise(generator, shape) for _ in "ab"]


def noise(generator: np.random.Generator, shape: tuple[int, int]) -> Singles:
    """Standard normal numbers."""
    return generator.standard_normal(shape, np.float32)


def coverage(classes: int, images: int, error: float, spread: float) -> Mapping[str, float]:
    """The coverage by measure; NaN for one that is defined in fewer than MIN_DEFINED simulations."""
    given = cell(classes, images, error, spread)
    resamples = Bootstrap(seed="corruptions 0").resample(given.classes)
    generator = np.random.default_rng([classes, images, round(100 * error)])
    found: dict[str, list[bool]] = {}
    for block in range(SIMULATIONS // BLOCK):
        # of 1,000 classes in a tenth of the simulations
        all_ratios = classes < 1000 or block % 10 == 0
        for measure, flags in simulated(given, resamples, generator, all_ratios=all_ratios).items():
            found.setdefault(measure, []).extend(flags)
    return {name: float(np.mean(each)) if len(each) >= MIN_DEFINED else np.nan for name, each in found.items()}


def main() -> None:
    """Print the coverage of each cell, with classes that differ and with equal ones."""
    designs = [design for design in DESIGNS if not sys.argv[1:] or f"{design[0]}x{design[1]}" in sys.argv[1:]]
    print_machine("scipy")
    for spread, what in ((SPREAD_OF_CLASSES, "Classes that differ"), (0.0, "Equal classes")):
        rows = []
        lowest = 1.0
        for classes, images in designs:
            for error in ERRORS:
                found = coverage(classes, images, error, spread)
                lowest = min(lowest, *(each for each in found.values() if not np.isnan(each)))
                numbers = ("–" if np.isnan(each) else f"{each:.3f}" for each in found.values())
                rows.append((f"{classes:,} x {images}", f"{error}", *numbers))
        print_table(
            f"{what}: share of {SIMULATIONS:,} intervals that cover; lowest {lowest:.3f}, limit {MIN_COVERAGE}",
            ("classes x images", "true error", *found),
            rows,
        )


if __name__ == "__main__":
    main()
