"""Success, error, distance and queries of an attack on a model, and what withstands all attacks, with intervals.

All from the stored results alone.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.bootstrap import Bootstrap, Resamples, percentile_interval
from cleanset.statistics.paired import wilson

DISTANCES = ("l0", "l2", "linf", "ssim", "lpips", "from_center")
NAN = float("nan")
Numbers = npt.NDArray[np.float64]


class AttackMeasure(NamedTuple):
    """One measure of one attack on one model; `images` is how many it is the mean over. NaN where it has no value."""

    attack: str
    model: str
    measure: str
    images: int
    value: float
    low: float
    high: float


MEASURES_COLUMNS: Mapping[str, str] = {
    "attack": "the name of an attack, or worst_case for all of them together",
    "model": "a role, or the name of a further or a wrapped model",
    "measure": "the name of a measure",
    "images": "the number of images that it is over",
    "value": "the measure",
    "low": "the lower end of the 95 % interval",
    "high": "the upper end of the 95 % interval",
}
"""The columns of attack_measures.csv, the fields of AttackMeasure, in words."""


def attack_measures(attack: str, model: str, results: pd.DataFrame, bootstrap: Bootstrap) -> Iterator[AttackMeasure]:
    """The measures of the results of one attack, rows of ATTACKED.

    `clean_error` and `error`: the misclassified images before and after, of all. `success`: those that the attack
    made the model misclassify, of those that it classified correctly. `queries`: the mean of all. `l0`, `l2`, `linf`,
    `ssim`, `lpips` (to the image; LPIPS where it was measured) and `from_center` (in the attack's norm, to the center
    of its ball): the means of the successes.

    The intervals of shares are Wilson's, those of means from a bootstrap; a mean has none that nothing varies. The
    resamples of the same images are the same for all attacks and models.
    """
    count = len(results)
    resamples = bootstrap.resample(results["class_index"].to_numpy()) if count > 1 else None
    correct, error = results["was_correct"].to_numpy(bool), results["is_error"].to_numpy(bool)
    every, success = np.ones(count, bool), correct & error
    for name, of, among in (("clean_error", ~correct, every), ("error", error, every), ("success", success, correct)):
        images = int(among.sum())
        value = of[among].mean() if images else NAN
        # a bootstrap within classes has no variation where an attack breaks all images, or none
        ends = wilson(int(of[among].sum()), images) if images else (NAN, NAN)
        yield AttackMeasure(attack, model, name, images, *map(nine_digits, (value, *ends)))
    columns: list[tuple[str, Numbers, npt.NDArray[np.bool_]]] = [
        ("queries", results["queries"].to_numpy(np.float64), every),
    ]
    for name in DISTANCES:
        values = results[name].astype(float).to_numpy(np.float64)
        # values that do not count are multiplied by 0, which would leave a NaN one
        columns.append((name, np.nan_to_num(values), success & ~np.isnan(values)))
    for name, values, among in columns:
        value, low, high = mean_among(values, among, resamples)
        yield AttackMeasure(attack, model, name, int(among.sum()), *map(nine_digits, (value, low, high)))


def worst_case(results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """For each image that any attack was tried on, what is left of it: a row by file, sorted.

    `results`: rows of ATTACKED by attack, of one model. `is_robust`: the model classifies the image correctly and no
    attack made it misclassify it; `attacks`: how many attacks were tried on it.
    """
    columns = ["file", "class_index", "was_correct", "is_error"]
    joined = pd.concat([each[columns] for each in results.values()])
    of_file = joined.groupby("file", sort=True)
    found = of_file.agg(class_index=("class_index", "first"), was_correct=("was_correct", "all"))
    found["is_robust"] = found["was_correct"] & ~of_file["is_error"].any()
    return found.assign(attacks=of_file.size()).reset_index()


def worst_case_measures(name: str, model: str, results: Mapping[str, pd.DataFrame]) -> list[AttackMeasure]:
    """The measures of all attacks together, under a name in place of an attack's; none without an attack.

    `clean_accuracy` and `robust_accuracy`: of all images, those that are classified correctly before any attack, and
    those that no attack broke. `tried_by_all`: the share of the images on which every attack was tried. Intervals are
    Wilson's, which have a width at 0 and 1, too.
    """
    if not results:
        return []
    found = worst_case(results)
    flags = {
        "clean_accuracy": found["was_correct"],
        "robust_accuracy": found["is_robust"],
        "tried_by_all": found["attacks"] == len(results),
    }
    lines = []
    for measure, column in flags.items():
        low, high = wilson(int(column.sum()), len(found))
        ends = (NAN, NAN) if measure == "tried_by_all" else (low, high)
        lines.append(AttackMeasure(name, model, measure, len(found), *map(nine_digits, (column.mean(), *ends))))
    return lines


def nine_digits(value: float) -> float:
    """The value with nine digits: machines add up numbers that are not whole in another order."""
    return float(f"{value:.9g}")


def mean_among(
    values: Numbers, among: npt.NDArray[np.bool_], resamples: Resamples | None
) -> tuple[float, float, float]:
    """The mean of the values of some images and the ends of its interval: a ratio of means in each resample.

    Resamples without any such image are left out. NaN without images; NaN ends without resamples, and where all
    resamples have the same mean.
    """
    if not among.any():
        return NAN, NAN, NAN
    value = float(values[among].mean())
    if resamples is None:
        return value, NAN, NAN
    sums, counts = resamples.means(np.stack((values * among, among.astype(np.float64)), axis=1)).T
    # a ratio of two means over all images: in a resample the number of successes varies, too
    interval = percentile_interval(sums[counts > 0] / counts[counts > 0])
    low, high = nine_digits(interval.low), nine_digits(interval.high)
    return (value, NAN, NAN) if low == high else (value, low, high)
