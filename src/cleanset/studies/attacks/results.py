"""The table of attacked images, and its measures: success, error, distance, queries, worst case by threat model.

The measures are computed from the stored results alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cleanset.classes import ClassTable
from cleanset.evaluation.measures import NAN, Measure, columns_of, metrics_of
from cleanset.plumbing.metrics import Lines
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.bootstrap import Bootstrap, Resamples, percentile_interval
from cleanset.statistics.groups import Units, share_interval
from cleanset.studies.attacks.threats import LEVELS, PROBE, Ball, ThreatModel, ball_text
from cleanset.tables import CLASS, FILE, FLAG, IMAGE_ID, MAX_INT64, SHA256, Column, Table, any_value, between, nullable


def _finite_lists(values: pa.Array, _: ClassTable) -> Flags:
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
    "broken_at": nullable(STEP),  # the step of the search that first found a success; null: none, or unknown
    "is_converged": nullable(FLAG),  # whether further steps changed nothing; null: unknown
}
ATTACKED = Table(key=("file",), file=FILE, image_id=IMAGE_ID, png=FILE, **_COLUMNS)
"""`png`: where it is next to the table."""
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
"""The folder of the lines by threat model in `dvc metrics show`."""
DISTANCES = ("l0", "l2", "linf", "ssim", "lpips", "from_center")
NOTHING = (NAN, NAN, NAN)
"""No value, and no interval."""
NO_IMAGE = "no image was attacked"
NO_SUCCESS = "no attack was a success that the distance was measured of"
NO_BALL = "no attack of a correctly classified image has a ball with a center"
NO_GRADIENT = "no attack follows the gradient"
PROBLEMS = {
    **dict.fromkeys(("clean_accuracy", "clean_error", "error", "queries"), NO_IMAGE),
    **dict.fromkeys(DISTANCES, NO_SUCCESS),
    "success": "no image is classified correctly",
    "converged": "the attack does not report it, or no image is classified correctly",
    "reached": NO_BALL,
    "robust_accuracy": f"bounds alone are known: {NO_GRADIENT}, or there are signs of gradient masking",
    "robust_low": NO_GRADIENT,
}
"""The reason for no value, by measure; the others always have one."""
Numbers = Floats


MEASURE_COLUMNS = columns_of("model", "measure", "images", "value", "low", "high", "problem", attack="change")
"""The columns of the CSV file of measures: an attack, or a threat model, is the change."""


def by_name(lines: Iterable[Measure]) -> dict[tuple[str, str, str], Measure]:
    """The lines by attack, model and measure."""
    return {(line.change, line.model, line.measure): line for line in lines}


def attack_measures(
    attack: str,
    model: str,
    results: pd.DataFrame,
    bootstrap: Bootstrap,
    group_of: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Measure]:
    """The measures of the results of one attack, rows of ATTACKED; `group_of`: the group of each image, by file.

    `clean_error` and `error`: the misclassified images before and after, of all. `success`: those that the attack
    made the model misclassify, of those that it classified correctly. `queries`: the mean of all. `l0`, `l2`, `linf`,
    `ssim`, `lpips` (to the image; LPIPS where it was measured) and `from_center` (in the attack's norm, to the center
    of its ball): the means of the successes. `reached`: the mean of `from_center` over all images that the model
    classified correctly, successes or not. `converged`: the number of these whose search more steps no longer changed,
    if the attack reports it.

    Intervals of shares are Wilson's, intervals of means from a bootstrap, both by groups if images have groups; a
    constant mean lacks one. The resamples of the same images are the same for all attacks and models.
    """
    count = len(results)
    units = _units_of_files(results, group_of)
    is_several = (count if units is None else units.count) > 1
    resamples = bootstrap.resample(results["class_index"].to_numpy(), units) if is_several else None
    correct = results["was_correct"].to_numpy(bool)
    error = results["is_error"].to_numpy(bool)
    every = np.ones(count, bool)
    success = correct & error
    for name, of, among in (("clean_error", ~correct, every), ("error", error, every), ("success", success, correct)):
        images = int(among.sum())
        # a bootstrap within classes has no variation where an attack breaks all images, or none
        numbers = _share(of, among, units)
        yield _measure(attack, model, name, images=images, numbers=numbers)
    told = correct & results["is_converged"].notna().to_numpy(bool)
    numbers = _share(results["is_converged"].eq(True).fillna(value=False).to_numpy(bool), told, units)
    yield _measure(attack, model, "converged", images=int(told.sum()), numbers=numbers)
    for name, column, of in (
        ("queries", "queries", every),
        *((each, each, success) for each in DISTANCES),
        ("reached", "from_center", correct),
    ):
        values = results[column].astype(float).to_numpy(np.float64)
        among = of & ~np.isnan(values)
        # values that do not count are multiplied by 0, which would leave a NaN one
        numbers = _mean_among(np.nan_to_num(values), among, resamples)
        yield _measure(attack, model, name, images=int(among.sum()), numbers=numbers)


def _units_of_files(rows: pd.DataFrame, group_of: Mapping[str, str]) -> Units | None:
    """The groups of the files of some rows; None if no two of them share one."""
    return Units.of([group_of.get(file, "") for file in rows["file"]]) if group_of else None


def _share(of: Flags, among: Flags, units: Units | None) -> tuple[float, float, float]:
    """The share of some images and its interval; NaN without images."""
    if not among.any():
        return NOTHING
    chosen = of[among]
    return float(chosen.mean()), *share_interval(chosen, None if units is None else units.only(among))


def _measure(attack: str, model: str, measure: str, *, images: int, numbers: tuple[float, float, float]) -> Measure:
    """A measure of these numbers: value, and the ends of the interval."""
    value, low, high = map(_nine_digits, numbers)
    problem = PROBLEMS.get(measure, "")
    return Measure.of(value, (low, high), problem, change=attack, model=model, measure=measure, images=images)


@dataclass(frozen=True, slots=True, eq=False)
class ProbedImages:
    """The images that the probe for signs of gradient masking searched near, and what it found."""

    rows: pd.DataFrame
    """By file: was_correct, is_error of the candidate, and its distances l2 and linf from the image."""

    ball: Ball
    """The ball that was searched."""

    def inside(self, ball: Ball) -> pd.DataFrame:
        """The rows with the errors in a ball alone."""
        distances = self.rows["linf" if ball.norm == "Linf" else "l2"].to_numpy(np.float64)
        is_inside = np.asarray(distances <= ball.levels() / LEVELS)
        return self.rows.assign(is_error=self.rows["is_error"].to_numpy(bool) & is_inside)


def worst_case(results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """For each image that every attack was tried on, its robustness against all: a row by file, sorted.

    `results`: rows of ATTACKED by attack, of one model. `is_robust`: the model classifies the image correctly and no
    attack made it misclassify it; `reached`: the largest distance of a candidate from the center of its ball, NaN if
    no attack has one.
    """
    columns = ["file", "was_correct", "is_error", "from_center"]
    joined = pd.concat([each.reindex(columns=columns) for each in results.values()])
    of_file = joined.groupby("file", sort=True)
    found = of_file.agg(was_correct=("was_correct", "all"), is_error=("is_error", "any"))
    found["is_robust"] = found["was_correct"] & ~found["is_error"]
    found["reached"] = joined["from_center"].astype(float).groupby(joined["file"], sort=True).max()
    return found[of_file.size() == len(results)].drop(columns="is_error").reset_index()


def _broken_by_probe_alone(results: Mapping[str, pd.DataFrame], probed: pd.DataFrame) -> list[str]:
    """The files of images that no attack breaks and the probe does; `results` by attack, of one model."""
    withstood = pd.concat([each[each["was_correct"]] for each in results.values()])
    broken = set(withstood["file"][withstood["is_error"]])
    among = set(withstood["file"]) - broken
    rows = probed[probed["was_correct"] & probed["is_error"]]
    return [file for file in rows["file"] if file in among]


@dataclass(frozen=True, slots=True)
class Trust:
    """The images on which attacks that follow the model's gradient can be trusted."""

    checked: frozenset[str]
    """The images whose gradient was checked, by file."""

    untrusted: frozenset[str] | None
    """Those with a sign of gradient masking; None: all images of the model."""

    def of(self, files: Iterable[str]) -> Flags:
        """Whether each image can be trusted.

        One that was not checked can be if no sign was seen on the others.
        """
        untrusted = self.untrusted
        if untrusted is None:
            return np.zeros(len(list(files)), bool)
        found = [file not in untrusted and (file in self.checked or not untrusted) for file in files]
        return np.array(found, bool)


ALL_TRUSTED = Trust(checked=frozenset(), untrusted=frozenset())
"""No sign was seen, or none was looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Attacked:
    """The results of all attacks on one model."""

    results: Mapping[str, pd.DataFrame]
    """Rows of ATTACKED by attack."""

    probed: ProbedImages | None = None
    """The candidates of the probe; None without it."""

    trust: Trust = ALL_TRUSTED
    """The images whose gradient can be trusted."""

    @property
    def is_trusted(self) -> bool:
        """Whether no sign of gradient masking was seen on any image."""
        return self.trust.untrusted == frozenset()

    def of(self, threat: ThreatModel) -> dict[str, pd.DataFrame]:
        """The results of the attacks of a threat model."""
        return {name: self.results[name] for name in threat.attacks if name in self.results}

    def in_ball(self, threat: ThreatModel) -> pd.DataFrame | None:
        """What the probe found in the ball of a threat model, if it searched one around the image there."""
        if self.probed is None or threat.ball is None:
            return None
        return self.probed.inside(threat.ball)


def tried_in(threat: ThreatModel, attacked: Attacked) -> dict[str, pd.DataFrame]:
    """The results of the attacks of a threat model, and of the probe if it breaks an image that they do not."""
    tried = attacked.of(threat)
    probed = attacked.in_ball(threat)
    if tried and probed is not None and _broken_by_probe_alone(tried, probed):
        tried[PROBE] = probed
    return tried


def probe_text(attacked: Attacked, threats: Sequence[ThreatModel]) -> str | None:
    """What the probe found on a model, and where that counts; None if it made no search."""
    if attacked.probed is None:
        return None
    rows = attacked.probed.rows
    correct = int(rows["was_correct"].sum())
    broken = int((rows["was_correct"] & rows["is_error"]).sum())
    texts = [f"the probe breaks {broken} of {correct} correctly classified images in {ball_text(attacked.probed.ball)}"]
    for threat in threats:
        inside = attacked.in_ball(threat)
        tried = attacked.of(threat)
        if inside is not None and tried and (alone := _broken_by_probe_alone(tried, inside)):
            texts.append(f"{len(alone)} of them withstood every attack in {threat.name} and now count as broken there")
    return "; ".join(texts)


ROBUST_MEASURES = ("clean_accuracy", "robust_accuracy", "robust_low", "robust_high", "robust_at_most", "reached")
"""The measures of a threat model."""


def threat_measures(
    threat: ThreatModel, model: str, attacked: Attacked, group_of: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Measure]:
    """Yield the measures of a threat model, under its name in place of an attack's; `group_of` as in `attack_measures`.

    All but the last are of the images that each of its attacks was tried on; the probe is such an attack if it breaks
    an image that the others do not, and searched the same ball or one inside it.

    `clean_accuracy`: the share that is classified correctly. `robust_low`: the share that no attack breaks although
    its attacks can be trusted. `robust_high`: the share that no attack breaks. `robust_accuracy`: both, where they are
    equal and an attack followed the gradient; else NaN. It alone and `clean_accuracy` have an interval, Wilson's: a
    bound has none. `reached`: the mean over the correctly classified images of the largest distance that an attack
    reached. `robust_at_most`: an upper bound over all images that any attack was tried on, where these are more.
    """
    tried = tried_in(threat, attacked)
    if not tried:
        return
    every = pd.concat([each for name, each in tried.items() if name != PROBE])
    is_searched = threat.is_searched_by_gradient or PROBE in tried
    found = worst_case(tried)
    count = len(found)
    if not count:
        return
    if attacked.probed is not None and attacked.probed.ball == threat.ball:
        is_searched |= set(found["file"]) <= set(attacked.probed.rows["file"])
    units = _units_of_files(found, group_of)
    every_image = np.ones(count, bool)
    robust = int(found["is_robust"].sum())
    withstood = int((found["is_robust"] & attacked.trust.of(found["file"])).sum())
    is_known = is_searched and withstood == robust
    lines = {
        "clean_accuracy": _share(found["was_correct"].to_numpy(bool), every_image, units),
        "robust_accuracy": _share(found["is_robust"].to_numpy(bool), every_image, units) if is_known else NOTHING,
        "robust_low": (withstood / count, NAN, NAN) if is_searched else NOTHING,
        "robust_high": (robust / count, NAN, NAN),
    }
    for measure, numbers in lines.items():
        yield _measure(threat.name, model, measure, images=count, numbers=numbers)
    reached = found["reached"][found["was_correct"]].dropna()
    mean = float(reached.mean()) if len(reached) else NAN
    yield _measure(threat.name, model, "reached", images=len(reached), numbers=(mean, NAN, NAN))
    all_files = set(every["file"])
    if len(all_files) > count:
        broken = pd.concat([every, *([tried[PROBE]] if PROBE in tried else [])])
        lost = set(broken["file"][~broken["was_correct"] | broken["is_error"]]) & all_files
        share = 1 - len(lost) / len(all_files)
        yield _measure(threat.name, model, "robust_at_most", images=len(all_files), numbers=(share, NAN, NAN))


def _nine_digits(value: float) -> float:
    """The value with nine digits: machines add up numbers that are not whole in another order."""
    return float(f"{value:.9g}")


def _mean_among(values: Numbers, among: Flags, resamples: Resamples | None) -> tuple[float, float, float]:
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
    interval = percentile_interval(sums[counts > 0] / counts[counts > 0], resamples.level)
    low = _nine_digits(interval.low)
    high = _nine_digits(interval.high)
    return (value, low, high) if low < high else (value, NAN, NAN)


SHOWN_MEASURES = ("robust_accuracy", "robust_low", "robust_high", "success", "error", "queries")
"""The measures in `dvc metrics show`; the first and error come with their intervals."""
WITH_INTERVAL = ("robust_accuracy", "error")


def measure_lines(
    attacked: Mapping[str, Attacked],
    threats: Sequence[ThreatModel],
    bootstrap: Bootstrap,
    group_of: Mapping[str, str] = MappingProxyType({}),
) -> list[Measure]:
    """The measures of all threat models by model, then by attack; `attacked` by model, `group_of`: groups by file."""
    lines = list[Measure]()
    for model, each in attacked.items():
        for threat in threats:
            lines += threat_measures(threat, model, each, group_of)
    for model, each in attacked.items():
        for name, found in each.results.items():
            lines += attack_measures(name, model, found, bootstrap, group_of)
    return lines


def attack_metrics(lines: Iterable[Measure], threats: Sequence[ThreatModel]) -> Lines:
    """The lines of `dvc metrics show`."""
    folders = {threat.name: f"{WORST_CASE}/{threat.metric}" for threat in threats}

    def name(line: Measure) -> str:
        return f"{folders[line.change] if line.measure in ROBUST_MEASURES else line.change}/{line.measure}"

    return metrics_of((line for line in lines if line.measure in SHOWN_MEASURES), name, WITH_INTERVAL)
