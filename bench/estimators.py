"""Estimators of studies where they are biased or tests fail, by simulation: scenarios, ECE, Score, kappa, realness.

Each part draws data whose truth is known, and prints how often the test is wrong, how far the mean is off, or how often
the interval covers.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from cleanset.statistics.basics import Flags, Floats, Ints
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.statistics.calibration import calibration_bins, calibration_error, debiased_calibration_error
from cleanset.statistics.raters import ac1, kappa
from cleanset.studies.realness.equivalence import BOUND, equivalence
from cleanset.studies.realness.mixed import fit
from cleanset.studies.realness.planning import PUBLISHED_FIT
from cleanset.studies.robustness.results import DEFINITIONS
from cleanset.studies.robustness.scenarios.by_image import by_image
from cleanset.studies.robustness.scenarios.measures import sampled_score, spread, squared_deviations
from cleanset.studies.robustness.scenarios.regression import FACTORS, regression
from measuring import print_machine, print_table

DATA_SETS = 300
DESIGN = (12, 6, 6, 12)
"""Classes, images of each, models and scenarios of the regression."""
ECE_IMAGES = (34, 100, 500, 3000)
EXCESS = (0.0, 0.05, 0.1)
"""How much too confident a model is in every image."""
SCORE_DESIGNS = ((12, 6), (100, 3), (1000, 3))
RATED = (10, 30, 100)
MANY_RATED = 200_000
RATERS = 20
RATED_OF_TYPE = ((2, 2), (2, 20), (5, 5), (10, 10), (20, 20))
"""Real and modified images that everyone rates."""


def logistic(values: Floats) -> Floats:
    """The probability of log-odds."""
    found: Floats = 1 / (1 + np.exp(-values))
    return found


def falsely_different() -> Iterator[tuple[str, ...]]:
    """Yield each factor, and how often its F has p < .05 though all its levels are equal: as published, by image."""
    classes, images, models, scenarios = DESIGN
    of_image = np.repeat(np.arange(classes), images)
    levels = (list(range(models)), list(range(scenarios)), list(range(classes)))
    for place, factor in enumerate(FACTORS):
        generator = np.random.default_rng(place)
        rejected = {"published": 0, "by image": 0}
        for _ in range(DATA_SETS):
            image = generator.normal(size=(len(of_image), 1, 1))
            # the other two factors differ, this one does not; an image reacts to a model and a scenario as it does
            effects = [
                0.0 if factor == "model" else 0.3 * generator.normal(size=(1, models, 1)),
                0.0 if factor == "scenario" else 0.7 * generator.normal(size=(1, 1, scenarios)),
                0.0 if factor == "class_index" else 0.7 * generator.normal(size=classes)[of_image][:, None, None],
            ]
            reacting = 0.5 * generator.normal(size=(len(of_image), models, 1))
            reacting = reacting + 0.5 * generator.normal(size=(len(of_image), 1, scenarios))
            chance = logistic(0.3 + image + reacting + effects[0] + effects[1] + effects[2])
            correct = generator.random(chance.shape) < chance
            rejected["published"] += published_p(correct, of_image, factor) < 0.05
            tests = by_image(correct, of_image, levels, FACTORS)["by_image_anova"]
            rejected["by image"] += float(tests[tests["source"] == factor]["p"].iloc[0]) < 0.05
        yield factor, *(f"{each / DATA_SETS:.3f}" for each in rejected.values())


def published_p(correct: Flags, of_image: Ints, factor: str) -> float:
    """The p of a factor in the regression as published, of images x models x scenarios."""
    cells = np.stack([correct[of_image == each].mean(axis=0) for each in np.unique(of_image)], axis=2)
    index = pd.MultiIndex.from_product([range(size) for size in cells.shape], names=FACTORS)
    table = index.to_frame(index=False).assign(accuracy=cells.ravel())
    anova = regression(table, [0, 0, 0])["anova"]
    return float(anova[anova["source"] == factor]["p"].iloc[0])


def calibration() -> Iterator[tuple[str, ...]]:
    """Yield the number of images, the true ECE, and the means of the plain and of the debiased one."""
    generator = np.random.default_rng(0)
    for excess in EXCESS:
        for images in ECE_IMAGES:
            found = []
            for _ in range(DATA_SETS):
                confidences = generator.beta(4, 2, images).clip(excess, 1)
                correct = generator.random(images) < confidences - excess
                bins = calibration_bins(confidences.tolist(), correct.tolist())
                found.append((calibration_error(bins), debiased_calibration_error(confidences, correct)))
            yield f"{images:,}", f"{excess:.2f}", *(f"{each:.3f}" for each in np.mean(found, axis=0))


def scores() -> Iterator[tuple[str, ...]]:
    """Yield the design, the definition, the true Score, how far the mean is off, and how often the interval covers."""
    for classes, images in SCORE_DESIGNS:
        generator = np.random.default_rng([classes, images])
        of_image = np.repeat(np.arange(classes), images)
        resamples = Bootstrap(resamples=300, seed="scenarios 0").resample(of_image)
        hardness = generator.normal(size=classes)
        shifts = -np.abs(generator.normal(size=8))
        # the truth: the accuracy of ever more images of these classes
        normal = np.random.default_rng(0).normal(size=2000)
        of_class = logistic(1.5 + hardness[:, None, None] + shifts[:, None] + normal).mean(axis=2)
        mu = float(logistic(1.5 + hardness[:, None] + normal).mean())
        results: dict[str, list[tuple[float, bool]]] = {definition: [] for definition in DEFINITIONS}
        truths = {
            definition: float(
                1
                - spread(squared_deviations(of_class.mean(axis=0), mu), definition)
                - spread(squared_deviations(of_class.mean(axis=1), mu), definition)
            )
            for definition in DEFINITIONS
        }
        for _ in range(DATA_SETS):
            latent = 1.5 + hardness[of_image] + generator.normal(size=len(of_image))
            unchanged = generator.random(len(of_image)) < logistic(latent)
            correct = generator.random((len(of_image), 8)) < logistic(latent[:, None] + shifts)
            for definition in DEFINITIONS:
                found = sampled_score(correct, unchanged, definition, resamples)
                low, high = found.interval()
                results[definition].append((found.value, low <= truths[definition] <= high))
        for definition in DEFINITIONS:
            value, covers = np.mean(results[definition], axis=0)
            truth = truths[definition]
            yield f"{classes:,} x {images}", definition, f"{truth:.3f}", f"{value - truth:+.3f}", f"{covers:.3f}"


def agreement() -> Iterator[tuple[str, ...]]:
    """Yield the number of images, and how often the intervals of kappa and AC1 of three raters cover."""

    def drawn(generator: np.random.Generator, images: int) -> Ints:
        clean = generator.random(images) < 0.8
        given = generator.random((images, 3)) < np.where(clean, 0.93, 0.25)[:, None]
        return np.stack([given.sum(axis=1), 3 - given.sum(axis=1)], axis=1)

    coefficients: dict[str, Callable[[Ints], object]] = {"kappa": kappa, "AC1": ac1}
    many = drawn(np.random.default_rng(0), MANY_RATED)
    truths = {name: getattr(each(many), "value", np.nan) for name, each in coefficients.items()}
    for images in RATED:
        generator = np.random.default_rng(images)
        covers: dict[str, list[bool]] = {name: [] for name in coefficients}
        for _ in range(DATA_SETS):
            counts = drawn(generator, images)
            for name, each in coefficients.items():
                low, high = getattr(each(counts), "interval", (np.nan, np.nan))
                covers[name].append(low <= truths[name] <= high)
        yield str(images), *(f"{np.mean(each):.3f}" for each in covers.values())


def realness() -> Iterator[tuple[str, ...]]:
    """Yield the numbers of images, how often interval and test against the bound are wrong, and the median half width.

    The variances are the published studies', and the true difference is the bound itself: the test should find it
    smaller in 5 %.
    """
    of_people = [[PUBLISHED_FIT.person, PUBLISHED_FIT.covariance], [PUBLISHED_FIT.covariance, PUBLISHED_FIT.slope]]
    for real, modified in RATED_OF_TYPE:
        generator = np.random.default_rng([real, modified])
        is_modified = np.repeat([False, True], (real, modified))
        deviations = np.sqrt(np.where(is_modified, PUBLISHED_FIT.modified, PUBLISHED_FIT.real))
        people = np.repeat(np.arange(RATERS), real + modified)
        images = np.tile(np.arange(real + modified), RATERS)
        found = []
        for _ in range(DATA_SETS):
            person = generator.multivariate_normal([0, 0], of_people, RATERS)
            latent = (
                person[:, :1]
                + np.where(is_modified, person[:, 1:] - BOUND, 0)
                + deviations * generator.normal(size=real + modified)
            )
            ratings = latent + math.sqrt(PUBLISHED_FIT.residual) * generator.normal(size=latent.shape)
            effect = fit(ratings.ravel(), [*people.astype(str)], [*images.astype(str)], [*is_modified[images]]).modified
            low, high = effect.interval(0.95)
            found.append((low <= -BOUND <= high, equivalence(effect).p_above_lower_bound < 0.05, (high - low) / 2))
        covers, wrong, half = np.array(found).T
        yield f"{real} + {modified}", f"{covers.mean():.3f}", f"{wrong.mean():.3f}", f"{np.median(half):.2f}"


def main() -> None:
    """Print a table for each estimator."""
    print_machine("scipy")
    print_table(
        f"{DATA_SETS} data sets whose levels are equal: share with p < .05",
        ("factor", "as published", "by image"),
        list(falsely_different()),
    )
    print_table(
        f"ECE of one answer an image, mean of {DATA_SETS}", ("images", "true", "plain", "debiased"), list(calibration())
    )
    print_table(
        f"Score, {DATA_SETS} data sets",
        ("classes x images", "definition", "true", "mean less true", "interval covers"),
        list(scores()),
    )
    print_table(
        f"Three raters, {DATA_SETS} sets of images: share of intervals that cover",
        ("images", "kappa", "AC1"),
        list(agreement()),
    )
    print_table(
        f"{DATA_SETS} studies of {RATERS} people whose difference is the bound",
        ("real + modified images", "95 % interval covers", "test wrong", "half width"),
        list(realness()),
    )


if __name__ == "__main__":
    main()
