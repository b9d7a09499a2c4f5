"""Measures of models on selections of the images, with intervals, from answers as arrays.

CE is the ratio of two mean errors, mCE a mean of CEs, FR the ratio of two FPs: each is computed in every resample as
it is of all images. Models that are compared must be resampled together (one `Resamples` for all of them).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.statistics.basics import LEVEL, Floats
from cleanset.statistics.bootstrap import Bootstrap, Interval, Resamples, percentile_interval, reflected_interval
from cleanset.statistics.paired import holm, sign_test_p
from cleanset.validation import Section, shown

UNCHANGED = "unchanged"
"""The base image that corruptions and scenarios start from."""


CLEAN = "clean"
"""The image with the model's own preprocessing."""


class FamilySection(Section):
    """The section of params.yaml that decides a family's changed images.

    `published`: a folder of published images, which are read instead of made; None: the images are made. `names`: the
    changes; a group among them is replaced by its members.
    """

    # before names, which are checked by it
    published: Annotated[str, Field(min_length=1)] | None = None
    names: Annotated[list[str], Field(default_factory=list)]

    def changes(self) -> list[tuple[str, int]]:
        """Each change and its step, a severity or a frame; 0 for neither."""
        raise NotImplementedError


def expand_groups(
    what: str,
    wanted: Iterable[str],
    groups: Mapping[str, tuple[str, ...]],
    known: tuple[str, ...],
    listed: tuple[str, ...] | None = None,
) -> tuple[str, ...]:
    """The names and the members of the groups among `wanted`, in the order of `known`, each once.

    Raises CleansetError for a name that is neither known nor a group; `what` is the singular of the names.
    `listed`: the known names that its message lists; None: all.
    """
    # a single name is a sequence of letters otherwise
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    found: set[str] = set()
    for name in wanted:
        # a misspelled name must not silently measure less
        if name not in groups and name not in known:
            names = ", ".join(listed or known)
            raise CleansetError(
                f"unknown {what} {shown(name)}; expected one of {names}, or a group: {', '.join(groups)}"
            )
        found.update(groups.get(name, (name,)))
    return tuple(name for name in known if name in found)


def check_names(names: list[str], expand: Callable[[list[str]], object]) -> list[str]:
    """The names, as pydantic's validators take them: ValueError for one that `expand` does not know."""
    try:
        expand(names)
    except CleansetError as error:
        raise ValueError(str(error)) from None
    return names


Definition = Literal["as_written", "as_published"]
DEFINITIONS: tuple[Definition, ...] = ("as_published", "as_written")
"""The formula behind the published code or numbers, and the text's."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A statistic of all images, and of each resample; `shifted` where resampling shifts it, as it does Score.

    `largest`: the largest value that it can have, and its interval with it.
    `by_image`: the image's part of a mean, for paired tests; None for others, such as Score. A ratio's is relative
    to the divisor of all images. `measure` and `change`: the names that it is reported under; `problem`: why it is NaN.
    """

    value: float
    draws: Floats
    shifted: bool = False
    by_image: Floats | None = None
    largest: float = np.inf
    measure: str = ""
    change: str = ""
    problem: str = ""

    def named(self, measure: str, change: str = "", problem: str = "") -> "Sampled":
        """The statistic as a measure of a change, or without `change` of all of them."""
        return replace(self, measure=measure, change=change, problem=problem)

    def interval(self, level: float = LEVEL) -> Interval:
        """The bootstrap interval: percentiles and the value, or percentiles reflected at it if resampling shifts it.

        NaN ends for a measure without an interval: a statistic that nothing varies, such as CE relative to itself, or a
        ratio whose divisor is 0 in some resamples.
        """
        if self.shifted:
            low, high = reflected_interval(self.value, self.draws, level)
            found = Interval(low, float(np.minimum(high, self.largest)))
        else:
            ends = percentile_interval(self.draws, level)
            # pseudo-images draw the percentiles to the middle; NaN stays NaN
            found = Interval(float(np.minimum(ends.low, self.value)), float(np.maximum(ends.high, self.value)))
        has_width = np.isfinite([found.low, found.high]).all() and found.low < found.high
        return found if has_width else Interval(np.nan, np.nan)

    def __sub__(self, other: "Sampled") -> "Sampled":
        """The difference, resample by resample."""
        by_image = None
        if self.by_image is not None and other.by_image is not None:
            by_image = self.by_image - other.by_image
        # of two ratios that are both infinite in a resample
        with np.errstate(invalid="ignore"):
            draws = self.draws - other.draws
        return Sampled(self.value - other.value, draws, self.shifted or other.shifted, by_image)

    def __truediv__(self, other: "Sampled") -> "Sampled":
        """The ratio, resample by resample; NaN or infinite where the divisor is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.float64(self.value) / other.value
            draws = self.draws / other.draws
            by_image = None if self.by_image is None else self.by_image / other.value
        return Sampled(float(value), draws, self.shifted or other.shifted, by_image)

    def scaled(self, factor: float) -> "Sampled":
        """The statistic times a number."""
        by_image = None if self.by_image is None else self.by_image * factor
        return Sampled(self.value * factor, self.draws * factor, self.shifted, by_image)


MIN_REFERENCE_SUM = 10
"""Errors, flips or units of top-5 distance of a reference in all, below which a ratio to it is undefined."""


def ratio_to(reference: Sampled, own: Sampled, answers: float) -> Sampled:
    """A mean over answers relative to a reference's; NaN where the reference's sum is below MIN_REFERENCE_SUM.

    `answers`: how many the reference's mean is of; infinitely many for a published one, which need only be above 0.
    """
    # means of whole numbers are sums again but for rounding
    if np.rint(reference.value * answers) >= MIN_REFERENCE_SUM:
        return own / reference
    return Sampled(float("nan"), np.full_like(own.draws, np.nan))


def undefined_names(values: Mapping[str, Sampled], over: Iterable[str]) -> list[str]:
    """The names of `over` whose statistic is undefined, so that their mean is, too."""
    return [name for name in over if not np.isfinite(values[name].value)]


def constant(value: float, resamples: Resamples) -> Sampled:
    """A number that does not depend on the images, such as a published error; NaN for a statistic that is missing."""
    return Sampled(value, np.full(len(resamples.counts), value))


def sampled_means(
    values: npt.ArrayLike, names: Sequence[str], resamples: Resamples, answers: str, largest: npt.ArrayLike = 1
) -> dict[str, Sampled]:
    """The mean over the images of each column of values (images x names), by name.

    `answers`: whose they are, for pseudo-images of their own; `largest`: the largest possible value, one number or one
    a column.
    """
    array = np.asarray(values)
    draws = resamples.adjusted_means(array, answers, largest)
    means = array.sum(axis=0, dtype=np.float64) / len(array)
    return {
        name: Sampled(float(means[place]), draws[:, place], by_image=array[:, place].astype(np.float64))
        for place, name in enumerate(names)
    }


def mean_of(values: Mapping[str, Sampled], over: Sequence[str]) -> Sampled:
    """The mean of the named statistics, at least one, such as mCE over the test corruptions; KeyError if one lacks."""
    each = [values[name] for name in over]
    # resample by resample: the statistics are of the same images and so not independent
    draws: Floats = np.mean([one.draws for one in each], axis=0)
    parts = [one.by_image for one in each if one.by_image is not None]
    by_image = np.mean(parts, axis=0) if len(parts) == len(each) else None
    return Sampled(float(np.mean([one.value for one in each])), draws, any(one.shifted for one in each), by_image)


Chosen = npt.NDArray[np.bool_]
"""A flag for each image: whether it is measured."""
Answers = Mapping[str, npt.NDArray[Any]]
"""A model's answers by change, CLEAN and UNCHANGED among them: images x steps, with a value or a row of them each."""


class ChangeStep(NamedTuple):
    """A change and its severity or frame; 0 for neither."""

    change: str
    step: int

    def __str__(self) -> str:
        return f"{self.change} {self.step}" if self.step else self.change


SHOWN_CELLS = 3
"""Maximum number of cells that a message names."""


def answers_by_change(
    files: pd.Series, answers: pd.DataFrame, changes: Iterable[tuple[str, int]], values: npt.NDArray[Any], seen: Chosen
) -> Answers:
    """A model's answers by change; `values` has one, or a row of them, for each answer.

    `files`: all images, and `seen`: which of them the model saw; the others get 0. `answers`: file, change and step of
    each. `changes`: the steps of a change follow each other. Raises CleansetError as `cube`.
    """
    keys = pd.DataFrame({"file": answers["file"], "change": list(map(ChangeStep, answers["change"], answers["step"]))})
    steps = list(map(ChangeStep._make, changes))
    found = cube(keys, {"file": files[seen].tolist(), "change": steps}, values)
    of_all = np.zeros((len(seen), *found.shape[1:]), found.dtype)
    of_all[seen] = found
    counts = Counter(each.change for each in steps)
    ends = np.cumsum(list(counts.values()))[:-1]
    return dict(zip(counts, np.split(of_all, ends, axis=1), strict=True))


def cube(
    rows: pd.DataFrame, axes: Mapping[str, Sequence[object]], values: npt.NDArray[Any], what: str = "predictions"
) -> npt.NDArray[Any]:
    """The values of the rows as an array with one axis for each column of `axes`, in the order of its values.

    There must be exactly one row for each combination; raises CleansetError, naming some, for combinations that are
    missing or there twice, and for a value that is not in `axes`; `what` begins its message.
    """
    shape = tuple(len(values) for values in axes.values())
    codes = [_codes(rows, column, values, what) for column, values in axes.items()]
    places = np.ravel_multi_index(codes, shape) if len(rows) else np.empty(0, np.int64)
    counts = np.bincount(places, minlength=int(np.prod(shape)))
    _refuse(axes, np.flatnonzero(counts == 0), shape, what=what, how="missing")
    _refuse(axes, np.flatnonzero(counts > 1), shape, what=what, how="there more than once")
    ordered = np.empty_like(values)
    ordered[places] = values
    return ordered.reshape(shape + values.shape[1:])


def _codes(rows: pd.DataFrame, column: str, values: Sequence[object], what: str) -> npt.NDArray[np.int64]:
    """The position in `values` of each row's value."""
    column_values = rows[column].to_numpy()
    # objects are compared as Python compares them, whatever the dtype of the column
    known, found = (pd.Index(list(each), dtype=object, tupleize_cols=False) for each in (values, column_values))
    codes = known.get_indexer(found).astype(np.int64)
    if (codes < 0).any():
        unknown = column_values[codes < 0][:1].tolist()[0]
        raise CleansetError(
            f"{what}, column {column}: found {shown(unknown)}; expected one of {len(values):,} values, "
            f"{shown(values[0]) if len(values) else 'none'} first; leave these rows out or add the value"
        )
    return codes


def _refuse(
    axes: Mapping[str, Sequence[object]], places: npt.NDArray[np.int64], shape: tuple[int, ...], what: str, how: str
) -> None:
    """Raise CleansetError naming the first of the cells that are missing or there more than once."""
    if not len(places):
        return
    indices = np.unravel_index(places[:SHOWN_CELLS], shape)
    names = [
        " ".join(f"{axis} {values[int(index)]}" for (axis, values), index in zip(axes.items(), cell, strict=True))
        for cell in zip(*indices, strict=True)
    ]
    more = ", ..." if len(places) > SHOWN_CELLS else ""
    raise CleansetError(
        f"{what}: {len(places):,} of {int(np.prod(shape)):,} cells are {how}: {', '.join(names)}{more}; "
        "expected one row for each; make the predictions again, or leave out incomplete ones"
    )


SELECTIONS = ("union", "own", "common")
"""The images of all sets, of the model's own set, and those that are in every set."""
ALL = "all"
"""The selection of an image folder that belongs to no edition; it replaces SELECTIONS."""
MIN_IMAGES = 2
"""Minimum number of images; an interval cannot be computed from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureLine:
    """One measure of a model on a selection of images, with its interval; a row of a family's CSV file."""

    selection: str
    """One of SELECTIONS, or ALL."""
    model: str
    """The name of the model."""
    measure: str
    """The name of the measure."""
    change: str
    """A change or a group of them; empty for a measure over all changes."""
    images: int
    """The number of images in the selection."""
    value: float
    """The measure, a share unless the family says otherwise; NaN if it is undefined."""
    low: float
    """The lower end of the interval; NaN for a measure without one."""
    high: float
    """The upper end of the interval; NaN for a measure without one."""
    problem: str = ""
    """The reason why the measure is undefined."""


LINE_COLUMNS = tuple(each.name for each in fields(MeasureLine))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureDifference:
    """A measure of a model minus another's on the same images; a row of a family's CSV file of differences."""

    selection: str
    """One of SELECTIONS, or ALL."""
    measure: str
    """The name of the measure."""
    change: str
    """A change or a group of them; empty for a measure over all changes."""
    model: str
    """The model whose measure the other's is subtracted from."""
    other: str
    """The other model."""
    value: float
    """The difference."""
    low: float
    """The lower end of the interval of the paired difference; NaN without one."""
    high: float
    """The upper end of the interval of the paired difference; NaN without one."""
    p: float = np.nan
    """The p-value of the exact sign test over the images; NaN for Score, which is not a mean over them."""
    p_holm: float = np.nan
    """`p` after Holm's correction for all differences of this measure on this selection."""


DIFFERENCE_COLUMNS = tuple(each.name for each in fields(MeasureDifference))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StudiedImages:
    """The images that a family is measured on, and how models are compared on them."""

    class_indices: npt.NDArray[np.int64]
    """The class index of each image."""
    sets: Sequence[Sequence[str]]
    """The roles whose sets contain each image."""
    classes: ClassTable
    """The class table of the images."""
    roles: Sequence[str]
    """The measured models."""
    bootstrap: Bootstrap
    """How images are resampled: the same for all models."""
    selections: Sequence[str] = SELECTIONS
    """Some of SELECTIONS, whose images every model has seen that is measured on them; or ALL."""
    owners: Sequence[str] | None = None
    """The roles that have sets; None: all models."""
    of_classes: Mapping[str, Chosen] = field(default_factory=dict)
    """Flags of the images of the classes that a model has, by role; the other models have all classes."""
    origins: npt.NDArray[np.object_] | None = None
    """The origin of each image's mask; None without masks."""
    is_whole: bool = False
    """Whether all models have seen all images."""

    def selected(self, selection: str, role: str) -> Chosen:
        """Flags of the images that a selection has for a role."""
        wanted = {"union": set[str](), ALL: set[str](), "own": {role}, "common": set(self.with_sets)}[selection]
        found = np.array([wanted <= set(sets) for sets in self.sets], np.bool_)
        return found & self.of_classes[role] if role in self.of_classes else found

    def of_first(self, role: str) -> Chosen:
        """Flags of the images that the first selection has for a role; details are of these."""
        return self.selected(self.selections[0], role)

    @property
    def with_sets(self) -> Sequence[str]:
        """The roles that have sets."""
        return self.roles if self.owners is None else self.owners


@dataclass(frozen=True, eq=False)
class FamilyStudy(ABC):
    """The answers of all models to a family, by model. `compared`: the measures of differences."""

    images: StudiedImages
    answers: Mapping[str, Answers]
    compared: ClassVar[Sequence[str]]

    @abstractmethod
    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """Every measure of a model on the chosen images, named."""

    @abstractmethod
    def tables(self) -> dict[str, pd.DataFrame]:
        """Details by severity, frame or class, by the stem of their CSV file."""

    def lines(self) -> Iterator[MeasureLine]:
        """Yield every measure of every model on every selection; NaN and the reason below MIN_IMAGES images.

        Nothing is yielded if all selections are too small, or for the own set of a model without one.
        """
        chosen = {
            (selection, role): self.images.selected(selection, role)
            for selection in self.images.selections
            for role in self.images.roles
            if selection != "own" or role in self.images.with_sets
        }
        found = {
            key: list(self._measured(*key, images)) for key, images in chosen.items() if images.sum() >= MIN_IMAGES
        }
        # a selection that is too small gets the rows of the others, without values
        names = dict.fromkeys((line.measure, line.change) for lines in found.values() for line in lines)
        for key, images in chosen.items():
            yield from found[key] if key in found else _too_few(*key, int(images.sum()), names)

    def _sampled(self, role: str, chosen: Chosen) -> Iterator[Sampled]:
        # the resamples of the same images are the same for all models
        return self.measured(role, chosen, self.images.bootstrap.resample(self.images.class_indices[chosen]))

    def _measured(self, selection: str, role: str, chosen: Chosen) -> Iterator[MeasureLine]:
        """Every measure of a model on a selection, whose images are `chosen`."""
        for each in self._sampled(role, chosen):
            interval = each.interval() if np.isfinite(each.value) else Interval(np.nan, np.nan)
            yield MeasureLine(
                selection=selection,
                model=role,
                measure=each.measure,
                change=each.change,
                images=int(chosen.sum()),
                value=each.value,
                low=interval.low,
                high=interval.high,
                problem=each.problem,
            )

    def differences(self) -> Iterator[MeasureDifference]:
        """Yield the paired differences between every two models, of the measures `compared`, on images of both."""

        @cache
        def found(role: str, flags: bytes) -> dict[tuple[str, str], Sampled]:
            return {
                (each.measure, each.change): each
                for each in self._sampled(role, np.frombuffer(flags, np.bool_))
                if each.measure in self.compared and np.isfinite(each.value)
            }

        for selection in self.images.selections:
            # own: other images for each model
            if selection == "own":
                continue
            # the samples of a model are large
            found.cache_clear()
            lines: list[MeasureDifference] = []
            for one, other in combinations(self.images.roles, 2):
                both = self.images.selected(selection, one) & self.images.selected(selection, other)
                if both.sum() < MIN_IMAGES:
                    continue
                left = found(one, both.tobytes())
                right = found(other, both.tobytes())
                common = [key for key in left if key in right]
                lines += [_difference(selection, one, other, left[key] - right[key], key) for key in common]
            yield from _corrected(lines)


def _too_few(selection: str, role: str, count: int, names: Iterable[tuple[str, str]]) -> Iterator[MeasureLine]:
    """The measures of a model whose selection has too few images, by name and change."""
    problem = f"{count} image{'' if count == 1 else 's'}; intervals need {MIN_IMAGES} or more"
    for measure, change in names:
        yield MeasureLine(
            selection=selection,
            model=role,
            measure=measure,
            change=change,
            images=count,
            value=np.nan,
            low=np.nan,
            high=np.nan,
            problem=problem,
        )


def _difference(
    selection: str, model: str, other: str, difference: Sampled, name: tuple[str, str]
) -> MeasureDifference:
    """A difference with its interval and the p-value of its test; `name`: measure and change."""
    measure, change = name
    interval = difference.interval()
    by_image = difference.by_image
    return MeasureDifference(
        selection=selection,
        measure=measure,
        change=change,
        model=model,
        other=other,
        value=difference.value,
        low=interval.low,
        high=interval.high,
        p=float("nan") if by_image is None else sign_test_p(by_image),
    )


def _corrected(lines: Sequence[MeasureDifference]) -> Iterator[MeasureDifference]:
    """The differences with Holm's correction over those of the same measure."""
    tested = [line for line in lines if np.isfinite(line.p)]
    corrected = {
        measure: iter(holm([line.p for line in tested if line.measure == measure]))
        for measure in {line.measure for line in tested}
    }
    for line in lines:
        yield replace(line, p_holm=next(corrected[line.measure]) if np.isfinite(line.p) else np.nan)


def shares(cells: pd.DataFrame, step: str, counted: str, name: str) -> pd.DataFrame:
    """The share of counted images by model, change and step, 0 to 1, for `dvc plots`."""
    sums = cells.groupby(["model", "change", step], sort=False)[["images", counted]].sum().reset_index()
    return sums[["model", "change", step]].assign(**{name: (sums[counted] / sums["images"]).round(6)})


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, with None for a missing value."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def percentages(table: pd.DataFrame, keys: list[str], counted: str) -> dict[tuple[Any, ...], float]:
    """A count's share of the images in percent, by the keys."""
    sums = table.groupby(keys, sort=False)[[counted, "images"]].sum().reset_index()
    named = zip(*(sums[key].tolist() for key in keys), strict=True)
    return dict(zip(named, (100 * sums[counted] / sums["images"]).tolist(), strict=True))
