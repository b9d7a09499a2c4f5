"""The table of attacked images, and its measures: success, error, distance, queries, worst case over all attacks.

The measures are computed from the stored results alone, and have intervals.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.metrics import Lines, metric_lines
from cleanset.statistics.bootstrap import Bootstrap, Resamples, percentile_interval
from cleanset.statistics.paired import wilson
from cleanset.tables import CLASS, FILE, FLAG, IMAGE_ID, MAX_INT64, SHA256, Column, Table, any_value, between, nullable


def _finite_lists(values: pa.Array, _: ClassTable) -> NDArray[np.bool_]:
    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    parents = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
    broken = ~np.isfinite(pc.list_flatten(values).to_numpy(zero_copy_only=False))
    valid = np.asarray(lengths >= 2)
    valid[parents[broken]] = False
    return valid


SEED = Column(pa.int64(), "a seed from 0 to 2**32 - 1", between(0, 2**32 - 1))
QUERIES = Column(pa.int64(), "a number of queries", between(0, MAX_INT64))
LOGITS = Column(pa.list_(pa.float32()), "two or more finite logits", _finite_lists)
PLACES = Column(pa.int32(), "a number of places", between(0, 2**31 - 1))
DISTANCE = Column(pa.float64(), "a distance from 0", between(0, 1e9))
LEARNED = Column(pa.float32(), "a distance from 0", between(0, 1e9))
SIMILARITY = Column(pa.float32(), "a similarity from -1 to 1", between(-1, 1))
NOTICE_TEXTS = Column(pa.list_(pa.string()), "a list of texts", any_value)
PNG = Column(pa.binary(), "a PNG", any_value)
STEP = Column(pa.int32(), "a number of steps", between(0, 2**31 - 1))

_COLUMNS: dict[str, Any] = {
    "class_index": CLASS,  # of the image, also where the model has two groups of classes
    "source_sha256": SHA256,  # of the file in the finished set
    "png_sha256": SHA256,
    "seed": nullable(SEED),  # of what was drawn; null: nothing
    "queries": QUERIES,
    "logits_before": LOGITS,  # in float64, stored as float32; a logit for each class, or for each group in their order
    "logits_after": LOGITS,
    "was_correct": FLAG,  # the top-1 class is the image's, or the top-1 group that of its class
    "is_error": FLAG,
    "l0": PLACES,
    "l2": DISTANCE,  # of pixels in 0..1, as linf
    "linf": DISTANCE,
    "ssim": SIMILARITY,
    "lpips": nullable(LEARNED),  # null: not measured
    "from_center": nullable(DISTANCE),  # in the attack's norm, from what its ball is around; null: no ball
    "notices": NOTICE_TEXTS,  # of the attack's library
    "broken_at": nullable(STEP),  # the step of the search that first found a success; null: none, or not told
    "is_converged": nullable(FLAG),  # whether further steps changed nothing; null: not told
}
ATTACKED = Table(key=("file",), file=FILE, image_id=IMAGE_ID, png=FILE, **_COLUMNS)
"""`png`: where it lies beside the table."""
NAMED_ATTACKED = Table(key=("file",), file=FILE, image_id=FILE, png=FILE, **_COLUMNS)
"""Rows of ATTACKED for images outside an edition, whose names may be of any form."""
SHARD = Table(image_id=FILE, content=PNG, **_COLUMNS)
"""Finished groups, by file."""


def png_name(file: str) -> str:
    """The name of the PNG for a file of the study: a whole image and its crop may differ in the suffix only."""
    return f"images/{file}.png"


def attacked_rows(shards: pd.DataFrame, image_ids: dict[str, str]) -> pd.DataFrame:
    """The rows of ATTACKED from the rows of SHARD; `image_ids` by file."""
    files = shards["image_id"].tolist()
    names = {"file": files, "image_id": [image_ids[file] for file in files], "png": [png_name(file) for file in files]}
    return shards.drop(columns=["image_id", "content"]).assign(**names)[ATTACKED.names]


WORST_CASE = "worst_case"
"""In place of an attack's name: of all attacks on an image the one that breaks it, if any does."""
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

    @property
    def is_defined(self) -> bool:
        """Whether it has a value."""
        return not isnan(self.value)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, if it has one."""
        return None if isnan(self.low) else (self.low, self.high)


def by_name(lines: Iterable[AttackMeasure]) -> dict[tuple[str, str, str], AttackMeasure]:
    """The lines by attack, model and measure."""
    return {(line.attack, line.model, line.measure): line for line in lines}


def attack_measures(attack: str, model: str, results: pd.DataFrame, bootstrap: Bootstrap) -> Iterator[AttackMeasure]:
    """The measures of the results of one attack, rows of ATTACKED.

    `clean_error` and `error`: the misclassified images before and after, of all. `success`: those that the attack
    made the model misclassify, of those that it classified correctly. `queries`: the mean of all. `l0`, `l2`, `linf`,
    `ssim`, `lpips` (to the image; LPIPS where it was measured) and `from_center` (in the attack's norm, to the center
    of its ball): the means of the successes. `reached`: the mean of `from_center` over all images that the model
    classified correctly, successes or not. `converged`: of these, those whose search more steps no longer changed,
    where the attack tells it.

    Intervals of shares are Wilson's, intervals of means from a bootstrap; a constant mean lacks one. The
    resamples of the same images are the same for all attacks and models.
    """
    count = len(results)
    resamples = bootstrap.resample(results["class_index"].to_numpy()) if count > 1 else None
    correct = results["was_correct"].to_numpy(bool)
    error = results["is_error"].to_numpy(bool)
    every = np.ones(count, bool)
    success = correct & error
    for name, of, among in (("clean_error", ~correct, every), ("error", error, every), ("success", success, correct)):
        images = int(among.sum())
        # a bootstrap within classes has no variation where an attack breaks all images, or none
        numbers = (of[among].mean(), *wilson(int(of[among].sum()), images)) if images else (NAN, NAN, NAN)
        yield AttackMeasure(attack, model, name, images, *map(nine_digits, numbers))
    converged = results["is_converged"][correct].dropna().astype(bool)
    numbers = (converged.mean(), *wilson(int(converged.sum()), len(converged))) if len(converged) else (NAN, NAN, NAN)
    yield AttackMeasure(attack, model, "converged", len(converged), *map(nine_digits, numbers))
    for name, column, of in (
        ("queries", "queries", every),
        *((each, each, success) for each in DISTANCES),
        ("reached", "from_center", correct),
    ):
        values = results[column].astype(float).to_numpy(np.float64)
        among = of & ~np.isnan(values)
        # values that do not count are multiplied by 0, which would leave a NaN one
        numbers = mean_among(np.nan_to_num(values), among, resamples)
        yield AttackMeasure(attack, model, name, int(among.sum()), *map(nine_digits, numbers))


def worst_case(results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """For each image that any attack was tried on, its robustness against all: a row by file, sorted.

    `results`: rows of ATTACKED by attack, of one model. `is_robust`: the model classifies the image correctly and no
    attack made it misclassify it; `attacks`: how many attacks were tried on it; `reached`: the largest distance of a
    candidate from the center of its ball, NaN where no attack has one.
    """
    columns = ["file", "class_index", "was_correct", "is_error", "from_center"]
    joined = pd.concat([each[columns] for each in results.values()])
    of_file = joined.groupby("file", sort=True)
    found = of_file.agg(class_index=("class_index", "first"), was_correct=("was_correct", "all"))
    found["is_robust"] = found["was_correct"] & ~of_file["is_error"].any()
    found["reached"] = joined["from_center"].astype(float).groupby(joined["file"], sort=True).max()
    return found.assign(attacks=of_file.size()).reset_index()


def worst_case_measures(
    name: str, model: str, results: Mapping[str, pd.DataFrame], *, is_masked: bool = False
) -> Iterator[AttackMeasure]:
    """Yield the measures of all attacks together, under a name in place of an attack's.

    `clean_accuracy` and `robust_accuracy`: of all images, those that are classified correctly before any attack, and
    those that no attack broke. `tried_by_all`: the share of the images on which every attack was tried. `reached`: the
    mean over the correctly classified images of the largest distance that an attack reached. Intervals are Wilson's,
    which have a width at 0 and 1, too. `is_masked`: the model shows a sign of gradient masking, so that these
    attacks cannot tell its robust accuracy, which is undefined.
    """
    if not results:
        return
    found = worst_case(results)
    flags = {
        "clean_accuracy": found["was_correct"],
        "robust_accuracy": found["is_robust"],
        "tried_by_all": found["attacks"] == len(results),
    }
    for measure, column in flags.items():
        ends = (NAN, NAN) if measure == "tried_by_all" else wilson(int(column.sum()), len(found))
        values = (NAN, NAN, NAN) if is_masked and measure == "robust_accuracy" else (column.mean(), *ends)
        yield AttackMeasure(name, model, measure, len(found), *map(nine_digits, values))
    reached = found["reached"][found["was_correct"]].dropna()
    mean = float(reached.mean()) if len(reached) else NAN
    yield AttackMeasure(name, model, "reached", len(reached), nine_digits(mean), NAN, NAN)


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
    low = nine_digits(interval.low)
    high = nine_digits(interval.high)
    return (value, NAN, NAN) if low == high else (value, low, high)


SHOWN_MEASURES = ("robust_accuracy", "success", "error", "queries")
"""The measures in `dvc metrics show`; the first and error come with their intervals."""
WITH_INTERVAL = ("robust_accuracy", "error")


def measure_lines(
    models: Sequence[str],
    results: Mapping[tuple[str, str], pd.DataFrame],
    of_image: Collection[str],
    bootstrap: Bootstrap,
    masked: Collection[str] = (),
) -> list[AttackMeasure]:
    """The measures of all attacks together by model, then by attack; `results` by attack and model.

    `of_image`: the attacks that can break an image, which are taken together. `masked`: the models with a sign of
    gradient masking.
    """
    lines = list[AttackMeasure]()
    for model in models:
        of_model = {name: found for (name, of), found in results.items() if of == model and name in of_image}
        lines += worst_case_measures(WORST_CASE, model, of_model, is_masked=model in masked)
    for (name, model), found in results.items():
        lines += attack_measures(name, model, found, bootstrap)
    return lines


def metrics_of(lines: Iterable[AttackMeasure]) -> Lines:
    """The lines of `dvc metrics show`."""
    return metric_lines(
        (
            f"{line.attack}/{line.measure}",
            line.model,
            (line.value, line.low, line.high) if line.measure in WITH_INTERVAL else (line.value,),
        )
        for line in lines
        if line.measure in SHOWN_MEASURES
    )
